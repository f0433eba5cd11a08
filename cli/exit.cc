// exit.cc: the table of exit codes and the report of failures. See exit.h.
#include "cli/exit.h"

#include <fmt/core.h>
#include <stdio_ext.h>

#include <algorithm>
#include <cctype>
#include <new>
#include <nlohmann/json.hpp>
#include <system_error>

namespace cli {
namespace {

struct Row {
  keel_rc rc;
  Exit file, device, run;  // by stage
};
constexpr Row kTable[] = {
    {KEEL_CANCELLED, kLimit, kLimit, kLimit},
    {KEEL_UNKNOWN, kDevice, kDevice, kDevice},  // a plugin failed without saying why
    {KEEL_INVALID, kBadFile, kDevice, kTyped},
    {KEEL_NOT_FOUND, kBadFile, kDevice, kUsage},
    {KEEL_EXISTS, kBadFile, kDevice, kUsage},
    {KEEL_OOM, kLimit, kLimit, kLimit},
    {KEEL_PRECONDITION, kUsage, kDevice, kUsage},
    {KEEL_RANGE, kBadFile, kDevice, kTyped},
    {KEEL_UNIMPLEMENTED, kTyped, kDevice, kTyped},
    {KEEL_INTERNAL, kInternal, kInternal, kInternal},
    {KEEL_UNAVAILABLE, kDevice, kDevice, kDevice},
};

// Messages quote names of files and models, whose control bytes would steer the terminal.
std::string visible(std::string_view text) {
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += (byte < ' ' && c != '\n' && c != '\t') || byte == 0x7f ? fmt::format("\\x{:02x}", byte)
                                                                  : std::string(1, c);
  }
  return out;
}

void report(const std::string& command, bool json, const Fail& fail) {
  if (json) {
    nlohmann::ordered_json error{{"command", command}, {"exit", fail.code}, {"message", fail.message}};
    if (!fail.where.empty()) error["where"] = fail.where;
    if (!fail.hint.empty()) error["hint"] = fail.hint;
    nlohmann::ordered_json all{{"error", error}};
    // Messages quote input, which need not be UTF-8.
    fmt::print(stderr, "{}\n", all.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return;
  }
  fmt::print(stderr, "keel{}{}: {}\n", command.empty() ? "" : " ", command, visible(fail.message));
  if (!fail.where.empty()) fmt::print(stderr, "  at: {}\n", visible(fail.where));
  if (!fail.hint.empty()) fmt::print(stderr, "  hint: {}\n", visible(fail.hint));
}

// Levenshtein distance.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); j++) row[j] = j;
  for (size_t i = 1; i <= a.size(); i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); j++) {
      size_t change = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

// Rewrites messages of the C API for users of the command.
constexpr std::pair<std::string_view, std::string_view> kSpelled[] = {
    {"keel_context_cancel(context, 0) lets this context run again", ""},
    {" by keel_context_cancel", " by Ctrl-C"},
    {"the context's option \"memory\" is", "--memory is"},
    {"the option \"", "option \""},
    {"option \"timeout_ms\"", "--time-limit"},
    {"option \"dump_after\"", "--dump-after"},
    {"load plugins first (keel_plugin_load); ", ""},
    {", or name one as fallback", ", or give --fallback DEVICE"},
    {"name it as a target: it can be run but not fetched", "it has no result that could be fetched"},
    {"give it with fixed (command line: -i ", "give it (-i "},
};
// Options of libkeel whose flag has the same name.
constexpr std::string_view kFlags[] = {"threads", "memory", "lanes", "level",   "passes",  "place",
                                       "entry",   "strict", "fuel",  "plugins", "fallback"};

void replace_all(std::string& text, const std::string& from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

// Whether the text names a C function or a constant of the C API. Environment variables are for users, too.
bool names_api(const std::string& text) {
  for (size_t at = 0; (at = text.find("keel_", at)) != std::string::npos; at++)
    if (at == 0 || !std::isalnum(static_cast<unsigned char>(text[at - 1]))) return true;
  return text.find("keel::") != std::string::npos;
}

}  // namespace

std::string on_command_line(std::string text) {
  for (const auto& [said, spelled] : kSpelled) replace_all(text, std::string(said), spelled);
  for (std::string_view flag : kFlags)
    replace_all(text, fmt::format("option \"{}\"", flag), fmt::format("--{}", flag));
  return text;
}

Fail to_fail(Stage stage, const keel::Error& error) {
  Exit code = kInternal;
  for (const Row& row : kTable)
    if (row.rc == error.code())
      code = stage == Stage::kFile ? row.file : stage == Stage::kDevice ? row.device : row.run;
  std::vector<std::string> where;
  // Adds node and op to the message unless it names them already.
  auto add = [&](const char* kind, const std::string& name) {
    if (!name.empty() && std::string_view(error.what()).find(name) == std::string_view::npos)
      where.push_back(fmt::format("{} \"{}\"", kind, name));
  };
  add("node", error.node());
  add("op", error.op());
  add("plugin", error.plugin());
  std::string hint = on_command_line(error.hint());
  if (names_api(hint)) hint.clear();  // a hint for programmers
  return Fail(code, on_command_line(error.what()), hint, join(where, ", "));
}

int guarded(const std::string& command, const bool& json, int (*body)(void*), void* arg) {
  try {
    return body(arg);
  } catch (const Fail& fail) {
    report(command, json, fail);
    return fail.code;
  } catch (const keel::Error& error) {
    Fail fail = to_fail(Stage::kRun, error);
    report(command, json, fail);
    return fail.code;
  } catch (const std::system_error& e) {
    bool writing = std::string_view(e.what()).starts_with("cannot write to file");  // fmt's words
    Fail fail(writing ? kBadFile : kLimit,
              writing ? "cannot write to stdout: " + e.code().message() : std::string(e.what()));
    if (writing) __fpurge(stdout);  // or main() would find the same failure again
    std::clearerr(stdout);
    report(command, json, fail);
    return fail.code;
  } catch (const std::bad_alloc&) {
    report(command, json, Fail(kLimit, "out of memory"));
    return kLimit;
  } catch (const std::exception& e) {
    report(command, json, Fail(kInternal, e.what(), "this is a defect of keel: please report it"));
    return kInternal;
  }
}

std::string closest(const std::string& name, const std::vector<std::string>& known) {
  const std::string* best = nullptr;
  size_t least = std::max<size_t>(2, name.size() / 2) + 1;
  for (const std::string& k : known) {
    if (name.size() > 200 || k.size() > 200) continue;
    if (size_t d = distance(name, k); d < least) {
      least = d;
      best = &k;
    }
  }
  return best ? fmt::format("did you mean \"{}\"?", *best) : "";
}

std::string closest_quoted(const std::string& name, const std::string& message) {
  std::vector<std::string> quoted;
  for (size_t at = 0; (at = message.find_first_of("'\"", at)) != std::string::npos;) {
    size_t end = message.find(message[at], at + 1);
    if (end == std::string::npos) break;
    std::string word = message.substr(at + 1, end - at - 1);
    if (word != name) quoted.push_back(word);
    at = end + 1;
  }
  return closest(name, quoted);
}

std::string join(const std::vector<std::string>& parts, const std::string& between) {
  std::string out;
  for (const std::string& p : parts) out += (out.empty() ? "" : between) + p;
  return out;
}

}  // namespace cli
