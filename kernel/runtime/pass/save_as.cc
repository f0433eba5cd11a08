// save_as.cc: see save_as.h.
#include "kernel/runtime/pass/save_as.h"

#include "kernel/language/graph/node_effects.h"
#include "kernel/language/graph/temp_file.h"
#include "kernel/runtime/pass/flatten.h"
#include "kernel/runtime/pass/rewrite.h"

namespace keel {
namespace {

struct Sink : keel_sink {
  TempFile *file, *data;
};

// The file is created only now, after the plugin has found that it can write the graph.
absl::Status Append(TempFile& file, const void* bytes, uint64_t size) {
  if (!file.made()) RETURN_IF_ERROR(file.Open());
  return file.Write(bytes, size);
}

template <TempFile* Sink::*file>
keel_rc Write(const keel_sink* sink, const void* bytes, uint64_t size) {
  return HostFail(Append(*(static_cast<const Sink*>(sink)->*file), bytes, size));
}

// Values of the graph with their names, as lists for C.
struct Ports {
  std::vector<std::string> names;
  std::vector<const char*> c_names;
  explicit Ports(std::vector<std::string> all) : names(std::move(all)) {
    for (const std::string& name : names) c_names.push_back(name.c_str());
  }
};

absl::Status Run(const Plugin& plugin, const keel_importer& format, const Module& module,
                 const std::string& path) {
  absl::StatusOr<const Entry*> entry = module.FindEntry("");
  if (!entry.ok())
    return Annotate(Reword(entry.status(), absl::StrCat(path, ": a file of the format ", format.name,
                                                        " holds one entry; ", entry.status().message())),
                    kErrorHint, "save a module of one entry: keel convert --entry, keel_module_link");
  const Graph& original = *module.graphs[(*entry)->graph];
  ASSIGN_OR_RETURN(Flat flat,
                   Flatten(original, format.composites ? format.composites : "", [&](const keel_node& node) {
                     return !format.keeps || format.keeps(&HostTable(), &node) != 0;
                   }));
  const Graph& graph = *flat.graph;
  std::vector<std::string> params, results;
  for (ValueId v : original.params) params.push_back(original.ValueName(v));
  for (size_t i = 0; i < original.results.size(); i++)
    results.push_back(original.result_names[i].empty() ? original.ValueName(original.results[i])
                                                       : original.result_names[i]);
  Ports in(std::move(params)), out(std::move(results));
  TempFile file(path), data(path + ".data");
  Sink sink{
      {sizeof(keel_sink), static_cast<uint32_t>(graph.params.size()),
       static_cast<uint32_t>(graph.results.size()), 0, path.c_str(), graph.params.data(), in.c_names.data(),
       graph.results.data(), out.c_names.data(), Guarded<Write<&Sink::file>>, Guarded<Write<&Sink::data>>},
      &file,
      &data};
  Rewrite reader(
      {flat.module, flat.graph, graph.params, graph.results, graph.result_names, MustRunNodes(graph)},
      {nullptr, {}});
  reader.Lock();
  HostCall call;
  absl::Status status = call.Finish(format.save(&HostTable(), reader.edit(), &sink), plugin, "saved a graph");
  if (status.ok() && !reader.edit()->rewriter) status = Exhausted("no memory");  // it saw none or few nodes
  if (!status.ok()) return Reword(status, absl::StrCat(path, ": ", status.message()));
  if (!file.made()) return Internal(path, ": plugin \"", plugin.name, "\" wrote nothing");
  return file.Commit(&data);
}

}  // namespace

absl::Status SaveAs(Registry& registry, const Module& module, const std::string& path) {
  for (const auto& [plugin, importer] : registry.Importers())
    if (importer->save && HasExtension(*importer, path)) return Run(*plugin, *importer, module, path);
  if (path.ends_with(".onnx"))  // a Keel file of this name would mislead
    return Annotate(NotFound(path, ": no plugin writes ONNX models"), kErrorHint,
                    "`keel doctor` shows the plugins found");
  return SaveFile(module, path);
}

}  // namespace keel
