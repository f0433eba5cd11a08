// host.cc: members of the host table that read nodes and report failures. Members that write modules are in
// edit.cc.
#include "kernel/runtime/plugin/host.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace keel {
namespace {

keel_rc Fail(keel_rc code, const char* message) noexcept {
  HostCall::SetMessage(message ? message : "");
  return code;
}

void Log(int32_t level, const char* message) {
  static const int32_t threshold =
      secure_getenv("KEEL_LOG") ? std::atoi(secure_getenv("KEEL_LOG")) : KEEL_LOG_WARNING;
  if (level >= threshold) std::fprintf(stderr, "keel: %s\n", message);
}

const void* NoExtension(const char*) { return nullptr; }
const char* NodeOp(const keel_node* n) { return OpName(*n->op).data(); }  // a std::string is NUL-terminated

const keel_node* EnsureFilled(const keel_node* n) {
  if (!n->fill) return n;
  auto* late = const_cast<keel_node*>(n);
  auto fill = late->fill;  // fill replaces the member
  fill(late);
  late->fill = nullptr;
  return n;
}

// A cast from or to a storage dtype, whose elements may be packed, is not elementwise for passes and code
// generators.
uint32_t NodeTraits(const keel_node* n) {
  uint32_t bits = TraitBits(*n->op);
  if (!(bits & KEEL_TRAIT_ELEMENTWISE) || !TakesStorage(*n->op)) return bits;
  const keel_node* filled = EnsureFilled(n);
  for (const auto* sides : {&filled->in, &filled->out})
    for (const keel_node::Side& side : *sides)
      if (IsStorage(side.dtype)) bits &= ~uint32_t{KEEL_TRAIT_ELEMENTWISE};
  return bits;
}
const char* NodeName(const keel_node* n) { return EnsureFilled(n)->name.c_str(); }

void NodeArity(const keel_node* n, uint32_t* n_in, uint32_t* n_out) {
  EnsureFilled(n);
  *n_in = static_cast<uint32_t>(n->in.size());
  *n_out = static_cast<uint32_t>(n->out.size());
}

keel_rc ViewSide(const std::vector<keel_node::Side>& sides, uint32_t i, keel_tensor* out) {
  if (i >= sides.size() || sides[i].dtype == DType::kNone) return KEEL_NOT_FOUND;
  *out = {};
  out->data = const_cast<void*>(sides[i].data);
  out->device = {1, 0};
  out->ndim = static_cast<int32_t>(sides[i].dims.size());
  out->dtype = AbiDType(sides[i].dtype);
  out->shape = const_cast<int64_t*>(sides[i].dims.data());
  return KEEL_OK;
}

keel_rc NodeIn(const keel_node* n, uint32_t i, keel_tensor* out) {
  return ViewSide(EnsureFilled(n)->in, i, out);
}
keel_rc NodeOut(const keel_node* n, uint32_t i, keel_tensor* out) {
  return ViewSide(EnsureFilled(n)->out, i, out);
}

keel_rc NodeAttr(const keel_node* n, const char* name, keel_attr* out) {
  if (std::string_view(name) == "keel.exact_convolution") {
    *out = {};
    out->kind = KEEL_ATTR_BOOL;
    out->i = n->exact_convolution;
    return KEEL_OK;
  }
  const AttrValue* found = FindAttr(EnsureFilled(n)->attrs, name);
  if (!found) return KEEL_NOT_FOUND;
  *out = ViewAttr(*found);
  return KEEL_OK;
}

keel_rc Show(const BodyView* body, keel_body* out) {
  if (!body) return KEEL_NOT_FOUND;
  *out = {sizeof(keel_body), static_cast<uint32_t>(body->rows.size()),
          body->n_values,    static_cast<uint32_t>(body->results.size()),
          body->rows.data(), body->results.data()};
  return KEEL_OK;
}

keel_rc NodeBody(const keel_node* n, keel_body* out) { return Show(EnsureFilled(n)->body.get(), out); }

keel_rc NodeGraph(const keel_node* n, uint32_t i, keel_body* out) {
  const auto& graphs = EnsureFilled(n)->graphs;
  return Show(i < graphs.size() ? graphs[i].get() : nullptr, out);
}

keel_host MakeTable() {
  keel_host table{};
  table.struct_size = sizeof table;
  table.abi_minor = KEEL_ABI_MINOR;
  table.fail = Fail;
  table.log = Log;
  table.ext = NoExtension;
  table.node_op = NodeOp;
  table.node_traits = NodeTraits;
  table.node_name = Guarded<NodeName, nullptr>;
  table.node_arity = Guarded<NodeArity>;
  table.node_in = Guarded<NodeIn>;
  table.node_out = Guarded<NodeOut>;
  table.node_attr = Guarded<NodeAttr>;
  table.node_body = Guarded<NodeBody>;
  table.node_graph = Guarded<NodeGraph>;
  FillEditMembers(&table);
  FillRewriteMembers(&table);
  FillSpaceMembers(&table);
  return table;
}

}  // namespace

