// programs.cc: see programs.h. The lookup time of a function call is its latency minus that of the plan.
#include "programs.h"

#include <cstdlib>

#include "harness.h"

namespace hot {
namespace {

void Must(keel_rc rc) {
  if (rc != KEEL_OK) std::abort();
}

struct Program {  // n dependent additions
  keel_op* add;
  int nodes;
  static keel_rc Run(void* arg, keel_trace* trace, const keel_leaf* in, uint32_t, keel_error** err) {
    auto* self = static_cast<Program*>(arg);
    keel_array *x = in[0].array, *y = nullptr;
    for (int i = 0; i < self->nodes; i++) {
      keel_array* operands[] = {y ? y : x, in[1].array};
      keel_array* next = nullptr;
      if (keel_rc rc = keel_trace_apply(trace, nullptr, self->add, operands, 2, &next, 1, err)) return rc;
      keel_array_free(y);
      y = next;
    }
    keel_rc rc = keel_trace_result(trace, "y", y, err);
    keel_array_free(y);
    return rc;
  }
};

keel_leaf Leaf(keel_array* a) { return {KEEL_LEAF_ARRAY, 0, nullptr, a, 0, 0, nullptr}; }

void Functions(keel_context* c, const char* device, keel_op* add, const AddFigure& figure) {
  Program one{add, 1}, many{add, 10000};
  keel_array* x = Filled(c, KEEL_F32, {}, 1.5f);
  keel_leaf leaves[] = {Leaf(x), Leaf(x)};
  keel_function* f = nullptr;
  Must(keel_function_new(c, "f", device, nullptr, 0, Program::Run, &one, nullptr, &f, nullptr));
  figure("function of 1 node, called", 75, 1, [&] {
    keel_array* y;
    uint32_t n;
    Must(keel_function_call(f, nullptr, nullptr, "", leaves, 2, &y, 1, &n, nullptr));
    keel_array_free(y);
  });
  figure("trace: of 10,000 nodes, a node", 1000, many.nodes, [&] {
    keel_trace* trace = nullptr;
    keel_module* m = nullptr;
    Must(keel_trace_new(c, "g", device, &trace, nullptr));
    keel_leaf params[] = {Leaf(nullptr), Leaf(nullptr)};
    for (keel_leaf& p : params)
      Must(keel_trace_param(trace, nullptr, KEEL_F32, nullptr, 0, &p.array, nullptr));
    Must(Program::Run(&many, trace, params, 2, nullptr));
    Must(keel_trace_end(trace, &m, nullptr));
    for (keel_leaf& p : params) keel_array_free(p.array);
    keel_trace_free(trace);
    keel_module_free(m);
  });
  figure("trace: the same as a function, with its module", 0, many.nodes, [&] {
    keel_function* g = nullptr;
    keel_module* m = nullptr;
    Must(keel_function_new(c, "g", device, nullptr, 0, Program::Run, &many, nullptr, &g, nullptr));
    Must(keel_function_module(g, "", leaves, 2, &m, nullptr, nullptr));
    keel_module_free(m);
    keel_function_free(g);
  });
  keel_function_free(f);
  keel_array_free(x);
}

void Tapes(keel_context* c, const char* device, keel_op* add, const AddFigure& figure) {
  keel_op* mul = Bind(c, device, "mul");
  for (auto [op, name] :
       {std::pair(add, "add under a tape, f32 scalars"), {mul, "mul under a tape, f32 scalars"}}) {
    keel_array* x = Filled(c, KEEL_F32, {}, 1.5f);
    keel_tape* tape = nullptr;
    Must(keel_tape_new(c, device, nullptr, 0, nullptr, &tape, nullptr));
    int recorded = 1000;
    figure(name, 0, 1, [&] {
      if (recorded++ == 1000) {  // as long as a training step
        keel_tape_reset(tape);
        Must(keel_tape_watch(tape, x, nullptr, nullptr));
        recorded = 0;
      }
      keel_array *in[] = {x, x}, *y;
      Must(keel_trace_apply(nullptr, tape, op, in, 2, &y, 1, nullptr));
      keel_array_free(y);
    });
    keel_tape_free(tape);
    keel_array_free(x);
  }
  keel_array* x = Filled(c, KEEL_F32, {}, 1.5f);
  figure("gradient of x * x, recorded and taken", 0, 1, [&] {
    keel_tape* tape = nullptr;
    Must(keel_tape_new(c, device, nullptr, 0, nullptr, &tape, nullptr));
    Must(keel_tape_watch(tape, x, nullptr, nullptr));
    keel_array *in[] = {x, x}, *y, *dx;
    Must(keel_trace_apply(nullptr, tape, mul, in, 2, &y, 1, nullptr));
    Must(keel_tape_gradient(tape, &y, 1, nullptr, &x, nullptr, 1, 0, &dx, nullptr));
    keel_array_free(y);
    keel_array_free(dx);
    keel_tape_free(tape);
  });
  keel_array_free(x);
  keel_op_free(mul);
}

}  // namespace

void Programs(keel_context* context, const char* device, const AddFigure& add) {
  keel_op* op = Bind(context, device, "add");
  Functions(context, device, op, add);
  Tapes(context, device, op, add);
  keel_op_free(op);
}

}  // namespace hot
