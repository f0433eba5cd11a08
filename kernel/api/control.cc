// control.cc: control flow of keel_control.h: blocks run at once, or are traced as bodies of a node.
#include <cstring>

#include "abi/keel_control.h"
#include "kernel/api/handles.h"
#include "kernel/language/graph/constant.h"
#include "kernel/language/graph/graph_sink.h"
#include "kernel/runtime/device/move.h"
#include "kernel/runtime/plan/step.h"

using namespace keel;

namespace {

struct Code {
  keel_block run;
  void* arg;
};

Tracing At(const keel_trace* within, std::shared_ptr<Trace> trace) {
  if (!within) return {nullptr, std::move(trace), {}};
  return {within->tracing.context, std::move(trace), {}, within->tracing.tape};
}

// The results of the block. handle: the trace that it writes; without a trace it computes.
absl::StatusOr<Results> Call(keel_trace& handle, const Code& block, Arrays in) {
  RETURN_IF_ERROR(CallBack(handle, [&](keel_error** error) {
    return block.run(block.arg, &handle, in.data(), static_cast<uint32_t>(in.size()), error);
  }));
  return handle.tracing.Take();
}

absl::StatusOr<Results> RunNow(const keel_trace* within, const Code& block, Arrays in) {
  keel_trace now{At(within, within ? within->tracing.trace : nullptr)};
  return Call(now, block, in);
}

// A new body; `tape`, which may be null, hides the nodes that it does not record.
absl::StatusOr<std::unique_ptr<keel_trace>> BeginBody(const keel_trace* within, Tape* tape, Trace& trace,
                                                      const BodyRequest& wanted, Results* params) {
  ASSIGN_OR_RETURN(std::shared_ptr<Trace> begun, trace.Begin(wanted, params));
  std::unique_ptr<keel_trace> body(new keel_trace{At(within, std::move(begun))});
  body->tracing.owns_body = true;
  if (!tape) return body;
  body->tracing.tape = tape;
  tape->Enter(body->tracing.trace.get());
  return body;
}

// The number of the node's results: those of a body, but the test of a loop comes first and gives none.
absl::Status CheckRoom(const ControlRequest& wanted, size_t of_body, uint32_t room) {
  const size_t results = wanted.op == "while" ? wanted.before.size() : of_body;
  return results <= room ? absl::OkStatus() : NoRoom(wanted.op, results, room);
}

absl::StatusOr<Results> AddNode(const keel_trace* within, Trace& trace, ControlRequest wanted) {
  wanted.tape = TapeOf(nullptr, within);
  absl::StatusOr<Results> made = trace.Control(wanted);
  return made.ok() ? std::move(made) : Annotate(made.status(), kErrorOp, wanted.op);
}

// Writes the blocks as the bodies of a node.
absl::StatusOr<Results> WriteNode(const keel_trace* within, Trace& trace, ControlRequest wanted,
                                  std::span<const Code> blocks, uint32_t room) {
  const bool loop = wanted.op == "while" || wanted.op == "scan";
  std::vector<keel_array*> like;
  if (loop) like.assign(wanted.before.begin(), wanted.before.end());
  like.insert(like.end(), wanted.entries.begin(), wanted.entries.end());
  std::vector<std::shared_ptr<Trace>> bodies;
  for (const Code& block : blocks) {
    const std::string label = Trace::BodyLabel(wanted.op, bodies.size());
    Results params;
    ASSIGN_OR_RETURN(std::unique_ptr<keel_trace> body,
                     BeginBody(within, TapeOf(nullptr, within), trace,
                               {label, like, wanted.before.size(), !loop}, &params));
    ASSIGN_OR_RETURN(Results made, Call(*body, block, Raw(params)));
    RETURN_IF_ERROR(body->tracing.trace->Finish(made));
    wanted.bodies.push_back(bodies.emplace_back(body->tracing.trace).get());
  }
  RETURN_IF_ERROR(CheckRoom(wanted, bodies[0]->graph()->results.size(), room));
  return AddNode(within, trace, std::move(wanted));
}

std::string TypeText(const keel_array* a) { return Print(TypeOf(a), DimTable()); }

// A contiguous copy in host memory, or the array itself.
absl::StatusOr<ArrayRef> HostElements(std::string_view what, keel_array* array) {
  if (array->symbolic())
    return Annotate(Invalid(what, " is ", array->symbolic()->Describe(), ": it has no elements"), kErrorHint,
                    "pass the trace as 'within' to add the node to it");
  ASSIGN_OR_RETURN(ArrayRef here, MoveTo(array, nullptr));
  return here->contiguous ? here : CopyArray(here->view);
}

// The predicate, test or index of a branch or loop.
absl::StatusOr<int64_t> ReadSelector(std::string_view what, keel_array* array, bool index) {
  ASSIGN_OR_RETURN(ArrayRef here, HostElements(what, array));
  bool fits =
      index ? array->dtype == DType::kI32 || array->dtype == DType::kI64 : array->dtype == DType::kBool;
  if (!fits || array->view.ndim)
    return Invalid(what, " is ", TypeText(array), ", expected ", index ? "i32[] or i64[]" : "bool[]");
  return IntegerOf(*here.get());
}

// cond or switch.
absl::StatusOr<Results> Branch(keel_trace* within, keel_array* selector, std::string_view op,
                               std::span<const Code> blocks, uint32_t room) {
  bool index = op == "switch";
  if (!selector->symbolic()) {
    ASSIGN_OR_RETURN(int64_t at, ReadSelector(index ? "the index" : "the predicate", selector, index));
    if (!index) at = at ? 0 : 1;
    RETURN_IF_ERROR(CheckBranch(at, blocks.size()));
    return RunNow(within, blocks[static_cast<size_t>(at)], {});
  }
  ASSIGN_OR_RETURN(Trace * trace, Trace::OfAll({&selector, 1}));
  return WriteNode(within, *trace, {op, {&selector, 1}, {}}, blocks, room);
}

absl::StatusOr<Results> WhileNow(keel_trace* within, Results carry, const Code& test, const Code& body) {
  for (;;) {
    std::vector<keel_array*> in = Raw(carry);
    ASSIGN_OR_RETURN(Results decides, RunNow(within, test, in));
    if (decides.size() != 1)
      return Invalid("test must return one bool[], but returns ", decides.size(), " results");
    ASSIGN_OR_RETURN(int64_t more, ReadSelector("the test", decides[0].get(), false));
    if (!more) return carry;
    ASSIGN_OR_RETURN(Results next, RunNow(within, body, in));
    if (next.size() != carry.size())
      return Invalid("body returns ", next.size(), " results but ", carry.size(), " values are carried");
    for (size_t i = 0; i < next.size(); i++)
      if (TypeText(next[i].get()) != TypeText(carry[i].get()))
        return Invalid("result ", i, " of body is ", TypeText(next[i].get()), " but the carried operand is ",
                       TypeText(carry[i].get()));
    carry = std::move(next);
  }
}

struct ScanArguments {
  Arrays carry, xs;
  keel_dim length;
  bool reverse;
};

absl::StatusOr<ArrayRef> RowAt(const ArrayRef& rows, int64_t i) {
  ASSIGN_OR_RETURN(ArrayRef entry, NewArray(rows->dtype, rows->shape().subspan(1), false));
  std::memcpy(entry->data(), rows->data() + static_cast<uint64_t>(i) * entry->bytes(), entry->bytes());
  return entry;
}

absl::Status Stack(ArrayRef* all, const ArrayRef& one, int64_t i, int64_t length) {
  ASSIGN_OR_RETURN(ArrayRef entry, HostElements("a result of a scan's body", one.get()));
  if (!*all) {
    std::vector<int64_t> shape{length};
    shape.insert(shape.end(), entry->shape().begin(), entry->shape().end());
    ASSIGN_OR_RETURN(*all, NewArray(entry->dtype, shape, false));
  }
  if ((*all)->dtype != entry->dtype || !std::ranges::equal((*all)->shape().subspan(1), entry->shape()))
    return Invalid("the body returned ", TypeText(entry.get()),
                   ", but the results of earlier iterations are stacked as ", TypeText(all->get()));
  std::memcpy((*all)->data() + static_cast<uint64_t>(i) * entry->bytes(), entry->data(), entry->bytes());
  return absl::OkStatus();
}

absl::StatusOr<int64_t> LengthOf(const ScanArguments& scan) {
  int64_t length = scan.length;
  for (keel_array* x : scan.xs) {
    if (!x->view.ndim) return Invalid("an operand of a scan is a scalar: it has no dim to scan over");
    if (length == -1) length = x->dims[0];
    if (x->dims[0] != length)
      return Invalid("an operand of a scan has ", x->dims[0], " entries, not ", length);
  }
  if (length < 0) return Invalid("the scan has no operand to scan over; set its length");
  return length;
}

Attrs ScanAttrs(keel_dim length, bool reverse) {
  Attrs attrs = MakeAttrs({{"length", KEEL_ATTR_DIM, length}, {"reverse", KEEL_ATTR_BOOL, 1}});
  if (!reverse) attrs.pop_back();
  if (length == -1) attrs.erase(attrs.begin());
  return attrs;
}

absl::StatusOr<Results> ScanTraced(const keel_trace* within, Trace& trace, const ScanArguments& scan,
                                   const Code& code, uint32_t room) {
  Attrs attrs = ScanAttrs(scan.length, scan.reverse);
  return WriteNode(within, trace, {"scan", scan.carry, scan.xs, {}, std::move(attrs)}, {&code, 1}, room);
}

// The body never runs: the types of its results come from a temporary trace.
absl::StatusOr<Results> ScanEmpty(const keel_trace* within, const ScanArguments& scan, const Code& code) {
  std::shared_ptr<Context> context = within ? within->tracing.context : nullptr;
  auto module = std::make_shared<Module>(context ? context->catalogue : std::make_shared<Catalogue>());
  ASSIGN_OR_RETURN(Graph * graph, module->AddGraph("scan"));
  keel_trace apart{
      {context, std::make_shared<Trace>(module, graph, ""), {}}};  // no tape: nothing is computed
  Trace& trace = *apart.tracing.trace;
  Results params;
  for (Arrays list : {scan.carry, scan.xs})
    for (const keel_array* array : list) {
      ASSIGN_OR_RETURN(params.emplace_back(), trace.Param("", TypeOf(array)));
    }
  std::vector<keel_array*> raw = Raw(params);
  Arrays all(raw), carry = all.first(scan.carry.size()), xs = all.subspan(carry.size());
  ASSIGN_OR_RETURN(Results made, ScanTraced(&apart, trace, {carry, xs, 0, false}, code, UINT32_MAX));
  RETURN_IF_ERROR(trace.End());
  Results results = Share(scan.carry);
  for (size_t i = carry.size(); i < made.size(); i++) {
    if (std::ranges::count(made[i]->shape(), -1))
      return Invalid("a scan of 0 entries cannot stack ", made[i]->symbolic()->Describe(),
                     ": its shape depends on elements");
    ASSIGN_OR_RETURN(results.emplace_back(), NewArray(made[i]->dtype, made[i]->shape(), false));
  }
  return results;
}

absl::StatusOr<Results> ScanNow(keel_trace* within, const ScanArguments& scan, const Code& body) {
  ASSIGN_OR_RETURN(int64_t length, LengthOf(scan));
  if (!length) return ScanEmpty(within, scan, body);
  Results carry = Share(scan.carry), stacked;
  std::vector<ArrayRef> rows;
  for (keel_array* x : scan.xs) {
    ASSIGN_OR_RETURN(rows.emplace_back(), HostElements("an operand", x));
  }
  for (int64_t k = 0; k < length; k++) {
    int64_t i = scan.reverse ? length - 1 - k : k;
    Results in = carry;
    for (const ArrayRef& row : rows) {
      ASSIGN_OR_RETURN(in.emplace_back(), RowAt(row, i));
    }
    ASSIGN_OR_RETURN(Results made, RunNow(within, body, Raw(in)));
    if (made.size() < carry.size())
      return Invalid("body returns ", made.size(), " results but ", carry.size(), " values are carried");
    stacked.resize(made.size() - carry.size());
    for (size_t r = 0; r < stacked.size(); r++)
      RETURN_IF_ERROR(Stack(&stacked[r], made[carry.size() + r], i, length));
    made.resize(carry.size());
    carry = std::move(made);
  }
  for (ArrayRef& array : stacked) carry.push_back(std::move(array));
  return carry;
}

// The trace of the caller, or of the arrays; null: blocks run at once.
absl::StatusOr<Trace*> TraceFor(const keel_trace* within, Arrays arrays, Arrays more = {}) {
  if (Trace* trace = TraceOf(within)) return trace;
  std::vector<keel_array*> all(arrays.begin(), arrays.end());
  all.insert(all.end(), more.begin(), more.end());
  return Trace::OfAll(all);
}

}  // namespace