bool IsCode(keel_rc rc) {
  constexpr keel_rc kCodes[] = {KEEL_CANCELLED,     KEEL_UNKNOWN,  KEEL_INVALID,      KEEL_NOT_FOUND,
                                KEEL_EXISTS,        KEEL_OOM,      KEEL_PRECONDITION, KEEL_RANGE,
                                KEEL_UNIMPLEMENTED, KEEL_INTERNAL, KEEL_UNAVAILABLE};
  return std::find(std::begin(kCodes), std::end(kCodes), rc) != std::end(kCodes);
}

const keel_host& HostTable() {
  static const keel_host table = MakeTable();
  return table;
}

__thread HostCall* HostCall::current_ = nullptr;

void HostCall::SetMessage(std::string_view text, std::string_view hint) noexcept {
  if (!current_) return;
  try {
    if (!current_->failure_) current_->failure_ = new Failure;
    current_->failure_->text = text;
    current_->failure_->hint = hint;
  } catch (const std::exception&) {
    current_->no_memory_ = true;
  }
}

absl::Status HostCall::Finish(keel_rc rc, const Plugin& plugin, std::string_view doing) const {
  if (rc == KEEL_OK) return absl::OkStatus();
  if (no_memory_) return Annotate(Exhausted("no memory"), kErrorPlugin, plugin.name);
  Failure failure = failure_ ? *failure_ : Failure();
  if (failure.text.empty())
    failure.text = absl::StrCat("plugin \"", plugin.name, "\" failed with code ", rc,
                                " and no message while it ", std::string(doing));
  auto code = IsCode(rc) ? static_cast<absl::StatusCode>(rc) : absl::StatusCode::kUnknown;
  return Annotate(Annotate(absl::Status(code, failure.text), kErrorHint, failure.hint), kErrorPlugin,
                  plugin.name);
}

keel_rc HostFailNoMemory() noexcept {
  HostCall::SetMessage("no memory");
  return KEEL_OOM;
}

keel_rc HostFail(const absl::Status& status) {
  if (!status.ok()) HostCall::SetMessage(status.message(), ErrorFact(status, kErrorHint));
  return static_cast<keel_rc>(status.code());
}

absl::Status CatchExceptions(std::string_view whose, absl::FunctionRef<absl::Status()> code) {
  std::string what = "not a std::exception";
  try {
    return code();
  } catch (const std::exception& e) {
    what = e.what();
  } catch (const abi::__forced_unwind&) {
    throw;  // the thread is being cancelled
  } catch (...) {
  }
  return Annotate(Error(absl::StatusCode::kUnknown, whose, " threw a C++ exception: ", what), kErrorHint,
                  "catch it in the callback and return a code and an error");
}

}  // namespace keel
