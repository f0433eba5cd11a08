// edit.cc: imports: the host members that build a module, and the selection and call of an importer.
#include <algorithm>
#include <filesystem>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernel/language/graph/constant.h"
#include "kernel/runtime/plugin/host.h"

namespace keel {
namespace {

using Edit = keel_edit;

template <typename T>
keel_rc Return(absl::StatusOr<T> result, T* out) {
  if (!result.ok()) return HostFail(result.status());
  *out = *std::move(result);
  return KEEL_OK;
}

keel_rc DimSymbol(Edit* e, const char* name, keel_dim* out) {
  return Return(e->module->dims.Symbol(name), out);
}

keel_rc DimOp(Edit* e, int32_t op, keel_dim a, keel_dim b, keel_dim* out) {
  using Method = absl::StatusOr<Dim> (DimTable::*)(Dim, Dim);
  constexpr Method kMethods[] = {&DimTable::Add,      &DimTable::Sub, &DimTable::Mul,
                                 &DimTable::FloorDiv, &DimTable::Max, &DimTable::Min};
  if (op < KEEL_DIM_ADD || op > KEEL_DIM_MIN)
    return Return(absl::StatusOr<Dim>(Invalid("dim_op ", op, " is not known")), out);
  return Return((e->module->dims.*kMethods[op])(a, b), out);
}

int32_t DimCompare(Edit* e, keel_dim a, keel_dim b) {
  return static_cast<int32_t>(e->module->dims.Compare(a, b));
}

const char* DimText(Edit* e, keel_dim dim) {
  if (!e->module->dims.Contains(dim)) return nullptr;
  e->text = e->module->dims.Print(dim);
  return e->text.c_str();
}

const char* ValueName(Edit* e, keel_value value) {
  if (value >= e->graph->values.size()) return nullptr;
  e->text = e->graph->ValueName(value);
  return e->text.c_str();
}

// For members that only importers may call: a pass must not change parameters, results and metadata.
keel_rc OnlyForImporters(const char* member) {
  return HostFail(Error(absl::StatusCode::kFailedPrecondition, member, ": a pass may not call this"));
}

keel_rc Param(Edit* e, const char* name, keel_dt dtype, const keel_dim* dims, int32_t ndim, keel_value* out) {
  if (!e->graphs) return OnlyForImporters("param");
  return Return(BuildParam(*e->graph, name, dtype, dims, ndim), out);
}

absl::StatusOr<ValueId> AddConstant(Edit* e, const char* name, const keel_tensor& tensor, ReleaseFn release,
                                    void* arg) {
  ArrayRef array;
  if (release) {
    struct ReleaseGuard {  // calls release exactly once, as documented in keel_plugin.h
      ReleaseFn release;
      void* arg;
      ~ReleaseGuard() {
        if (release) release(arg);
      }
    } guard{release, arg};
    ASSIGN_OR_RETURN(array, WrapArray(tensor, release, arg));
    guard.release = nullptr;
  } else {
    ASSIGN_OR_RETURN(array, CopyArray(tensor));
  }
  ASSIGN_OR_RETURN(Constant constant, BuildConstant(name, std::move(array)));
  if (e->source && e->source->Contains(constant.data)) constant.mapped = true;
  if (e->source && e->source->Contains(tensor.data) && !release) DropPages(tensor.data, constant.bytes);
  if (e->rewriter) return e->rewriter->AddConstant(std::move(constant));
  if (!e->graphs) return Exhausted("this pass ran out of memory");
  return e->graph->AddConstant(std::move(constant));
}

keel_rc AddConstantMember(Edit* e, const char* name, const keel_tensor* tensor, void (*release)(void*),
                          void* arg, keel_value* out) {
  return Return(AddConstant(e, name, *tensor, release, arg), out);
}

keel_rc AddNodeMember(Edit* e, const keel_node_spec* spec, keel_value* outs, uint32_t n_out) {
  if (!e->rewriter && !e->graphs) return HostFail(Exhausted("this pass ran out of memory"));
  return HostFail(e->rewriter ? e->rewriter->AddNode(*spec, {outs, n_out})
                              : BuildNode(*e->graph, *spec, {outs, n_out}));
}

keel_rc ValueType(Edit* e, keel_value value, keel_tensor* out) {
  if (absl::Status status = CheckHasValue(*e->graph, value); !status.ok()) return HostFail(status);
  const Value& v = e->graph->values[value];
  *out = {};
  out->device = {1, 0};
  out->dtype = AbiDType(v.type.dtype);
  out->ndim = static_cast<int32_t>(v.type.dims.size());
  out->shape = const_cast<int64_t*>(v.type.dims.data());
  if (v.kind == ValueKind::kConstant && !(e->rewriter && e->rewriter->Fed(value)))
    out->data = const_cast<void*>(e->module->constants[v.index].data);
  return KEEL_OK;
}

keel_rc Result(Edit* e, const char* name, keel_value value) {
  if (!e->graphs) return OnlyForImporters("result");
  return HostFail(BuildResult(*e->graph, name, value));
}

keel_rc Metadata(Edit* e, const char* key, const char* value) {
  if (!e->graphs) return OnlyForImporters("metadata");
  return HostFail(e->module->SetMetadata(key, value));
}

keel_rc NewGraph(Edit* e, const char* name, keel_edit** out, int64_t* number) {
  if (!e->graphs) return OnlyForImporters("edit_new_graph");
  absl::StatusOr<Graph*> made = e->module->AddGraph(name);
  if (!made.ok()) return HostFail(made.status());
  *out = &e->graphs->emplace_front(Edit{e->module, *made, nullptr, e->source, e->graphs, e->gradient});
  *number = static_cast<int64_t>(e->module->graphs.size() - 1);
  return KEEL_OK;
}

keel_rc NewVariable(Edit* e, const char* name, const keel_tensor* initial, uint32_t* number) {
  if (!e->graphs) return OnlyForImporters("edit_variable");
  absl::StatusOr<ArrayRef> value = CopyArray(*initial);
  if (!value.ok()) return HostFail(value.status());
  return Return(e->module->AddVariable(name, std::make_shared<Variable>(*std::move(value), name)), number);
}

keel_rc AddRule(Edit* e, const char* rule) {
  return e->graphs ? HostFail(e->graph->AddRule(rule)) : OnlyForImporters("edit_rule");
}

keel_rc AddEntry(Edit* e, const char* name) {
  return e->graphs ? HostFail(e->module->AddEntry(name, e->graph)) : OnlyForImporters("edit_entry");
}

keel_rc AddGradient(Edit* e, keel_value y, const keel_value* xs, uint32_t n_xs, keel_value* dxs) {
  if (!e->graphs) return OnlyForImporters("edit_gradient");
  absl::StatusOr<std::vector<ValueId>> found = e->gradient(*e->graph, y, {xs, n_xs});
  if (!found.ok()) return HostFail(found.status());
  std::copy(found->begin(), found->end(), dxs);
  return KEEL_OK;
}

// Selects the importer with the highest probe score. A matching file extension adds 50.
absl::StatusOr<std::pair<const Plugin*, const keel_importer*>> Choose(Registry& registry,
                                                                      const std::string& path,
                                                                      const FileMap& file) {
  std::pair<const Plugin*, const keel_importer*> best{};
  int32_t best_score = 0;
  std::vector<std::string> names;
  for (auto& candidate : registry.Importers()) {
    names.push_back(candidate.second->name);
    int32_t score = candidate.second->probe ? candidate.second->probe(file.data, file.size) : 0;
    if (HasExtension(*candidate.second, path)) score += 50;
    if (score > best_score) best = candidate, best_score = score;
  }
  if (!best.second)
    return Annotate(Invalid(path, ": no importer recognises this file; available importers: ",
                            names.empty() ? "none" : absl::StrJoin(names, ", ")),
                    kErrorHint,
                    "a text form begins with `keel 1`; `keel doctor` shows which plugins were found");
  return best;
}

void* KeepSource(const keel_source* source);
struct SourceWithOwner : keel_source {
  std::shared_ptr<const void> owner;
};
void* KeepSource(const keel_source* source) {
  return new std::shared_ptr<const void>(static_cast<const SourceWithOwner*>(source)->owner);
}
void DropSource(void* kept) { delete static_cast<std::shared_ptr<const void>*>(kept); }

}  // namespace

bool HasExtension(const keel_importer& importer, const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  if (extension.empty() || !importer.extensions) return false;
  std::vector<std::string> known = absl::StrSplit(importer.extensions, ' ');
  return std::count(known.begin(), known.end(), extension.substr(1)) > 0;
}

void FillEditMembers(keel_host* t) {
  t->dim_symbol = Guarded<DimSymbol>;
  t->dim_op = Guarded<DimOp>;
  t->dim_compare = Guarded<DimCompare, KEEL_UNCERTAIN>;
  t->param = Guarded<Param>;
  t->constant = Guarded<AddConstantMember>;
  t->add_node = Guarded<AddNodeMember>;
  t->value_type = Guarded<ValueType>;
  t->result = Guarded<Result>;
  t->metadata = Guarded<Metadata>;
  t->edit_new_graph = Guarded<NewGraph>;
  t->edit_variable = Guarded<NewVariable>;
  t->edit_rule = Guarded<AddRule>;
  t->edit_entry = Guarded<AddEntry>;
  t->dim_text = Guarded<DimText, nullptr>;
  t->value_name = Guarded<ValueName, nullptr>;
  t->edit_gradient = Guarded<AddGradient>;
}

absl::StatusOr<std::unique_ptr<Module>> ImportFile(Registry& registry, GradientFn gradient,
                                                   const std::string& path, std::span<const keel_kv> options,
                                                   std::span<const char* const> fixed_names,
                                                   std::span<const keel_tensor> fixed_values) {
  ASSIGN_OR_RETURN(FileMap file, MapFile(path));
  ASSIGN_OR_RETURN(auto chosen, Choose(registry, path, file));
  auto module = std::make_unique<Module>(registry.catalogue());
  ASSIGN_OR_RETURN(Graph * graph, module->AddGraph("main"));
  SourceWithOwner source{};
  source.struct_size = sizeof(keel_source);
  source.path = path.c_str();
  source.data = file.data;
  source.size = file.size;
  source.retain = Guarded<KeepSource, nullptr>;
  source.release = DropSource;
  source.fixed_names = fixed_names.data();
  source.fixed_values = fixed_values.data();
  source.n_fixed = fixed_names.size();
  source.owner = file.owner;
  std::forward_list<keel_edit> edits;
  keel_edit& edit = edits.emplace_front(keel_edit{module.get(), graph, nullptr, &file, &edits, gradient});
  HostCall call;
  keel_rc rc = chosen.second->import(&HostTable(), &source, options.data(),
                                     static_cast<uint32_t>(options.size()), &edit);
  absl::Status status = call.Finish(rc, *chosen.first, "imported");
  if (!status.ok()) {
    return Reword(status, absl::StrCat(path, ": ", status.message()));
  }
  if (module->entries.empty()) RETURN_IF_ERROR(module->AddEntry("main", graph));
  DropUnusedGraphs(module.get(), 1);  // bodies that the importer gave up
  return module;
}

}  // namespace keel
