// regions.cc: see regions.h. Runs the passes on a copy of the module and reads its text.
#include "cli/measure/regions.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "cli/exit.h"
#include "cli/measure/work.h"
#include "cli/show/drawing.h"

namespace cli {
namespace {

// Splits "f32[2, b], i64[]".
std::vector<Sized> sized_types(const std::string& text, const Dims& dims) {
  std::vector<Sized> out;
  for (size_t from = 0; from < text.size();) {
    size_t end = std::min(text.find(']', from), text.size() - 1);
    std::optional<Type> type = parse_type(std::string_view(text).substr(from, end + 1 - from));
    Sized sized;
    if (!type) sized.dims = {NAN};
    for (size_t i = 0; type && i < type->dims.size(); i++) {
      std::optional<int64_t> n = eval_dim(type->dims[i], dims);
      sized.dims.push_back(n ? static_cast<double>(*n) : NAN);
    }
    out.push_back(sized);
    from = std::min(text.find_first_not_of(", ", end + 1), text.size());
  }
  return out;
}

bool unnamed(const std::string& name) {  // "v12", libkeel's name for an unnamed result
  return name.size() > 1 && name[0] == 'v' && std::all_of(name.begin() + 1, name.end(), [](char c) {
           return std::isdigit(static_cast<unsigned char>(c)) || c == '_';
         });
}

std::string unquoted(const std::string& name) {
  if (name.size() < 2 || name.front() != '"') return name;
  std::string out;
  for (size_t i = 1; i + 1 < name.size(); i++)
    if (name[i] != '\\' || name[++i]) out += name[i];
  return out;
}

// The name of the first named consumer.
std::string shown_name(const DrawnGraph& graph, size_t node) {
  std::string name = graph.nodes[node].out.empty() ? graph.nodes[node].op : graph.nodes[node].out[0];
  for (size_t i = node + 1; i < graph.nodes.size() && unnamed(name); i++) {
    const DrawnNode& reader = graph.nodes[i];
    if (!reader.out.empty() && std::find(reader.in.begin(), reader.in.end(), name) != reader.in.end())
      name = reader.out[0];
  }
  return unquoted(name);
}

Region region_of(const DrawnGraph& body, const Dims& dims) {
  std::map<std::string, Sized> types;
  for (const auto& [name, type] : body.params)
    for (const Sized& sized : sized_types(type, dims)) types[name] = sized;
  Region region;
  for (size_t n = 0; n < body.nodes.size(); n++) {
    const DrawnNode& node = body.nodes[n];
    Operands operands{node.op, {}, sized_types(node.type, dims)};
    for (const std::string& in : node.in) operands.in.push_back(types.contains(in) ? types[in] : Sized{});
    for (size_t k = 0; k < std::min(node.out.size(), operands.out.size()); k++)
      types[node.out[k]] = operands.out[k];
    region.nodes.push_back({shown_name(body, n), node.op, flops_of(operands)});
    region.flops += region.nodes.back().flops;
  }
  return region;
}

}  // namespace

Regions find_regions(Model& model, const Entry& entry, const std::string& device,
                     const keel::Options& options, const Dims& dims) {
  Regions regions;
  at(Stage::kRun, [&] { model.module.optimize(entry.name, device, options); });
  const std::vector<DrawnGraph> graphs = read_graphs(model.module.outline());
  for (const DrawnGraph& graph : graphs)
    for (const DrawnNode& node : graph.nodes) {
      if (node.op != "call" || node.out.empty()) continue;
      for (const DrawnGraph& body : graphs)
        if (node.attrs == "body=" + body.name || node.attrs.starts_with("body=" + body.name + ","))
          regions[unquoted(node.out[0])] = region_of(body, dims);
    }
  return regions;
}

std::string ops_in(const Region& region) {
  std::map<std::string, size_t> counts;
  for (const RegionNode& node : region.nodes) counts[node.op]++;
  std::vector<std::pair<std::string, size_t>> rows(counts.begin(), counts.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> parts;
  for (const auto& [op, count] : rows) parts.push_back(count > 1 ? fmt::format("{} {}", count, op) : op);
  return join(parts, ", ");
}

}  // namespace cli
