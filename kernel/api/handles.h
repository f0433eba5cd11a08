// handles.h: what is behind the opaque handles of keel.h, and the ways errors leave. A handle holds
// shared pointers, so freeing in any order is fine.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <tuple>
#include <vector>

#include "abi/keel.h"
#include "absl/functional/function_ref.h"
#include "kernel/base/mutex.h"
#include "kernel/device/move.h"
#include "kernel/graph/graph.h"
#include "kernel/plan/place.h"
#include "kernel/trace/context.h"
#include "kernel/trace/function.h"
#include "kernel/trace/tape.h"

namespace keel {

struct ModuleState {
  std::shared_ptr<Context> context;
  std::shared_ptr<Module> module;
  std::vector<std::shared_ptr<Module>> before;  // it was optimised: sessions may still use what it was
  std::vector<std::unique_ptr<keel_graph>> graphs;
  Mutex mutex;  // planning reads what building writes
};

struct FeedCast {  // of all sizes
  std::unique_ptr<Module> module;
  std::shared_ptr<Plan> plan;
};
struct SessionState {
  std::shared_ptr<ModuleState> module;
  Graph* graph = nullptr;
  Device* device = nullptr;
  PlanOptions options;
  PassChoice passes;
  Placing placing;
  bool exact_feeds = false;
  Mutex mutex;
  std::map<std::string, std::shared_ptr<Plan>> plans;           // by feeds, fetches and targets
  std::map<std::tuple<DType, int32_t, DType>, FeedCast> casts;  // of feeds: from, rank, to
};

}  // namespace keel

struct keel_variable {
  std::shared_ptr<keel::Variable> storage;
  std::atomic<int32_t> references{1};
};
struct keel_context {
  std::shared_ptr<keel::Context> state;
};
struct keel_error {
  keel_rc code;
  std::string message, op, node, plugin, hint;
};
struct keel_text {
  std::string text;
};
struct keel_graph {
  keel::ModuleState* owner;
  keel::Graph* graph;
};
struct keel_module {
  std::shared_ptr<keel::ModuleState> state;
};
struct keel_session {
  std::shared_ptr<keel::SessionState> state;
};
struct keel_trace {
  keel::Tracing tracing;
};
struct keel_tape : keel::Tape {
  using Tape::Tape;
};
struct keel_function {
  std::unique_ptr<keel::Function> function;
};
struct keel_plan {
  std::shared_ptr<keel::SessionState> session;
  std::shared_ptr<keel::Plan> plan;
};

namespace keel {

// A handle of its own for a module of this context.
inline keel_module* HandleOf(std::shared_ptr<Context> context, std::shared_ptr<Module> module) {
  auto state = std::make_shared<ModuleState>();
  state->context = std::move(context);
  state->module = std::move(module);
  return new keel_module{std::move(state)};
}

// Stores the error where the caller wants it and gives its code.
keel_rc Report(const absl::Status& status, keel_error** err);
absl::Status GiveText(std::string text, keel_text** out);

// The same where there may be no memory left to store one.
keel_rc ReportNoMemory(const char* function, keel_error** err) noexcept;

// The border: runs the body and lets nothing but a code out. The only exception that the kernel expects
// is a failing allocation. `function` is the caller's name. GuardInline: for calls that take nanoseconds.
template <typename Body>
keel_rc GuardInline(keel_error** err, const Body& body,
                    const char* function = __builtin_FUNCTION()) noexcept {
  try {
    try {
      absl::Status status = body();
      return status.ok() ? KEEL_OK : Report(status, err);
    } catch (const std::bad_alloc&) {
      return ReportNoMemory(function, err);
    } catch (const std::exception& e) {
      return Report(Internal(function, ": unexpected: ", e.what()), err);
    }
  } catch (...) {
    return ReportNoMemory(function, err);
  }
}
keel_rc Guard(keel_error** err, absl::FunctionRef<absl::Status()> body,
              const char* function = __builtin_FUNCTION()) noexcept;

// Options by name, each at most once; unknown ones are an error that lists the known.
struct Option {
  const char* name;
  absl::Status (*set)(void* target, const std::string& value);
};
absl::Status SetOptions(std::span<const Option> known, const keel_kv* given, uint32_t n, void* target);
absl::StatusOr<uint64_t> ParseNumber(std::string_view what, const std::string& text, uint64_t min,
                                     uint64_t max);
absl::Status SetThreads(const std::string& value, uint32_t* threads);
absl::Status SetMemory(const std::string& value, uint64_t* memory);
absl::Status SetTimeout(const std::string& value, uint32_t* ms);
absl::Status SetFlag(std::string_view what, const std::string& value, bool* flag);  // "0" or "1"
absl::Status SetLevel(const std::string& value, PassChoice* choice);

// The error that a caller's code left, as a status, so that it can be told with what the kernel knows
// besides.
absl::Status TakeError(keel_rc rc, keel_error* error);

absl::Status NeedPointer(const void* pointer, const char* what);

// report.cc
absl::StatusOr<std::string> ReportOf(Context& context, std::string_view what);
// info.cc
std::string ModuleInfo(const Module& module);

}  // namespace keel
