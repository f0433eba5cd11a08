// core.cc: see core.h. One function per op; FindOp has the table.
#include "kernel/runtime/plan/core.h"

#include <cstring>

#include "kernel/language/graph/graph.h"
#include "kernel/runtime/plugin/host.h"

namespace keel {
namespace {

CoreRun& RunOf(const keel_call* call) { return *static_cast<CoreRun*>(call->state); }

void SetData(const CoreRun& run) {
  for (keel_tensor* view : run.views) view->data = run.array->data();
}

keel_rc Read(const keel_call* call) {
  CoreRun& run = RunOf(call);
  absl::StatusOr<ArrayRef> value = run.variable->ReadOnHost();
  if (!value.ok()) return HostFail(value.status());
  run.array = *std::move(value);
  SetData(run);
  return KEEL_OK;
}

void ReleaseArrays(CoreRun& run) {
  for (CoreRun* holder = run.releases; holder; holder = holder->next_released) holder->array = {};
}

// Copies a value whose memory the variable cannot own: a feed, a constant or a value in the arena.
absl::StatusOr<ArrayRef> CopyOf(const keel_tensor& t, const Variable& variable) {
  ASSIGN_OR_RETURN(ArrayRef array, NewArray(variable.dtype(), variable.shape(), false));
  if (array->count) std::memcpy(array->data(), static_cast<char*>(t.data) + t.byte_offset, array->bytes());
  return array;
}

keel_rc Assign(const keel_call* call) {
  CoreRun& run = RunOf(call);
  ArrayRef value = run.array ? run.array : run.shares ? run.shares->array : ArrayRef();
  if (!value) {
    absl::StatusOr<ArrayRef> copy = CopyOf(*call->in[0], *run.variable);
    if (!copy.ok()) return HostFail(copy.status());
    value = *std::move(copy);
  }
  ReleaseArrays(run);
  if (absl::Status status = run.variable->Assign(std::move(value)); !status.ok()) return HostFail(status);
  if (!run.allocates) return KEEL_OK;
  return HostFail(run.allocates->MakeArrays());  // usually reuses the memory that was just released
}

keel_rc AddTo(const keel_call* call) {
  CoreRun& run = RunOf(call);
  ReleaseArrays(run);
  const keel_tensor& x = *call->in[0];
  return HostFail(run.variable->Add(static_cast<const char*>(x.data) + x.byte_offset, run.core->subtract));
}

keel_rc PrintOp(const keel_call* call) {
  const Core& core = *RunOf(call).core;
  std::string line = core.text[0];
  for (uint32_t i = 0; i < call->n_in; i++)
    absl::StrAppend(&line, FormatTensor(*call->in[i], core.edge), core.text[i + 1]);
  line += '\n';
  return HostFail(CatchExceptions("the hook of print", [&] {
    Printer plain;
    (core.printer ? *core.printer : plain).Write(core.stream, line);
    return absl::OkStatus();
  }));
}

keel_rc Assert(const keel_call* call) {
  const keel_tensor& ok = *call->in[0];
  if (static_cast<const char*>(ok.data)[ok.byte_offset]) return KEEL_OK;
  const Core& core = *RunOf(call).core;
  std::string text = core.text[0].empty() ? "the assertion does not hold" : core.text[0];
  for (uint32_t i = 1; i < call->n_in; i++)
    absl::StrAppend(&text, i == 1 ? ": " : ", ", FormatTensor(*call->in[i], core.edge));
  return HostFail(Invalid(text));
}

template <auto Run>
keel_rc NoThrow(const keel_call* call) {
  try {
    return Run(call);
  } catch (const std::exception&) {
    return HostFailNoMemory();
  }
}

// Splits "a {} b {}" at its placeholders; {{ and }} are literal braces.
absl::StatusOr<std::vector<std::string>> SplitFormat(const std::string& format) {
  std::vector<std::string> pieces(1);
  for (size_t i = 0; i < format.size(); i++) {
    char c = format[i], next = i + 1 < format.size() ? format[i + 1] : '\0';
    if ((c == '{' || c == '}') && next == c) {
      pieces.back() += c, i++;
    } else if (c == '{' && next == '}') {
      pieces.emplace_back(), i++;
    } else if (c == '{' || c == '}') {
      return Annotate(Invalid("format \"", format, "\" has an unmatched '", std::string(1, c), "' at ", i),
                      kErrorHint, "write {} for an operand, {{ and }} for braces");
    } else {
      pieces.back() += c;
    }
  }
  return pieces;
}

absl::Status FillPrint(const Attrs& attrs, size_t operands, Core* core) {
  const std::string& format = FindAttr(attrs, "format")->s;
  core->stream = FindAttr(attrs, "stream")->s == "out" ? KEEL_STREAM_OUT : KEEL_STREAM_ERR;
  core->text.assign(operands + 1, " ");
  core->text.front() = core->text.back() = "";
  if (format.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(core->text, SplitFormat(format));
  if (core->text.size() == operands + 1) return absl::OkStatus();
  return Annotate(Invalid("format \"", format, "\" has ", core->text.size() - 1,
                          " placeholders but print has ", operands, " operands"),
                  kErrorHint, "write one {} for each operand");
}

// Planning gives it a part of its own (variable_steps.h).
keel_rc Trim(const keel_call*) {
  return HostFail(Unimplemented("a size that only a run knows is not possible here"));
}

struct CoreOp {
  std::string_view name;
  keel_rc (*run)(const keel_call*);
  bool reads, writes, takes_array, subtract;
};
const CoreOp* FindOp(std::string_view name) {
  static constexpr CoreOp kOps[] = {
      {"read", NoThrow<Read>, true, false, false, false},
      {"assign", NoThrow<Assign>, false, true, true, false},
      {"assign_add", NoThrow<AddTo>, false, true, false, false},
      {"assign_sub", NoThrow<AddTo>, false, true, false, true},
      {"print", NoThrow<PrintOp>, false, false, false, false},
      {"assert", NoThrow<Assert>, false, false, false, false},
      {"trim", NoThrow<Trim>, false, false, false, false},
  };
  for (const CoreOp& op : kOps)
    if (op.name == name) return &op;
  return nullptr;
}

// With host memory.
std::shared_ptr<const Plugin> CorePlugin(const char* name) {
  auto plugin = std::make_shared<Plugin>();
  plugin->name = name;
  plugin->device.flags = KEEL_DEVICE_HOST_MEMORY;
  return plugin;
}

}  // namespace

absl::Status CoreRun::MakeArrays() {
  for (CoreRun* run = this; run; run = run->next_allocated) {
    ASSIGN_OR_RETURN(run->array, NewArray(run->variable->dtype(), run->variable->shape(), false));
    SetData(*run);
  }
  return absl::OkStatus();
}

bool IsCore(const OpDef& op) { return (HasEffect(op) || HasNewSize(op)) && FindOp(OpName(op)); }

bool IsVariableOp(const OpDef& op) { return IsCore(op) && !VarAttr(op).empty(); }

absl::StatusOr<std::shared_ptr<const Core>> MakeCore(const OpDef& op, const Attrs& attrs, size_t operands,
                                                     const Module& module, Printer* printer) {
  auto core = std::make_shared<Core>();
  const CoreOp& row = *FindOp(OpName(op));
  core->run = row.run;
  core->reads = row.reads;
  core->writes = row.writes;
  core->takes_array = row.takes_array;
  core->subtract = row.subtract;
  core->printer = printer;
  if (const AttrValue* v = FindAttr(attrs, VarAttr(op))) {
    core->number = static_cast<size_t>(v->i);
    core->variable = module.variables[core->number].storage;
  }
  if (const AttrValue* v = FindAttr(attrs, "edge")) core->edge = v->i;
  if (const AttrValue* v = FindAttr(attrs, "message")) core->text = {v->s};
  if (FindAttr(attrs, "format")) RETURN_IF_ERROR(FillPrint(attrs, operands, core.get()));
  return std::shared_ptr<const Core>(std::move(core));
}

const Impl* CoreImpl() {
  static const std::shared_ptr<const Plugin> kPlugin = CorePlugin("host");
  static const Impl kImpl = [] {
    Impl impl{};
    impl.table.name = "core";
    impl.plugin = kPlugin.get();
    return impl;
  }();
  return &kImpl;
}

CoreServices::CoreServices() : host(CorePlugin("host"), 0), variables(CorePlugin("variables"), 0) {}

}  // namespace keel