keel_rc keel_trace_cond(keel_trace* within, keel_array* predicate, keel_block then, void* then_arg,
                        keel_block otherwise, void* otherwise_arg, keel_array** out, uint32_t room,
                        uint32_t* n_out, keel_error** err) {
  return Guard(err, "predicate then otherwise out[room] n_out",
               {predicate, then, otherwise, out, room, n_out}, [&] {
                 const Code blocks[] = {{then, then_arg}, {otherwise, otherwise_arg}};
                 return Give(Branch(within, predicate, "cond", blocks, room), out, room, n_out);
               });
}

keel_rc keel_trace_switch(keel_trace* within, keel_array* index, const keel_block* branches,
                          void* const* args, uint32_t n, keel_array** out, uint32_t room, uint32_t* n_out,
                          keel_error** err) {
  return Guard(err, "index branches[n]* out[room] n_out", {index, branches, n, out, room, n_out},
               [&]() -> absl::Status {
                 if (!n) return Invalid("keel_trace_switch: 'n' is 0; a switch has no branch");
                 std::vector<Code> blocks;
                 for (uint32_t b = 0; b < n; b++) blocks.push_back({branches[b], args ? args[b] : nullptr});
                 return Give(Branch(within, index, "switch", blocks, room), out, room, n_out);
               });
}

