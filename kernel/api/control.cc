// control.cc: control flow of keel_control.h: blocks run at once, or are traced as bodies of a node.
#include <cstring>

#include "abi/keel_control.h"
#include "kernel/api/handles.h"
#include "kernel/language/graph/constant.h"
#include "kernel/runtime/device/move.h"

using namespace keel;

namespace {

struct Code {
  keel_block run;
  void* arg;
};
using Arrays = std::span<keel_array* const>;

keel::Trace* TraceOf(const keel_trace* t) {
  return t && t->tracing.trace ? t->tracing.trace->Current() : nullptr;
}
Tracing At(const keel_trace* within, std::shared_ptr<Trace> trace) {
  if (!within) return {nullptr, std::move(trace), {}};
  return {within->tracing.context, std::move(trace), {}, within->tracing.tape};
}

// The results of the block. handle: the trace that it writes; without a trace it computes.
absl::StatusOr<Results> Call(keel_trace handle, const Code& block, Arrays in) {
  RETURN_IF_ERROR(CallBack(handle, [&](keel_error** error) {
    return block.run(block.arg, &handle, in.data(), static_cast<uint32_t>(in.size()), error);
  }));
  return handle.tracing.Take();
}

absl::StatusOr<Results> RunNow(const keel_trace* within, const Code& block, Arrays in) {
  return Call({At(within, within ? within->tracing.trace : nullptr)}, block, in);
}

std::vector<keel_array*> Raw(const Results& results) {
  std::vector<keel_array*> raw;
  for (const ArrayRef& array : results) raw.push_back(array.get());
  return raw;
}
Results Share(Arrays arrays) {
  Results shared;
  for (keel_array* array : arrays) shared.push_back(ArrayRef::Share(array));
  return shared;
}

absl::StatusOr<std::shared_ptr<Trace>> Write(const keel_trace* within, Trace& trace,
                                             const BodyRequest& wanted, const Code& block) {
  std::vector<ArrayRef> params;
  ASSIGN_OR_RETURN(std::shared_ptr<Trace> body, trace.Begin(wanted, &params));
  if (within && within->tracing.tape) within->tracing.tape->Enter(body.get());
  struct LeaveGuard {  // symbolic arrays may keep the body longer
    Trace* body;
    ~LeaveGuard() { body->Leave(); }
  } guard{body.get()};
  std::vector<keel_array*> in;
  for (const ArrayRef& param : params) in.push_back(param.get());
  ASSIGN_OR_RETURN(Results made, Call({At(within, body)}, block, in));
  RETURN_IF_ERROR(body->Finish(Raw(made)));
  return body;
}

absl::Status CheckRoom(size_t results, uint32_t room) {
  if (results <= room) return absl::OkStatus();
  return Invalid(results, " results, but 'out' has room for ", room);
}

// The number of the node's results: those of a body, but the test of a loop comes first and gives none.
size_t ResultsOf(const ControlRequest& wanted) {
  return wanted.op == "while" ? wanted.before.size() : wanted.bodies[0]->graph()->results.size();
}

absl::StatusOr<Results> AddNode(const keel_trace* within, Trace& trace, ControlRequest wanted,
                                uint32_t room) {
  RETURN_IF_ERROR(CheckRoom(ResultsOf(wanted), room));
  Tape* tape = within ? within->tracing.tape : nullptr;
  if (tape)
    wanted.on_read = [tape](const std::shared_ptr<Variable>& variable, keel_array* value) {
      value ? tape->RecordRead(variable, value) : tape->RecordUnreachableRead(variable);
    };
  std::vector<ArrayRef> made;
  RETURN_IF_ERROR(Annotate(trace.Control(wanted, &made), kErrorOp, wanted.op));
  Results results;
  for (ArrayRef& array : made) results.push_back(std::move(array));
  return results;
}

absl::Status Give(absl::StatusOr<Results> results, keel_array** out, uint32_t room, uint32_t* n_out) {
  RETURN_IF_ERROR(results.status());
  RETURN_IF_ERROR(CheckRoom(results->size(), room));
  for (size_t i = 0; i < results->size(); i++) out[i] = (*results)[i].Detach();
  *n_out = static_cast<uint32_t>(results->size());
  return absl::OkStatus();
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
  if (array->dtype == DType::kBool) return *here->data() != 0;
  if (array->dtype == DType::kI64) return *reinterpret_cast<int64_t*>(here->data());
  return *reinterpret_cast<int32_t*>(here->data());
}

absl::StatusOr<Results> Branch(keel_trace* within, keel_array* selector, std::string_view op,
                               std::span<const Code> blocks, std::span<const std::string_view> labels,
                               uint32_t room) {
  bool index = op == "switch";
  if (!selector->symbolic()) {
    ASSIGN_OR_RETURN(int64_t at, ReadSelector(index ? "the index" : "the predicate", selector, index));
    if (!index) at = at ? 0 : 1;
    if (at < 0 || at >= static_cast<int64_t>(blocks.size()))
      return Error(absl::StatusCode::kOutOfRange, "index ", at, " is not in [0, ", blocks.size(), ")");
    return RunNow(within, blocks[static_cast<size_t>(at)], {});
  }
  ASSIGN_OR_RETURN(Trace * trace, Trace::OfAll({&selector, 1}));
  std::vector<std::shared_ptr<Trace>> bodies;
  ControlRequest wanted{op, {&selector, 1}, {}, {}, {}, {}};
  for (size_t b = 0; b < blocks.size(); b++) {
    std::string numbered = absl::StrCat("branches", b);
    BodyRequest body{index ? std::string_view(numbered) : labels[b], {}};
    body.branch = true;
    ASSIGN_OR_RETURN(bodies.emplace_back(), Write(within, *trace, body, blocks[b]));
    wanted.bodies.push_back(bodies.back().get());
  }
  return AddNode(within, *trace, wanted, room);
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
  Attrs attrs;
  AttrValue v;
  v.kind = KEEL_ATTR_DIM;
  v.i = length;
  if (length != -1) attrs.push_back({"length", v});
  v.kind = KEEL_ATTR_BOOL;
  v.i = 1;
  if (reverse) attrs.push_back({"reverse", v});
  return attrs;
}

absl::StatusOr<Results> ScanTraced(const keel_trace* within, Trace& trace, const ScanArguments& scan,
                                   const Code& code, uint32_t room) {
  std::vector<keel_array*> all(scan.carry.begin(), scan.carry.end());
  all.insert(all.end(), scan.xs.begin(), scan.xs.end());
  BodyRequest wanted{"body", all, scan.carry.size()};
  ASSIGN_OR_RETURN(std::shared_ptr<Trace> body, Write(within, trace, wanted, code));
  return AddNode(within, trace,
                 {"scan", scan.carry, scan.xs, {body.get()}, ScanAttrs(scan.length, scan.reverse), {}}, room);
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
absl::StatusOr<Trace*> TraceFor(const keel_trace* within, std::initializer_list<Arrays> lists) {
  if (Trace* trace = TraceOf(within)) return trace;
  std::vector<keel_array*> all;
  for (Arrays list : lists)
    for (keel_array* array : list) {
      all.push_back(array);
    }
  return Trace::OfAll(all);
}

}  // namespace

keel_rc keel_trace_cond(keel_trace* within, keel_array* predicate, keel_block then, void* then_arg,
                        keel_block otherwise, void* otherwise_arg, keel_array** out, uint32_t room,
                        uint32_t* n_out, keel_error** err) {
  return Guard(err, "predicate then otherwise out[room] n_out",
               {predicate, then, otherwise, out, room, n_out}, [&] {
                 const Code blocks[] = {{then, then_arg}, {otherwise, otherwise_arg}};
                 const std::string_view labels[] = {"then", "else"};
                 return Give(Branch(within, predicate, "cond", blocks, labels, room), out, room, n_out);
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
                 return Give(Branch(within, index, "switch", blocks, {}, room), out, room, n_out);
               });
}

keel_rc keel_trace_while(keel_trace* within, keel_array* const* init, uint32_t n, keel_block test,
                         void* test_arg, keel_block body, void* body_arg, keel_array** out,
                         keel_error** err) {
  return Guard(err, "init[n]* test body out[n]", {init, n, test, body, out, n}, [&]() -> absl::Status {
    uint32_t made = 0;
    const Code blocks[] = {{test, test_arg}, {body, body_arg}};
    ASSIGN_OR_RETURN(Trace * trace, TraceFor(within, {{init, n}}));
    if (!trace) return Give(WhileNow(within, Share({init, n}), blocks[0], blocks[1]), out, n, &made);
    BodyRequest wanted{"test", {init, n}};
    ASSIGN_OR_RETURN(std::shared_ptr<Trace> first, Write(within, *trace, wanted, blocks[0]));
    wanted.label = "body";
    ASSIGN_OR_RETURN(std::shared_ptr<Trace> second, Write(within, *trace, wanted, blocks[1]));
    ControlRequest node{"while", {init, n}, {}, {first.get(), second.get()}, {}, {}};
    return Give(AddNode(within, *trace, node, n), out, n, &made);
  });
}

keel_rc keel_trace_scan(keel_trace* within, keel_array* const* carry, uint32_t n_carry, keel_array* const* xs,
                        uint32_t n_xs, keel_dim length, int32_t reverse, keel_block body, void* arg,
                        keel_array** out, uint32_t room, uint32_t* n_out, keel_error** err) {
  return Guard(err, "carry[n_carry]* xs[n_xs]* body out[room] n_out",
               {carry, n_carry, xs, n_xs, body, out, room, n_out}, [&]() -> absl::Status {
                 ScanArguments scan{{carry, n_carry}, {xs, n_xs}, length, reverse != 0};
                 ASSIGN_OR_RETURN(Trace * trace, TraceFor(within, {scan.carry, scan.xs}));
                 if (!trace) return Give(ScanNow(within, scan, {body, arg}), out, room, n_out);
                 return Give(ScanTraced(within, *trace, scan, {body, arg}, room), out, room, n_out);
               });
}

keel_rc keel_body_begin(keel_trace* within, keel_tape* tape, const char* label, keel_array* const* like,
                        uint32_t n, uint32_t entries_from, uint32_t flags, keel_trace** body,
                        keel_array** params, keel_error** err) {
  return Guard(err, "label like[n]* body params[n]", {label, like, n, body, params, n},
               [&]() -> absl::Status {
                 if (flags & ~KEEL_BODY_BRANCH)
                   return Invalid("keel_body_begin: 'flags' is ", flags, "; there is KEEL_BODY_BRANCH (1)");
                 ASSIGN_OR_RETURN(Trace * trace, TraceFor(within, {{like, n}}));
                 if (!trace)
                   return Error(absl::StatusCode::kFailedPrecondition,
                                "a body requires a trace: pass 'within' or a symbolic array");
                 std::vector<ArrayRef> made;
                 BodyRequest wanted{label, {like, n}, entries_from, (flags & KEEL_BODY_BRANCH) != 0};
                 ASSIGN_OR_RETURN(std::shared_ptr<Trace> begun, trace->Begin(wanted, &made));
                 std::unique_ptr<keel_trace, decltype(&keel_trace_free)> handle(
                     new keel_trace{At(within, std::move(begun))}, keel_trace_free);
                 handle->tracing.owns_body = true;
                 if (tape) handle->tracing.tape = tape;
                 if (tape) tape->Enter(handle->tracing.trace.get());
                 for (uint32_t i = 0; i < n; i++) params[i] = made[i].Detach();
                 *body = handle.release();
                 return absl::OkStatus();
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
  return Guard(
      err, "op before[n_before]* entries[n_entries]* bodies[n_bodies]* out[room] n_out",
      {op, before, n_before, entries, n_entries, bodies, n_bodies, out, room, n_out}, [&]() -> absl::Status {
        if (!n_bodies) return Invalid("keel_body_run: 'n_bodies' is 0; a ", op, " needs a body");
        ControlRequest wanted{op, {before, n_before}, {entries, n_entries}, {}, {}, {}};
        for (uint32_t b = 0; b < n_bodies; b++) {
          wanted.bodies.push_back(bodies[b]->tracing.trace.get());
        }
        if (wanted.op == "scan") wanted.attrs = ScanAttrs(length, reverse != 0);
        RETURN_IF_ERROR(Trace::CheckControl(wanted));
        RETURN_IF_ERROR(CheckRoom(wanted.op == "while" ? n_before : bodies[0]->tracing.results.size(), room));
        for (uint32_t b = 0; b < n_bodies; b++) {
          Results results;
          for (const auto& [name, array] : bodies[b]->tracing.results) results.push_back(array);
          RETURN_IF_ERROR(wanted.bodies[b]->Finish(Raw(results)));
        }
        Trace* around = wanted.bodies[0]->parent();
        return Give(AddNode(bodies[0], *around, wanted, room), out, room, n_out);
      });
}
