// observe.cc: see observe.h.
#include "cli/measure/observe.h"

#include <fmt/core.h>

#include <map>

#include "cli/data/scalar.h"
#include "cli/exit.h"
#include "cli/show/print.h"

namespace cli {
namespace {

std::string text_or(const char* text, const char* otherwise) { return text && *text ? text : otherwise; }

Json named_json(const NamedArrays& arrays) {
  Json out = Json::array();
  for (const auto& [name, array] : arrays) {
    Json one = array_json(array);
    one["name"] = name;
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

std::vector<LaunchNames> launch_names(const keel::Plan& plan, std::span<const keel::Array> in) {
  std::vector<LaunchNames> all;
  std::map<std::string, int> count;  // previous launches of that node
  Json report = Json::parse(plan.report(in));
  for (const Json& launch : report.at("launches")) {
    std::string node = cell(launch.at("node"));
    int before = count[node]++;
    LaunchNames names;
    for (const Json& value : launch.at("in")) {
      std::string name = cell(value.at("name"));
      names.in.push_back(name.empty() ? fmt::format("in {}", names.in.size()) : name);
    }
    for (const Json& value : launch.at("out")) {
      std::string name = cell(value.at("name"));
      size_t i = names.out.size();
      names.out.push_back(!name.empty() ? name
                          : i == 0      ? fmt::format("{}#{}", node, before)
                                        : fmt::format("{}#{}_{}", node, before, i));
    }
    all.push_back(std::move(names));
  }
  return all;
}

Seen copy_event(const keel::Context& context, const keel_event& event,
                const std::vector<LaunchNames>& names) {
  Seen seen{event.index, text_or(event.node, "?"), text_or(event.op, "?"), text_or(event.impl, "?"), "", {},
            {}};
  const LaunchNames* known = event.index < names.size() ? &names[event.index] : nullptr;
  auto add = [&](NamedArrays& to, const std::vector<std::string>* called, const char* kind,
                 const keel_tensor* tensor) {
    if (!tensor) return;  // an omitted operand, which the names omit, too
    size_t n = to.size();
    std::string name = called && n < called->size() ? (*called)[n] : fmt::format("{} {}", kind, n);
    to.emplace_back(name, keel::Array::copy_of(context, *tensor));
  };
  for (uint32_t i = 0; i < event.n_in; i++) add(seen.in, known ? &known->in : nullptr, "in", event.in[i]);
  for (uint32_t i = 0; i < event.n_out; i++)
    add(seen.out, known ? &known->out : nullptr, "out", event.out[i]);
  return seen;
}

std::string seen_title(const Seen& seen) {
  return fmt::format("node {} \"{}\"{} ({}, impl {})", seen.index, seen.node,
                     seen.in_model.empty() ? "" : fmt::format(", in the model \"{}\"", seen.in_model),
                     seen.op, seen.impl);
}

// Several arrays are shown together, so that fewer elements of each are read.
void print_values(const char* title, const NamedArrays& arrays) {
  constexpr int64_t kWhole = 64;
  fmt::print("{}:\n", title);
  for (const auto& [name, array] : arrays)
    fmt::print("{}: {}\n{}\n", name, type_text(array.tensor()), array_text(array, kWhole));
}

Json seen_json(const Seen& seen) {
  return {{"index", seen.index}, {"node", seen.node},         {"op", seen.op},
          {"impl", seen.impl},   {"in", named_json(seen.in)}, {"out", named_json(seen.out)}};
}

bool is_called(const keel_event& event, const NodeNames& names, const std::string& pattern) {
  auto is = [&](const char* name) {
    return name && (matches(pattern, name) || matches(pattern, names.node_of(name)));
  };
  if (is(event.node)) return true;
  for (uint32_t i = 0; i < event.n_out; i++)
    if (is(event.out_names[i])) return true;
  return false;
}

Watch parse_watch(const std::string& text) {
  Watch watch;
  size_t equals = text.rfind('=');
  if (equals != std::string::npos) watch.nodes = text.substr(0, equals);
  for (size_t start = equals + 1; start <= text.size();) {
    size_t bar = std::min(text.find('|', start), text.size());
    std::string word = text.substr(start, bar - start);
    if (word != "nan" && word != "inf")
      throw Fail(kUsage, "--watch " + text + ": cannot watch for \"" + word + "\"",
                 "expected nan, inf or 'nan|inf', optionally after a node pattern: 'conv*=nan'");
    (word == "nan" ? watch.nan : watch.inf) = true;
    start = bar + 1;
  }
  return watch;
}

std::string watched(const keel::Array& array, Watch watch) {
  int64_t nans = 0, infs = 0;
  const keel::PlainElements elements(array);
  visit(elements.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_floating<T>) {
      const T* p = static_cast<const T*>(elements.data());
      for (int64_t i = 0; i < array.size(); i++) {
        nans += std::isnan(static_cast<double>(p[i]));
        infs += std::isinf(static_cast<double>(p[i]));
      }
    }
  });
  std::vector<std::string> found;
  if (watch.nan && nans) found.push_back(fmt::format("{} NaN", nans));
  if (watch.inf && infs) found.push_back(fmt::format("{} inf", infs));
  return found.empty() ? "" : fmt::format("{} of {} elements", join(found, ", "), array.size());
}

}  // namespace cli
