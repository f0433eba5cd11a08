// context.cc: errors, texts, options, contexts and plugins (keel.h).
#include <sched.h>

#include <algorithm>
#include <cstdlib>

#include "kernel/api/handles.h"
#include "kernel/api/options.h"
#include "kernel/base/timeline.h"
#include "kernel/runtime/plugin/host.h"

#ifndef KEEL_VERSION
#define KEEL_VERSION "0.1.0"
#endif

namespace keel {

namespace {
// The error if there is no memory for an error object; never freed.
keel_error no_memory{KEEL_OOM, "out of memory, even for an error message", "", "",
                     "",       "free memory, or run less at once"};
}  // namespace

keel_rc Report(const absl::Status& status, keel_error** err) {
  if (status.ok()) return KEEL_OK;
  auto code = static_cast<keel_rc>(status.code());
  if (!err) return code;
  auto error = std::make_unique<keel_error>(code, std::string(status.message()));
  for (const auto& [fact, text] : std::span(kErrorParts).subspan(1)) (*error).*text = ErrorFact(status, fact);
  *err = error.release();
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

keel_rc Guard(keel_error** err, const char* text, uint64_t kinds, const Word* given,
              absl::FunctionRef<absl::Status()> body, const char* function) noexcept {
  return GuardInline(
      err,
      [&] {
        absl::Status status = CheckGiven(function, text, kinds, given);
        return status.ok() ? body() : status;
      },
      function);
}

absl::Status Give(absl::StatusOr<std::string> text, keel_text** out) {
  if (text.ok()) *out = new keel_text{*std::move(text)};
  return text.status();
}

absl::Status Give(absl::StatusOr<Results> arrays, keel_array** out, uint32_t room, uint32_t* n_out) {
  RETURN_IF_ERROR(arrays.status());
  if (arrays->size() > room) return NoRoom("the call", arrays->size(), room);
  for (size_t i = 0; i < arrays->size(); i++) out[i] = (*arrays)[i].Detach();
  *n_out = static_cast<uint32_t>(arrays->size());
  return absl::OkStatus();
}

namespace {

constexpr uint64_t kMost[] = {0, 0, 1 << 20, 1 << 20, 1 << 20, KEEL_MAX_RANK, uint64_t{1} << 47, 1 << 20};

// The index of the first entry that is NULL.
uint64_t FirstNull(uintptr_t list, uint64_t n) {
  const auto* entries = reinterpret_cast<const void* const*>(list);
  return static_cast<uint64_t>(std::find(entries, entries + n, nullptr) - entries);
}

// The error of a wrong parameter. at: its index in the text; n: its count, if it has one.
absl::Status Misused(std::string_view function, std::string_view text, uint64_t at, Need need,
                     uintptr_t pointer, uint64_t n) {
  for (uint64_t k = 0; k < at; k++) text.remove_prefix(text.find(' ') + 1);
  text = text.substr(0, text.find(' '));
  const size_t open = text.find_first_of("[({");
  const std::string_view name = text.substr(0, open);
  if (need == Need::kPointer) return Invalid(function, ": '", name, "' is NULL; a pointer is needed");
  text.remove_prefix(open + 1);
  const std::string_view count = text.substr(0, text.find_first_of("])}"));
  const auto shown = static_cast<int64_t>(n);
  if (n > kMost[static_cast<size_t>(need)])
    return Invalid(function, ": '", count, "' is ",
                   need == Need::kBytes ? absl::StrCat(n) : absl::StrCat(shown), "; at least 0 and at most ",
                   kMost[static_cast<size_t>(need)]);
  if (!pointer) return Invalid(function, ": '", name, "' is NULL, but '", count, "' is ", n);
  return Invalid(function, ": '", name, "[", FirstNull(pointer, n), "]' is NULL; a pointer is needed");
}

}  // namespace

absl::Status CheckGiven(std::string_view function, const char* text, uint64_t kinds, const Word* given) {
  for (uint64_t at = 0; kinds; kinds >>= 4, at++) {
    auto need = static_cast<Need>(kinds & 15);
    uintptr_t pointer = given++->value;
    uint64_t n = need == Need::kPointer ? 1 : given++->value;
    bool may_miss = need == Need::kOptional || need == Need::kOptionalEntries;
    bool whole = need == Need::kEntries || (need == Need::kOptionalEntries && pointer);
    bool fine = need == Need::kPointer ? pointer != 0
                                       : n <= kMost[kinds & 15] && (pointer || !n || may_miss) &&
                                             (!whole || FirstNull(pointer, n) == n);
    if (!fine) return Misused(function, text, at, need, pointer, n);
  }
  return absl::OkStatus();
}

namespace {

uint32_t UsableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set)) return 1;
  return static_cast<uint32_t>(std::max(1, CPU_COUNT(&set)));
}

