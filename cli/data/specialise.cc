// specialise.cc: replaces symbols of a module by numbers: each entry is rebuilt on parameters of the
// requested sizes, so that libkeel infers every type again. See sizes.h.
#include <fmt/core.h>

#include <algorithm>

#include "cli/data/load.h"
#include "cli/data/sizes.h"
#include "cli/exit.h"

namespace cli {
namespace {

struct Trace {
  keel_trace* p = nullptr;
  ~Trace() { keel_trace_free(p); }
};

keel_dim dim_of(keel_trace* trace, const std::string& expression, const Dims& dims) {
  if (std::optional<int64_t> number = eval_dim(expression, dims)) return *number;
  keel_dim out = 0;
  keel::call(keel_trace_dim, trace, expression.c_str(), 0, &out);
  return out;
}

bool is_number_name(const std::string& name) {  // "v12": an unnamed value
  return name.size() > 1 && name[0] == 'v' && name.find_first_not_of("0123456789_", 1) == std::string::npos;
}

// Copies value names to the new graph, whose nodes are in the order of the old one.
void keep_names(keel_trace* trace, const keel::Graph& old) {
  keel_module* borrowed = nullptr;
  keel::call(keel_trace_module, trace, &borrowed);
  keel::Module module = keel::Module::take(borrowed);
  const keel::Graph now = module.graph_of("");
  const std::vector<keel::Node> before = old.nodes(), after = now.nodes();
  for (size_t o = 0, n = 0; o < before.size() && n < after.size(); o++) {
    if (before[o].op != after[n].op || before[o].outputs.size() != after[n].outputs.size()) continue;
    for (size_t k = 0; k < before[o].outputs.size(); k++) {
      const std::string& name = before[o].outputs[k];
      if (is_number_name(name) || name == after[n].outputs[k]) continue;
      keel_array* value = nullptr;
      keel::call(keel_trace_array, trace, now.find(after[n].outputs[k]), &value);
      keel::Array array(value);
      keel::call(keel_trace_rename, trace, array.get(), name.c_str(), 1);
    }
    n++;
  }
}

keel::Module rewritten(const keel::Context& context, keel::Module& from, const Entry& entry, const Dims& dims,
                       const std::string& device) {
  Trace trace;
  keel::call(keel_trace_new, context.get(), entry.name.c_str(), device.c_str(), &trace.p);
  std::vector<keel::Array> params, results;
  std::vector<keel_array*> in, out(entry.results.size());
  for (const Port& port : entry.params) {
    std::vector<keel_dim> sizes;
    for (const std::string& d : port.type.dims) sizes.push_back(dim_of(trace.p, d, dims));
    keel_array* made = nullptr;
    keel::call(keel_trace_param, trace.p, port.name.c_str(), port.type.dtype, sizes.data(),
               static_cast<int32_t>(sizes.size()), &made);
    params.push_back(keel::Array(made));
    in.push_back(made);
  }
  uint32_t count = 0;
  keel::call(keel_trace_entry, trace.p, static_cast<keel_tape*>(nullptr), from.get(), entry.name.c_str(),
             in.data(), static_cast<uint32_t>(in.size()), out.data(), static_cast<uint32_t>(out.size()),
             &count);
  for (uint32_t i = 0; i < count; i++) results.push_back(keel::Array(out[i]));
  for (uint32_t i = 0; i < count; i++)
    keel::call(keel_trace_result, trace.p, entry.results[i].name.c_str(), results[i].get());
  keep_names(trace.p, from.graph_of(entry.name));
  keel_module* made = nullptr;
  keel::call(keel_trace_end, trace.p, &made);
  return keel::Module::take(made);
}

bool has_symbol(const Entry& entry, const Dims& dims) {
  for (const Port& p : entry.params)
    for (const std::string& d : p.type.dims)
      if (!eval_dim(d, {}) && eval_dim(d, dims)) return true;
  return false;
}

// Test cases with other sizes are dropped.
void keep_cases(const Model& model, keel::Module& to, const std::map<std::string, Dims>& dims) {
  for (uint32_t i = 0; i < model.cases.size(); i++) {
    const StoredCase& stored = model.cases[i];
    const Entry& entry = pick_entry(model, stored.entry);
    keel::Case c = model.module.get_case(i, static_cast<uint32_t>(entry.params.size()),
                                         static_cast<uint32_t>(entry.results.size()));
    try {
      check_sizes(dims.at(entry.name), entry, c.in);
    } catch (const Fail& fail) {
      fmt::print(stderr, "keel convert: omitted test case \"{}\": {}\n", stored.name, fail.message);
      continue;
    }
    to.add_case(stored.name, entry.name, c, stored.rtol.value_or(0), stored.atol.value_or(0));
  }
}

}  // namespace

void specialise(const keel::Context& context, Model& model, const Args& args) {
  std::map<std::string, Dims> dims;
  for (const Entry& e : model.entries) dims[e.name] = bind_sizes(model, e);
  if (!std::any_of(model.entries.begin(), model.entries.end(),
                   [&](const Entry& e) { return has_symbol(e, dims[e.name]); }))
    return;
  if (model.entries.size() > 1 && args.verbose)
    fmt::print(stderr, "keel convert: sizes apply to all entries\n");
  const std::string device = pick_device(context, args.device);
  at(Stage::kRun, [&] {
    keel::Module made =
        rewritten(context, model.module, model.entries[0], dims[model.entries[0].name], device);
    for (size_t i = 1; i < model.entries.size(); i++) {
      const Entry& e = model.entries[i];
      made.link(rewritten(context, model.module, e, dims[e.name], device), e.name, e.name);
    }
    for (const auto& [key, value] : model.info.at("metadata").items())
      keel::call(keel_module_metadata, made.get(), key.c_str(), value.get<std::string>().c_str());
    keep_cases(model, made, dims);
    model.module = std::move(made);
  });
  read_info(model);
  model.sizes = {};
}

}  // namespace cli
