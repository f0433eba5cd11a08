// load.cc: context, model, entry and device from flags. See load.h; inputs are in inputs.cc.
#include "cli/data/load.h"
#include "cli/command.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/data/bytes.h"
#include "cli/data/cpu_options.h"
#include "cli/data/node_names.h"
#include "cli/data/sizes.h"
#include "cli/exit.h"
#include "cli/measure/timing.h"

namespace cli {
namespace {

// "512M" to bytes; libkeel takes bytes only.
std::string memory_bytes(const std::string& text) {
  size_t digits = text.find_first_not_of("0123456789");
  uint64_t unit = 1;
  if (digits != std::string::npos) {
    size_t power = std::string_view("KMGT").find(static_cast<char>(std::toupper(text[digits])));
    unit =
        power == std::string_view::npos || digits + 1 != text.size() ? 0 : uint64_t{1} << (10 * (power + 1));
  }
  uint64_t bytes = 0;
  if (digits == 0 || text.empty() || text.size() > 15 || unit == 0 ||
      __builtin_mul_overflow(std::stoull(text), unit, &bytes))
    throw Fail(kUsage, "--memory " + text + ": expected a number of bytes", "for example --memory 512M");
  return std::to_string(bytes);
}

keel::Options limits(const Args& args) {
  keel::Options options;
  if (args.threads > 0) options.set("threads", std::to_string(args.threads));
  if (!args.memory.empty()) options.set("memory", memory_bytes(args.memory));
  return options;
}

// A text form begins with "keel", after comments.
bool is_text(std::string_view head) {
  while (!head.empty()) {
    size_t start = head.find_first_not_of(" \t\r\n");
    if (start == std::string_view::npos) return false;
    head.remove_prefix(start);
    if (head.front() != '#') return head.starts_with("keel ") || head.starts_with("keel\t");
    size_t line = head.find('\n');
    head = line == std::string_view::npos ? std::string_view() : head.substr(line);
  }
  return false;
}

std::string read_head(const std::string& path) {
  std::string head(4096, 0);
  FILE* f = std::fopen(path.c_str(), "rb");
  if (!f) throw Fail(kBadFile, "cannot read " + path + ": " + std::strerror(errno));
  size_t n = std::fread(head.data(), 1, head.size(), f);
  bool failed = std::ferror(f);
  std::fclose(f);
  if (failed) throw Fail(kBadFile, "cannot read " + path + " (is it a folder?)");
  head.resize(n);
  return head;
}

// Names in quotes within a message.
bool message_names(const std::string& message, const std::string& name) {
  for (char quote : {'\'', '"'})
    if (message.find(quote + name + quote) != std::string::npos) return true;
  return false;
}

// The type that a message gives for a name in quotes: 'sr': i64[].
std::optional<Type> type_in(const std::string& message, const std::string& name) {
  const std::string said = "'" + name + "': ";
  size_t at = message.find(said), end = message.find(']', at);
  if (at == std::string::npos || end == std::string::npos) return std::nullopt;
  return parse_type(std::string_view(message).substr(at + said.size(), end + 1 - at - said.size()));
}

// Whether lengths of sequences are missing, rather than values.
bool wants_length(const keel::Error& error) {
  return std::string_view(error.what()).find("--length") != std::string_view::npos;
}

// The error of an importer, with a suggestion for a misspelled name.
Fail import_failure(const keel::Error& error, const Sizes& sizes) {
  Fail fail = to_fail(Stage::kFile, error);
  if (error.code() == KEEL_PRECONDITION && fail.hint.empty() && !wants_length(error))
    fail.hint = "give the value, as in -i NAME=3 or -i NAME=@x.npy";
  const bool of_cut = sizes.cut && fail.message.find(": cut: ") != std::string::npos;
  if (error.code() != KEEL_NOT_FOUND && !of_cut) return fail;
  fail.code = kUsage;
  for (const auto& [name, size] : sizes.dims)
    if (message_names(fail.message, name)) fail.hint = closest_quoted(name, fail.message);
  for (const auto& [name, shape] : sizes.shapes)
    if (message_names(fail.message, name)) fail.hint = closest_quoted(name, fail.message);
  for (const auto& [name, length] : sizes.lengths)
    if (message_names(fail.message, name)) fail.hint = closest_quoted(name, fail.message);
  return fail;
}

// Imports; repeats with more fixed values while the importer requests values that the user gave.
keel::Module import_model(const keel::Context& context, const std::string& path, const Sizes& sizes,
                          const std::vector<InputSpec>& inputs, std::vector<std::string>& fixed) {
  keel::Options options;
  add_import_options(sizes, options);
  std::vector<keel::Array> values;
  for (;;) {
    try {
      return keel::Module::import_file(context, path, options, fixed, values);
    } catch (const keel::Error& error) {
      size_t before = fixed.size();
      for (const InputSpec& in : inputs) {
        bool taken = std::find(fixed.begin(), fixed.end(), in.name) != fixed.end();
        if (error.code() != KEEL_PRECONDITION || wants_length(error) || taken ||
            !message_names(error.what(), in.name))
          continue;
        std::optional<Type> type = type_in(error.what(), in.name);
        values.push_back(make_array(context, in, type ? &*type : nullptr, sizes.dims));
        fixed.push_back(in.name);
      }
      if (fixed.size() > before) continue;
      throw import_failure(error, sizes);
    }
  }
}

std::string stdin_path() {
  static const std::string path = [] {
    std::string bytes = read_file("-");
    if (bytes.empty()) throw Fail(kBadFile, "stdin is empty, expected a model");
    return file_in_memory("stdin", bytes);
  }();
  return path;
}

enum class Opened { kKeel, kText, kImported };

keel::Module open_module(const keel::Context& context, const std::string& path, Model& model,
                         const std::vector<InputSpec>& inputs, Opened& how) {
  std::string head = read_head(path);
  how = head.size() >= 12 && head.compare(8, 4, "KEEL") == 0 ? Opened::kKeel
        : is_text(head)                                      ? Opened::kText
                                                             : Opened::kImported;
  if (how == Opened::kKeel) return keel::Module::load(context, path);
  if (how == Opened::kText) return keel::Module::parse(context, read_file(path));
  return import_model(context, path, model.sizes, inputs, model.fixed);
}

Json parse_json(const std::string& text, const std::string& what) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw Fail(kInternal, "libkeel's report on " + what + " is not JSON");
  return json;
}

Port read_port(const Json& json) {
  Port port{json.at("name").get<std::string>(), {}};
  const keel::DtypeRow* row =
      keel::find_dtype(std::string_view(json.at("dtype").get_ref<const std::string&>()));
  port.type.dtype = row ? row->code : 0;
  for (const Json& d : json.at("dims"))
    port.type.dims.push_back(d.is_string() ? d.get<std::string>() : d.dump());
  return port;
}

std::optional<double> number_of(const Json& json, const char* key) {
  auto found = json.find(key);
  return found != json.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

}  // namespace

void read_info(Model& model) {
  model.entries.clear();
  model.cases.clear();
  model.info = parse_json(model.module.info(), "the module");
  for (const Json& e : model.info.at("entries")) {
    Entry entry{e.at("name").get<std::string>(), {}, {}};
    for (const Json& p : e.at("params")) entry.params.push_back(read_port(p));
    for (const Json& r : e.at("results")) entry.results.push_back(read_port(r));
    model.entries.push_back(std::move(entry));
  }
  for (const Json& c : model.info.at("cases"))
    model.cases.push_back({c.at("name").get<std::string>(), c.at("entry").get<std::string>(),
                           number_of(c, "rtol"), number_of(c, "atol")});
}

void log_verbose(const Args& args, const std::string& what) {
  if (args.verbose) fmt::print(stderr, "keel {}: {}\n", args.command->name, what);
}

keel::Context open_context(const Args& args) {
  set_cpu_options(args);
  keel::Options options = limits(args);
  if (!args.plugins.empty()) options.set("plugins", args.plugins);
  Clock::time_point start = Clock::now();
  return at(Stage::kDevice, [&] {
    keel::Context context(options);
    context.scan_plugins();
    const double ms = ms_since(start);
    if (args.verbose)  // listing devices loads the drivers of all
      log_verbose(args,
                  fmt::format("devices {}; plugins found in {:.1f} ms", join(context.devices(), ", "), ms));
    check_cpu_options(context, args);
    return context;
  });
}

Json facts(const keel::Context& context, const std::string& what) {
  return parse_json(at(Stage::kDevice, [&] { return context.report(what); }), what);
}

Model open_model(const keel::Context& context, const std::string& path, const Args& args,
                 const std::vector<InputSpec>& inputs) {
  constexpr const char* kHow[] = {"Keel file", "text", "imported"};
  Clock::time_point start = Clock::now();
  const std::string real = path == "-" ? stdin_path() : path;
  Model model{keel::Module::take(nullptr), {}, {}, {}, {}, parse_sizes(args)};
  Opened how = Opened::kKeel;
  try {
    model.module = at(Stage::kFile, [&] { return open_module(context, real, model, inputs, how); });
  } catch (Fail& fail) {
    if (size_t name = fail.message.find(real); path == "-" && name != std::string::npos)
      fail.message.replace(name, real.size(), "stdin");
    throw;
  }
  at(Stage::kFile, [&] { read_info(model); });
  if (how == Opened::kImported)
    drop_taken(model);
  else if (model.sizes.cut)
    throw Fail(kUsage,
               "--cut is for models that are imported, such as ONNX; this is a Keel file or its text");
  std::vector<std::string> names;
  for (const Entry& e : model.entries) names.push_back(e.name);
  log_verbose(args, fmt::format("opened {} ({}, entries {}) in {:.1f} ms", path == "-" ? "stdin" : path,
                                kHow[static_cast<size_t>(how)], join(names, ", "), ms_since(start)));
  return model;
}

const Entry& pick_entry(const Model& model, const std::string& name) {
  std::vector<std::string> names;
  for (const Entry& e : model.entries) names.push_back(e.name);
  if (names.empty()) throw Fail(kBadFile, "the file has no entry, so there is nothing to run");
  if (name.empty() && names.size() == 1) return model.entries[0];
  if (name.empty())
    throw Fail(kUsage, "the file has several entries: " + join(names, ", "), "choose with --entry NAME");
  for (const Entry& e : model.entries)
    if (e.name == name) return e;
  throw Fail(kUsage, "no entry \"" + name + "\"; the file has " + join(names, ", "), closest(name, names));
}

std::string device_of(const std::string& picked, const keel::Plan& plan) {
  return picked == "auto" ? Json::parse(plan.report()).at("device").get<std::string>() : picked;
}

std::string pick_device(const keel::Context& context, const std::string& name) {
  const std::string wanted = name.empty() ? "cpu" : name;
  try {
    context.report("devices:" + wanted);  // loads no driver of other devices
    return wanted;
  } catch (const keel::Error& e) {
    std::vector<std::string> devices = at(Stage::kDevice, [&] { return context.devices(); });
    if (name.empty() && devices.size() == 1) return devices[0];
    if (name.empty() && !devices.empty()) throw Fail(kDevice, e.what(), "choose with -d DEVICE");
    const std::string hint = closest(name, devices);
    throw Fail(kDevice, e.what(), hint.empty() ? e.hint() : hint + " " + e.hint());
  }
}

std::vector<std::string> pick_devices(const keel::Context& context, const char* flag,
                                      const std::string& list) {
  std::vector<std::string> out;
  for (size_t start = 0; start <= list.size();) {
    const size_t comma = std::min(list.find(',', start), list.size());
    out.push_back(pick_device(context, list.substr(start, comma - start)));
    start = comma + 1;
  }
  if (out.size() < 2)
    throw Fail(kUsage, fmt::format("{} {}: expected two devices or more", flag, list),
               fmt::format("for example {} reference,cpu", flag));
  return out;
}

keel::Options pass_options(const Args& args) {
  keel::Options options = limits(args);
  if (args.level >= 0) options.set("level", std::to_string(args.level));
  if (!args.passes.empty()) options.set("passes", args.passes);
  return options;
}

std::string without_fusion(const std::string& passes) {
  const bool listed = !passes.empty() && passes[0] != '-' && passes[0] != '+';
  return listed ? passes : (passes.empty() ? "" : passes + ",") + "-layout,-epilogue,-map";
}

keel::Options session_options(const Args& args, const std::string& entry, Model* model) {
  keel::Options options = pass_options(args);
  if (!entry.empty()) options.set("entry", entry);
  for (const std::string& rule : args.place)
    for (const std::string& r :
         model ? NodeNames(*model).place_rules(rule, model->module, entry) : std::vector{rule})
      options.set("place", r);
  if (!args.fallback.empty()) options.set("fallback", args.fallback);
  if (args.time_limit) options.set("timeout_ms", std::to_string(args.time_limit));
  if (args.strict) options.set("strict", "1");
  if (!args.lanes.empty()) options.set("lanes", args.lanes);
  if (args.exact_convolution) options.set("exact_convolution", "1");
  return options;
}

}  // namespace cli
