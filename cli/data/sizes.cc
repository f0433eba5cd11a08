// sizes.cc: see sizes.h. Writing sizes into a module is in specialise.cc.
#include "cli/data/sizes.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "cli/exit.h"

namespace cli {
namespace {

std::vector<std::string> symbols_of(const Model& model) {
  std::set<std::string> names;
  for (const Entry& e : model.entries)
    for (const Port& p : e.params)
      for (const std::string& d : p.type.dims) names.merge(symbols_in(d));
  return {names.begin(), names.end()};
}

std::vector<std::string> params_of(const Model& model) {
  std::set<std::string> names;
  for (const Entry& e : model.entries)
    for (const Port& p : e.params) names.insert(p.name);
  return {names.begin(), names.end()};
}

std::string list(const std::vector<std::string>& names) { return names.empty() ? "none" : join(names, ", "); }

Shape parse_shape(const std::string& argument, std::string_view text) {
  auto refuse = [&] {
    throw Fail(kUsage, "--shape " + argument + ": expected NAME=SIZES",
               "for example --shape x=1,3,48,192; ? keeps a size");
  };
  Shape shape;
  if (text.empty()) return shape;  // a scalar
  while (true) {
    size_t comma = std::min(text.find(','), text.size());
    std::string_view word = text.substr(0, comma);
    int64_t n = 0;
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), n);
    if (word == "?")
      shape.push_back(std::nullopt);
    else if (error != std::errc() || end != word.data() + word.size() || n < 0)
      refuse();
    else
      shape.push_back(n);
    if (comma == text.size()) return shape;
    text.remove_prefix(comma + 1);
  }
}

std::map<std::string, std::string> parse_lengths(const std::vector<std::string>& assignments) {
  std::map<std::string, std::string> lengths;
  for (const std::string& a : assignments) {
    const size_t equals = std::min(a.find('='), a.size());
    const std::string name = a.substr(0, equals), value = equals < a.size() ? a.substr(equals + 1) : "";
    const bool digits = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
    if (name.empty() || (!digits && value != "none"))
      throw Fail(kUsage, "--length " + a + ": expected NAME=NUMBER or NAME=none", "for example --length x=3");
    if (auto [at, added] = lengths.emplace(name, value); !added && at->second != value)
      throw Fail(kUsage, fmt::format("--length {} is given twice: {} and {}", name, at->second, value));
  }
  return lengths;
}

// alone: dims that are a plain symbol; they are bound first.
void bind_shape(const Port& port, const Shape& shape, bool alone, Dims& dims) {
  const std::string from = "--shape " + port.name;
  if (shape.size() != port.type.dims.size())
    throw Fail(kUsage,
               fmt::format("{}: {} sizes, but the input is {}", from, shape.size(), port.type.text()));
  for (size_t i = 0; i < shape.size(); i++) {
    const std::string& d = port.type.dims[i];
    if (!shape[i] || is_symbol(d) != alone) continue;
    std::optional<int64_t> known = eval_dim(d, dims);
    if (known && *known != *shape[i])
      throw Fail(kUsage,
                 fmt::format("{}: dim {} cannot be {}: it is {} in {}", from, i, *shape[i], *known,
                             port.type.text()),
                 eval_dim(d, {}) ? "sizes fixed in a file can be changed only when a model is imported" : "");
    if (!learn_dim(d, *shape[i], dims))
      throw Fail(kUsage,
                 fmt::format("{}: dim {} cannot be {}: no size makes {} equal to it", from, i, *shape[i], d));
  }
}

}  // namespace

Sizes parse_sizes(const Args& args) {
  Sizes sizes{parse_dims(args.dims), {}, parse_lengths(args.lengths), args.cut};
  for (const std::string& a : args.shapes) {
    size_t equals = a.find('=');
    std::string name = a.substr(0, equals);
    if (equals == std::string::npos || name.empty()) (void)parse_shape(a, "-");
    Shape shape = parse_shape(a, std::string_view(a).substr(equals + 1));
    if (auto [at, added] = sizes.shapes.emplace(name, shape); !added && at->second != shape)
      throw Fail(kUsage, fmt::format("--shape {} is given twice, with different sizes", name));
  }
  return sizes;
}

void add_import_options(const Sizes& sizes, keel::Options& options) {
  for (const auto& [name, size] : sizes.dims) options.set("dim." + name, std::to_string(size));
  for (const auto& [name, shape] : sizes.shapes) {
    std::vector<std::string> words;
    for (const auto& size : shape) words.push_back(size ? std::to_string(*size) : "?");
    options.set("shape." + name, join(words, ","));
  }
  for (const auto& [name, length] : sizes.lengths) options.set("length." + name, length);
  if (sizes.cut) options.set("cut", *sizes.cut);
}

void drop_taken(Model& model) {
  const std::vector<std::string> left = symbols_of(model);
  std::erase_if(model.sizes.dims,
                [&](const auto& d) { return std::find(left.begin(), left.end(), d.first) == left.end(); });
  std::erase_if(model.sizes.shapes, [&](const auto& s) {
    return model.sizes.lengths.contains(s.first) ||
           std::find(model.fixed.begin(), model.fixed.end(), s.first) != model.fixed.end();
  });
  model.sizes.lengths.clear();
}

Dims bind_sizes(const Model& model, const Entry& entry) {
  const std::vector<std::string> symbols = symbols_of(model), params = params_of(model);
  for (const auto& [name, size] : model.sizes.dims)
    if (std::find(symbols.begin(), symbols.end(), name) == symbols.end())
      throw Fail(kUsage,
                 fmt::format("--dim {}={}: the file has no such dim; it has {}", name, size, list(symbols)),
                 closest(name, symbols));
  for (const auto& [name, shape] : model.sizes.shapes)
    if (std::find(params.begin(), params.end(), name) == params.end())
      throw Fail(kUsage, fmt::format("--shape {}: the file has no such input; it has {}", name, list(params)),
                 closest(name, params));
  for (const auto& [name, length] : model.sizes.lengths)
    throw Fail(kUsage,
               fmt::format("--length {}={}: only a file that is imported has sequences", name, length));
  Dims dims = model.sizes.dims;
  for (bool alone : {true, false})
    for (const Port& p : entry.params)
      if (auto given = model.sizes.shapes.find(p.name); given != model.sizes.shapes.end())
        bind_shape(p, given->second, alone, dims);
  return dims;
}

void check_sizes(const Dims& fixed, const Entry& entry, const std::vector<keel::Array>& arrays) {
  for (size_t i = 0; i < entry.params.size() && !fixed.empty(); i++) {
    const Type& type = entry.params[i].type;
    for (size_t d = 0; d < type.dims.size() && type.dims.size() == arrays[i].shape().size(); d++) {
      std::optional<int64_t> size = eval_dim(type.dims[d], fixed);
      if (!size || *size == arrays[i].shape()[d] || eval_dim(type.dims[d], {})) continue;
      throw Fail(kUsage,
                 fmt::format("input \"{}\": dim {} is {}, but \"{}\" was fixed to {}", entry.params[i].name,
                             d, arrays[i].shape()[d], type.dims[d], *size),
                 "omit --dim and --shape, or give an array of that size");
    }
  }
}

}  // namespace cli
