// inputs.cc: arrays for an entry's parameters, from the user's flags. See load.h.
//
// How to read it: names are checked first, so that one error lists all faults; then inputs with explicit
// shapes are created, which binds the symbolic dims of the others.
#include <fmt/core.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/data/fill.h"
#include "cli/data/load.h"
#include "cli/data/sizes.h"
#include "cli/exit.h"

namespace cli {
namespace {

const InputSpec* find_input(const std::vector<InputSpec>& given, const std::string& name) {
  for (const InputSpec& in : given)
    if (in.name == name) return &in;
  return nullptr;
}

void refuse_unknown(const Model& model, const Entry& entry, const std::vector<InputSpec>& given) {
  std::vector<std::string> names;
  for (const Port& p : entry.params) names.push_back(p.name);
  for (const InputSpec& in : given) {
    if (std::find(names.begin(), names.end(), in.name) != names.end()) continue;
    if (std::find(model.fixed.begin(), model.fixed.end(), in.name) != model.fixed.end()) continue;
    throw Fail(kUsage,
               fmt::format("entry \"{}\" has no input \"{}\"; it has {}", entry.name, in.name,
                           names.empty() ? "none" : join(names, ", ")),
               closest(in.name, names));
  }
}

// A ready -i argument for a parameter.
std::string example(const Port& port) {
  std::vector<std::string> dims;
  Dims sizes;
  for (const std::string& d : port.type.dims) dims.push_back(std::to_string(generated_dim(d, sizes)));
  const keel::DtypeRow* row = keel::find_dtype(port.type.dtype);
  bool floating = row && row->kind == 'f';
  return fmt::format("-i '{}={}[{}]={}'", port.name, keel::dtype_name(port.type.dtype), join(dims, ","),
                     floating ? "randn(7)" : "0");
}

void refuse_missing(const Entry& entry, const std::vector<InputSpec>& given) {
  std::vector<std::string> missing, examples;
  for (const Port& p : entry.params) {
    if (find_input(given, p.name)) continue;
    missing.push_back(fmt::format("\"{}\": {}", p.name, p.type.text()));
    examples.push_back(example(p));
  }
  if (missing.empty()) return;
  throw Fail(kUsage, fmt::format("missing input{} {}", missing.size() > 1 ? "s" : "", join(missing, "; ")),
             fmt::format("for example {}", join(examples, " ")));
}

keel::Array generate_array(const keel::Context& context, const Port& port, Dims& dims, uint64_t seed) {
  std::vector<int64_t> shape;
  for (const std::string& d : port.type.dims) shape.push_back(generated_dim(d, dims));
  keel::Array array = keel::Array::zeros(context, port.type.dtype, shape);
  const keel::DtypeRow* row = keel::find_dtype(port.type.dtype);
  if (row && row->kind == 'f') fill(array, fmt::format("randn({})", seed), port.name);
  return array;
}

// Whether a cast stays within its kind or widens it, in the order bool, unsigned, signed, float.
bool same_kind(keel_dt from, keel_dt to) {
  auto rank = [](keel_dt dtype) {
    const keel::DtypeRow* row = keel::find_dtype(dtype);
    return row ? std::string_view("buif").find(row->kind) : std::string_view::npos;
  };
  return rank(from) <= rank(to);
}

Port port_of(const keel::Graph& graph, const std::string& name) {
  keel_value value = graph.find(name);
  Port port{name, {}};
  int64_t shape[KEEL_MAX_RANK];
  int32_t ndim = 0;
  keel::call(keel_graph_value_at, graph.get(), value, nullptr, nullptr, &port.type.dtype, shape, &ndim);
  for (int32_t d = 0; d < ndim; d++)
    port.type.dims.push_back(shape[d] < 0 ? fmt::format("{}.{}", name, d) : std::to_string(shape[d]));
  return port;
}

}  // namespace

Entry choose_ports(Model& model, const Entry& entry, const std::vector<InputSpec>& given,
                   const std::vector<std::string>& fetch, bool* cut) {
  auto param_of = [&](const InputSpec& in) {
    return std::find_if(entry.params.begin(), entry.params.end(),
                        [&](const Port& p) { return p.name == in.name; });
  };
  auto fixed = [&](const InputSpec& in) {
    return std::find(model.fixed.begin(), model.fixed.end(), in.name) != model.fixed.end();
  };
  auto own = [&](const InputSpec& in) { return fixed(in) || param_of(in) != entry.params.end(); };
  *cut = !fetch.empty() || !std::all_of(given.begin(), given.end(), own);
  if (!*cut) return entry;
  keel::Graph graph = model.module.graph_of(entry.name);
  Entry chosen{entry.name, {}, fetch.empty() ? entry.results : std::vector<Port>()};
  std::vector<std::string> names;
  for (const Port& p : entry.params) names.push_back(p.name);
  auto find = [&](const std::string& name, const char* doing) {
    try {
      return port_of(graph, name);
    } catch (const keel::Error& error) {
      throw Fail(kUsage, fmt::format("cannot {} \"{}\": {}", doing, name, error.what()),
                 error.hint().empty() ? closest(name, names) : error.hint());
    }
  };
  for (const InputSpec& in : given) {
    if (auto param = param_of(in); param != entry.params.end())
      chosen.params.push_back(*param);
    else if (!fixed(in))
      chosen.params.push_back(find(in.name, "feed"));
  }
  for (const std::string& name : fetch) chosen.results.push_back(find(name, "fetch"));
  return chosen;
}

Inputs gather_inputs(const keel::Context& context, const Model& model, const Entry& entry,
                     const std::vector<InputSpec>& given, const Args& args, bool generate) {
  refuse_unknown(model, entry, given);
  if (!generate) refuse_missing(entry, given);
  Inputs out;
  out.arrays.resize(entry.params.size());
  const Dims fixed = bind_sizes(model, entry);
  Dims dims = fixed;
  for (bool own_shape : {true, false}) {
    for (size_t i = 0; i < entry.params.size(); i++) {
      const Port& port = entry.params[i];
      const InputSpec* in = find_input(given, port.name);
      if (!in || has_type(*in) != own_shape) continue;
      out.arrays[i] = make_array(context, *in, &port.type, dims);
      if (args.cast_inputs || (!args.exact_inputs && same_kind(out.arrays[i].dtype(), port.type.dtype)))
        out.arrays[i] = cast_array(context, out.arrays[i], port.type.dtype);
      bind_dims(port.type, out.arrays[i].shape(), dims);
    }
  }
  for (size_t i = 0; i < entry.params.size(); i++) {
    if (out.arrays[i]) continue;
    out.arrays[i] = generate_array(context, entry.params[i], dims, i);
    std::vector<std::string> sizes;
    for (int64_t d : out.arrays[i].shape()) sizes.push_back(std::to_string(d));
    out.generated.push_back(fmt::format("{}={}[{}]", entry.params[i].name,
                                        keel::dtype_name(entry.params[i].type.dtype), join(sizes, ",")));
  }
  check_sizes(fixed, entry, out.arrays);
  return out;
}

void report_generated(const Args& args, const Inputs& inputs) {
  if (inputs.generated.empty()) return;
  fmt::print(stderr, "keel {}: generated {}\n", args.command->name, join(inputs.generated, ", "));
}

keel::Array packed(const keel::Context& context, const keel::Array& array) {
  return array.contiguous() ? array : keel::Array::copy_of(context, array.tensor());
}

}  // namespace cli
