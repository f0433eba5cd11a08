// context.cc: errors, texts, options, contexts and plugins of keel.h.
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "absl/strings/str_join.h"
#include "kernel/api/handles.h"
#include "kernel/base/timeline.h"

#ifndef KEEL_VERSION
#define KEEL_VERSION "0.1.0"
#endif

namespace keel {

namespace {
// Given out when there is no memory for an error of its own; never freed.
keel_error no_memory{KEEL_OOM, "no memory, not even to say for what", "", "",
                     "",       "free memory, or run less at once"};
}  // namespace

keel_rc Report(const absl::Status& status, keel_error** err) {
  if (status.ok()) return KEEL_OK;
  auto code = static_cast<keel_rc>(status.code());
  if (err)
    *err = new keel_error{code,
                          std::string(status.message()),
                          ErrorFact(status, kErrorOp),
                          ErrorFact(status, kErrorNode),
                          ErrorFact(status, kErrorPlugin),
                          ErrorFact(status, kErrorHint)};
  return code;
}

keel_rc ReportNoMemory(const char* function, keel_error** err) noexcept {
  try {
    return Report(Exhausted(function, ": no memory"), err);
  } catch (const std::exception&) {
    if (err) *err = &no_memory;
    return KEEL_OOM;
  }
}

keel_rc Guard(keel_error** err, absl::FunctionRef<absl::Status()> body, const char* function) noexcept {
  return GuardInline(err, body, function);
}

absl::Status GiveText(std::string text, keel_text** out) {
  *out = new keel_text{std::move(text)};
  return absl::OkStatus();
}

absl::Status NeedPointer(const void* pointer, const char* what) {
  return pointer ? absl::OkStatus() : Invalid(what, " is NULL");
}

absl::Status SetOptions(std::span<const Option> known, const keel_kv* given, uint32_t n, void* target) {
  for (uint32_t i = 0; i < n; i++) {
    if (!given || !given[i].key || !given[i].value) return Invalid("option ", i, " has no name or no value");
    auto option = std::find_if(known.begin(), known.end(),
                               [&](const Option& o) { return std::string_view(o.name) == given[i].key; });
    if (option == known.end()) {
      std::vector<std::string> names;
      for (const Option& o : known) names.emplace_back(o.name);
      return Invalid("option \"", given[i].key, "\" is not known; there are ", absl::StrJoin(names, ", "));
    }
    RETURN_IF_ERROR(option->set(target, given[i].value));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ParseNumber(std::string_view what, const std::string& text, uint64_t min,
                                     uint64_t max) {
  uint64_t n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < min || n > max)
    return Invalid("option \"", std::string(what), "\": got \"", text, "\", wanted a number from ", min,
                   " to ", max);
  return n;
}

absl::Status SetThreads(const std::string& value, uint32_t* threads) {
  ASSIGN_OR_RETURN(uint64_t n, ParseNumber("threads", value, 1, 4096));
  *threads = static_cast<uint32_t>(n);
  return absl::OkStatus();
}

absl::Status SetMemory(const std::string& value, uint64_t* memory) {
  ASSIGN_OR_RETURN(*memory, ParseNumber("memory", value, 1, UINT64_MAX));
  return absl::OkStatus();
}

absl::Status SetTimeout(const std::string& value, uint32_t* ms) {
  ASSIGN_OR_RETURN(uint64_t n, ParseNumber("timeout_ms", value, 1, UINT32_MAX));
  *ms = static_cast<uint32_t>(n);
  return absl::OkStatus();
}

absl::Status SetFlag(std::string_view what, const std::string& value, bool* flag) {
  if (value != "0" && value != "1")
    return Invalid("option \"", what, "\": got \"", value, "\", wanted 0 or 1");
  *flag = value == "1";
  return absl::OkStatus();
}

absl::Status SetLevel(const std::string& value, PassChoice* choice) {
  ASSIGN_OR_RETURN(uint64_t level, ParseNumber("level", value, 0, 3));
  choice->level = static_cast<int32_t>(level);
  choice->level_given = true;
  return absl::OkStatus();
}

namespace {

uint32_t UsableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set)) return 1;
  return static_cast<uint32_t>(std::max(1, CPU_COUNT(&set)));
}

constexpr Option kContextOptions[] = {
    {"threads",
     [](void* c, const std::string& v) { return SetThreads(v, &static_cast<Context*>(c)->threads); }},
    {"memory", [](void* c, const std::string& v) { return SetMemory(v, &static_cast<Context*>(c)->memory); }},
    {"plugins",
     [](void* c, const std::string& v) {
       static_cast<Context*>(c)->plugins = v;
       return absl::OkStatus();
     }},
};

