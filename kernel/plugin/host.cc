// host.cc: members of the host table that read nodes and report failures. Members that write modules are in
// edit.cc.
#include "kernel/plugin/host.h"

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

uint32_t NodeTraits(const keel_node* n) { return TraitBits(*n->op); }

const keel_node* EnsureFilled(const keel_node* n) {
  if (!n->fill) return n;
  auto* late = const_cast<keel_node*>(n);
  auto fill = late->fill;  // fill replaces the member
  fill(late);
  late->fill = nullptr;
  return n;
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

void HostCall::SetMessage(std::string_view text) noexcept {
  if (!current_) return;
  try {
    if (!current_->text_) current_->text_ = new std::string;
    *current_->text_ = text;
  } catch (const std::exception&) {
    current_->no_memory_ = true;
  }
}

absl::Status HostCall::Finish(keel_rc rc, const Plugin& plugin, std::string_view doing) const {
  if (rc == KEEL_OK) return absl::OkStatus();
  if (no_memory_) return Annotate(Exhausted("no memory"), kErrorPlugin, plugin.name);
  std::string text = !text_ || text_->empty()
                         ? absl::StrCat("plugin \"", plugin.name, "\" failed with code ", rc,
                                        " and no message while it ", std::string(doing))
                         : *text_;
  auto code = IsCode(rc) ? static_cast<absl::StatusCode>(rc) : absl::StatusCode::kUnknown;
  return Annotate(absl::Status(code, text), kErrorPlugin, plugin.name);
}

keel_rc HostFailNoMemory() noexcept {
  HostCall::SetMessage("no memory");
  return KEEL_OOM;
}

keel_rc HostFail(const absl::Status& status) {
  if (!status.ok()) HostCall::SetMessage(status.message());
  return static_cast<keel_rc>(status.code());
}

keel_attr ViewAttr(const AttrValue& v) {
  keel_attr a{};
  a.kind = v.kind;
  a.i = v.i;
  a.f = v.f;
  if (v.kind == KEEL_ATTR_DTYPE) a.i = Info(static_cast<DType>(v.i)).code;
  if (v.kind == KEEL_ATTR_STR) a.p = v.s.data(), a.count = static_cast<uint32_t>(v.s.size());
  if (v.kind == KEEL_ATTR_I64S || v.kind == KEEL_ATTR_DIMS || v.kind == KEEL_ATTR_GRAPHS)
    a.p = v.list.data(), a.count = static_cast<uint32_t>(v.list.size());
  if (v.kind == KEEL_ATTR_F64S) a.p = v.floats.data(), a.count = static_cast<uint32_t>(v.floats.size());
  return a;
}

absl::StatusOr<AttrValue> OwnAttr(const keel_attr& a) {
  constexpr uint32_t kMaxEntries = 1 << 20;
  AttrValue v;
  v.kind = a.kind;
  v.i = a.i;
  v.f = a.f;
  if (a.count && !a.p && a.kind >= KEEL_ATTR_STR && a.kind != KEEL_ATTR_DTYPE && a.kind != KEEL_ATTR_DIM &&
      a.kind != KEEL_ATTR_GRAPH && a.kind != KEEL_ATTR_VAR)
    return Invalid("an attribute of ", a.count, " entries without data");
  if (a.count > kMaxEntries)
    return Invalid("an attribute of ", a.count, " entries; at most ", kMaxEntries, " are possible");
  if (a.kind == KEEL_ATTR_STR) v.s.assign(static_cast<const char*>(a.p), a.count);
  if (a.kind == KEEL_ATTR_I64S || a.kind == KEEL_ATTR_DIMS || a.kind == KEEL_ATTR_GRAPHS)
    v.list.assign(static_cast<const int64_t*>(a.p), static_cast<const int64_t*>(a.p) + a.count);
  if (a.kind == KEEL_ATTR_F64S)
    v.floats.assign(static_cast<const double*>(a.p), static_cast<const double*>(a.p) + a.count);
  if (a.kind == KEEL_ATTR_DTYPE) {
    std::optional<DType> dtype = DTypeOf(static_cast<keel_dt>(a.i));
    if (!dtype) return Invalid("attribute value ", a.i, " is not a dtype of Keel");
    v.i = static_cast<int64_t>(*dtype);
  }
  if (a.kind < KEEL_ATTR_BOOL || a.kind > KEEL_ATTR_GRAPHS)
    return Invalid("attribute kind ", a.kind, " is not known");
  return v;
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

absl::StatusOr<Attrs> OwnAttrs(const char* const* names, const keel_attr* attrs, uint32_t n) {
  Attrs out;
  for (uint32_t i = 0; i < n; i++) {
    if (!names || !attrs || !names[i]) return Invalid("attribute ", i, " has no name or no value");
    absl::StatusOr<AttrValue> value = OwnAttr(attrs[i]);
    if (!value.ok()) return Invalid("attribute \"", names[i], "\": ", value.status().message());
    out.push_back({names[i], *std::move(value)});
  }
  SortAttrs(&out);
  for (size_t i = 1; i < out.size(); i++)
    if (out[i].name == out[i - 1].name) return Invalid("attribute \"", out[i].name, "\" is given twice");
  return out;
}

}  // namespace keel