keel_rc keel_trace_while(keel_trace* within, keel_array* const* init, uint32_t n, keel_block test,
                         void* test_arg, keel_block body, void* body_arg, keel_array** out,
                         keel_error** err) {
  return Guard(err, "init[n]* test body out[n]", {init, n, test, body, out, n}, [&]() -> absl::Status {
    uint32_t made = 0;
    const Code blocks[] = {{test, test_arg}, {body, body_arg}};
    ASSIGN_OR_RETURN(Trace * trace, TraceFor(within, {init, n}));
    return Give(trace ? WriteNode(within, *trace, {"while", {init, n}, {}}, blocks, n)
                      : WhileNow(within, Share({init, n}), blocks[0], blocks[1]),
                out, n, &made);
  });
}

keel_rc keel_trace_scan(keel_trace* within, keel_array* const* carry, uint32_t n_carry, keel_array* const* xs,
                        uint32_t n_xs, keel_dim length, int32_t reverse, keel_block body, void* arg,
                        keel_array** out, uint32_t room, uint32_t* n_out, keel_error** err) {
  return Guard(err, "carry[n_carry]* xs[n_xs]* body out[room] n_out",
               {carry, n_carry, xs, n_xs, body, out, room, n_out}, [&]() -> absl::Status {
                 ScanArguments scan{{carry, n_carry}, {xs, n_xs}, length, reverse != 0};
                 ASSIGN_OR_RETURN(Trace * trace, TraceFor(within, scan.carry, scan.xs));
                 return Give(trace ? ScanTraced(within, *trace, scan, {body, arg}, room)
                                   : ScanNow(within, scan, {body, arg}),
                             out, room, n_out);
               });
}