// As the environment asks, once for a process.
absl::Status BeginTimeline() {
  static std::atomic<bool> begun{false};
  const char* path = std::getenv("KEEL_TRACE");
  if (!path || !*path || begun.exchange(true)) return absl::OkStatus();
  absl::Status status = Timeline::Begin(path, Timeline::kRuns);
  return status.ok() ? status : Error(status.code(), "KEEL_TRACE: ", status.message());
}

}  // namespace
}  // namespace keel

using namespace keel;

uint32_t keel_abi_version(void) { return KEEL_ABI_MAJOR << 16 | KEEL_ABI_MINOR; }
const char* keel_version(void) { return KEEL_VERSION; }
keel_rc keel_error_code(const keel_error* e) { return e ? e->code : KEEL_OK; }
const char* keel_error_message(const keel_error* e) { return e ? e->message.c_str() : ""; }
const char* keel_error_op(const keel_error* e) { return e ? e->op.c_str() : ""; }
const char* keel_error_node(const keel_error* e) { return e ? e->node.c_str() : ""; }
const char* keel_error_plugin(const keel_error* e) { return e ? e->plugin.c_str() : ""; }
const char* keel_error_hint(const keel_error* e) { return e ? e->hint.c_str() : ""; }
void keel_error_free(keel_error* e) {
  if (e != &no_memory) delete e;
}
const char* keel_text_data(const keel_text* t) { return t ? t->text.c_str() : ""; }
uint64_t keel_text_size(const keel_text* t) { return t ? t->text.size() : 0; }
void keel_text_free(keel_text* t) { delete t; }

keel_rc keel_open(const keel_kv* options, uint32_t n, keel_context** out, keel_error** err) {
  return Guard(err, [&]() -> absl::Status {
    RETURN_IF_ERROR(NeedPointer(out, "out"));
    auto context = std::make_shared<Context>();
    context->threads = UsableCores();
    RETURN_IF_ERROR(SetOptions(kContextOptions, options, n, context.get()));
    RETURN_IF_ERROR(BeginTimeline());
    *out = new keel_context{std::move(context)};
    return absl::OkStatus();
  });
}

void keel_close(keel_context* c) { delete c; }

void keel_cancel(keel_context* c, int32_t on) {
  if (c) c->state->stopper.asked.store(on ? 1 : 0, std::memory_order_relaxed);
}

keel_rc keel_plugin_scan(keel_context* c, keel_error** err) {
  return Guard(err, [&]() -> absl::Status {
    RETURN_IF_ERROR(NeedPointer(c, "context"));
    c->state->registry.Scan(c->state->plugins);
    return absl::OkStatus();
  });
}

keel_rc keel_plugin_load(keel_context* c, const char* path, keel_error** err) {
  return Guard(err, [&]() -> absl::Status {
    RETURN_IF_ERROR(NeedPointer(c, "context"));
    RETURN_IF_ERROR(NeedPointer(path, "path"));
    return c->state->registry.LoadFile(path, "");
  });
}

keel_rc keel_plugin_add(keel_context* c, const keel_plugin* table, keel_error** err) {
  return Guard(err, [&]() -> absl::Status {
    RETURN_IF_ERROR(NeedPointer(c, "context"));
    return c->state->registry.Add(table, "");
  });
}

uint32_t keel_device_count(keel_context* c) {
  return c ? static_cast<uint32_t>(c->state->registry.Devices().size()) : 0;
}

keel_rc keel_device_name(keel_context* c, uint32_t i, const char** out, keel_error** err) {
  return Guard(err, [&]() -> absl::Status {
    RETURN_IF_ERROR(NeedPointer(c, "context"));
    std::vector<Device*> devices = c->state->registry.Devices();
    if (i >= devices.size()) return NotFound("device ", i, " of ", devices.size());
    *out = devices[i]->name().c_str();
    return absl::OkStatus();
  });
}

keel_rc keel_report(keel_context* c, const char* what, keel_text** out, keel_error** err) {
  return Guard(err, [&]() -> absl::Status {
    RETURN_IF_ERROR(NeedPointer(c, "context"));
    RETURN_IF_ERROR(NeedPointer(what, "what"));
    ASSIGN_OR_RETURN(std::string text, ReportOf(*c->state, what));
    return GiveText(std::move(text), out);
  });
}