// Starts the timeline of KEEL_TRACE, once per process. A failure does not fail the new context.
void BeginTimeline() {
  static std::atomic<bool> begun{false};
  const char* path = secure_getenv("KEEL_TRACE");
  if (!path || !*path || begun.exchange(true)) return;
  absl::Status status = Timeline::Begin(path, Timeline::kRuns);
  if (!status.ok()) HostTable().log(KEEL_LOG_WARNING, absl::StrCat("KEEL_TRACE: ", status.message()).c_str());
}

}  // namespace
}  // namespace keel

using namespace keel;

uint32_t keel_abi_draft(void) { return KEEL_ABI_DRAFT; }
uint32_t keel_abi_version(void) { return KEEL_ABI_MAJOR << 16 | KEEL_ABI_MINOR; }
const char* keel_version(void) { return KEEL_VERSION; }
keel_rc keel_error_code(const keel_error* e) { return e ? e->code : KEEL_OK; }
const char* keel_error_text(const keel_error* e, int32_t part) {
  const auto at = static_cast<uint32_t>(part);
  return e && at < std::size(kErrorParts) ? (e->*kErrorParts[at].text).c_str() : "";
}
keel_rc keel_error_new(keel_rc code, const char* message, keel_error** out) {
  const bool is_error = code != KEEL_OK && IsCode(code);
  return Guard(out, [&] {
    return Error(is_error ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown,
                 message ? message : "");
  });
}
void keel_error_free(keel_error* e) {
  if (e != &no_memory) delete e;
}
const char* keel_text_data(const keel_text* t, uint64_t* size) {
  if (size) *size = t ? t->text.size() : 0;
  return t ? t->text.c_str() : "";
}
void keel_text_free(keel_text* t) { delete t; }

keel_rc keel_context_new(const keel_kv* options, uint32_t n, keel_context** out, keel_error** err) {
  return Guard(err, "options[n_options] out", {options, n, out}, [&]() -> absl::Status {
    auto context = std::make_shared<Context>();
    context->threads = UsableCores();
    RETURN_IF_ERROR(SetOptions({Option::Threads(&context->threads), Option::Memory(&context->memory),
                                Option::Text("plugins", &context->plugins)},
                               options, n));
    BeginTimeline();
    *out = new keel_context{std::move(context)};
    return absl::OkStatus();
  });
}

void keel_context_free(keel_context* c) { delete c; }

void keel_context_cancel(keel_context* c, int32_t on) {
  if (c) c->state->stopper.asked.store(on ? 1 : 0, std::memory_order_relaxed);
}

keel_rc keel_plugin_load(keel_context* c, const char* path, keel_error** err) {
  return Guard(err, "context", {c}, [&]() -> absl::Status {
    if (path) return c->state->registry.LoadFile(path, "");
    c->state->registry.Scan(c->state->plugins);
    return absl::OkStatus();
  });
}

keel_rc keel_plugin_add(keel_context* c, const keel_plugin* table, keel_error** err) {
  return Guard(err, "context plugin", {c, table},
               [&]() -> absl::Status { return c->state->registry.Add(table, "").status(); });
}

const char* keel_device_name(keel_context* c, uint32_t i) {
  const char* name = nullptr;
  if (!c) return name;
  (void)Guard(nullptr, [&] {
    if (Device* device = c->state->registry.DeviceAt(i)) name = device->name().c_str();
    return absl::OkStatus();
  });
  return name;
}

keel_rc keel_context_report(keel_context* c, const char* what, keel_text** out, keel_error** err) {
  return Guard(err, "context what out", {c, what, out}, [&, caller = __func__]() -> absl::Status {
    return Give(ReportOf(*c->state, caller, what), out);
  });
}