keel_rc keel_body_begin(keel_trace* within, keel_tape* tape, const char* label, keel_array* const* like,
                        uint32_t n, uint32_t entries_from, uint32_t flags, keel_trace** body,
                        keel_array** params, keel_error** err) {
  return Guard(
      err, "label like[n]* body params[n]", {label, like, n, body, params, n}, [&]() -> absl::Status {
        if (flags & ~KEEL_BODY_BRANCH)
          return Invalid("keel_body_begin: 'flags' is ", flags, "; there is KEEL_BODY_BRANCH (1)");
        ASSIGN_OR_RETURN(Trace * trace, TraceFor(within, {like, n}));
        if (!trace)
          return Error(absl::StatusCode::kFailedPrecondition,
                       "a body requires a trace: pass 'within' or a symbolic array");
        Results made;
        BodyRequest wanted{label, {like, n}, entries_from, (flags & KEEL_BODY_BRANCH) != 0};
        ASSIGN_OR_RETURN(std::unique_ptr<keel_trace> begun, BeginBody(within, tape, *trace, wanted, &made));
        *body = begun.release();
        return Give(std::move(made), params, n, &n);
      });
}

keel_rc keel_body_end(keel_trace* body, keel_error** err) {
  return Guard(err, "body", {body}, [&, caller = __func__]() -> absl::Status {
    RETURN_IF_ERROR(RefuseLent(body, caller, "body"));
    if (!body->tracing.trace)
      return Invalid("keel_body_end: 'body' is an eager trace; expected one from keel_body_begin");
    body->tracing.trace->Leave();
    return absl::OkStatus();
  });
}

keel_rc keel_body_run(const char* op, keel_array* const* before, uint32_t n_before,
                      keel_array* const* entries, uint32_t n_entries, keel_trace* const* bodies,
                      uint32_t n_bodies, keel_dim length, int32_t reverse, keel_array** out, uint32_t room,
                      uint32_t* n_out, keel_error** err) {
  return Guard(err, "op before[n_before]* entries[n_entries]* bodies[n_bodies]* out[room] n_out",
               {op, before, n_before, entries, n_entries, bodies, n_bodies, out, room, n_out},
               [&]() -> absl::Status {
                 if (!n_bodies) return Invalid("keel_body_run: 'n_bodies' is 0; a ", op, " needs a body");
                 ControlRequest wanted{op, {before, n_before}, {entries, n_entries}};
                 for (uint32_t b = 0; b < n_bodies; b++) {
                   wanted.bodies.push_back(bodies[b]->tracing.trace.get());
                 }
                 if (wanted.op == "scan") wanted.attrs = ScanAttrs(length, reverse != 0);
                 RETURN_IF_ERROR(Trace::CheckControl(wanted));
                 RETURN_IF_ERROR(CheckRoom(wanted, bodies[0]->tracing.results.size(), room));
                 for (uint32_t b = 0; b < n_bodies; b++) {
                   Results results;
                   for (const auto& [name, array] : bodies[b]->tracing.results) results.push_back(array);
                   RETURN_IF_ERROR(wanted.bodies[b]->Finish(results));
                 }
                 Trace* around = wanted.bodies[0]->parent();
                 return Give(AddNode(bodies[0], *around, wanted), out, room, n_out);
               });
}
