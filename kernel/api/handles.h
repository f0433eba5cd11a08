// handles.h: the structs behind the opaque handles of keel.h; checks of parameters; errors. Handles hold
// shared pointers, so they may be freed in any order.
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
#include "kernel/language/graph/graph.h"
#include "kernel/program/trace/context.h"
#include "kernel/program/trace/function.h"
#include "kernel/program/trace/tape.h"
#include "kernel/runtime/device/move.h"
#include "kernel/runtime/plan/place.h"

namespace keel {

struct ModuleState {
  std::shared_ptr<Context> context;
  std::shared_ptr<Module> module;
  std::vector<std::shared_ptr<Module>> before;  // versions before optimisation, which sessions may still use
  std::vector<std::unique_ptr<keel_graph>> graphs;
  Mutex mutex;  // planning reads graphs under construction
};

// A plan with its request in values and nodes of the graph, so that it can be recreated.
struct Prepared {
  std::vector<ValueId> feeds, fetches;
  std::vector<NodeId> targets;
  std::shared_ptr<Plan> plan;
  size_t rules = 0;  // of the session's placing at that time
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
  std::map<std::string, std::shared_ptr<Prepared>> plans;  // by feeds, fetches and targets
  std::vector<std::shared_ptr<Plan>> declined;  // replaced after an impl declined; handles may still run them
  std::map<std::tuple<DType, int32_t, DType>, std::shared_ptr<Plan>> casts;  // of feeds: from, rank, to
};

}  // namespace keel

struct keel_variable {
  std::shared_ptr<keel::Context> context;
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
  bool lent = false, freed = false;  // lent: to a program or block; freed: it tried to free the trace
  ~keel_trace() {                    // symbolic arrays may keep the body longer
    if (tracing.owns_body) tracing.trace->Leave();
  }
};
struct keel_tape : keel::Tape {
  using Tape::Tape;
};
struct keel_function {
  std::unique_ptr<keel::Function> function;
};
struct keel_plan {
  std::shared_ptr<keel::SessionState> session;
  std::shared_ptr<keel::Prepared> prepared;
  std::atomic<keel::Plan*> plan;  // the plan of `prepared`, or a later replacement
};

namespace keel {

// The parts of an error: their names in a status, and their texts, in the order of KEEL_ERROR_MESSAGE and so
// on.
struct ErrorPart {
  std::string_view fact;
  std::string keel_error::*text;
};
inline constexpr ErrorPart kErrorParts[] = {{"", &keel_error::message},
                                            {kErrorOp, &keel_error::op},
                                            {kErrorNode, &keel_error::node},
                                            {kErrorPlugin, &keel_error::plugin},
                                            {kErrorHint, &keel_error::hint}};

// A new handle for a module of this context.
inline keel_module* HandleOf(std::shared_ptr<Context> context, std::shared_ptr<Module> module) {
  auto state = std::make_shared<ModuleState>();
  state->context = std::move(context);
  state->module = std::move(module);
  return new keel_module{std::move(state)};
}

// Stores the error in *err, unless err is null, and returns its code.
keel_rc Report(const absl::Status& status, keel_error** err);

// Store the result of a function in the variables of the caller.
absl::Status Give(absl::StatusOr<std::string> text, keel_text** out);
inline absl::Status Give(absl::StatusOr<ArrayRef> array, keel_array** out) {
  if (array.ok()) *out = array->Detach();
  return array.status();
}
absl::Status Give(absl::StatusOr<Results> arrays, keel_array** out, uint32_t room, uint32_t* n_out);
template <typename T, typename Out>
absl::Status Give(absl::StatusOr<T> number, Out* out) {
  if (number.ok()) *out = *number;
  return number.status();
}

// The same if there may be no memory left for an error object.
keel_rc ReportNoMemory(const char* function, keel_error** err) noexcept;

// Requirements of a function: "out in[n_in]". Each word is a parameter that must not be NULL. Followed by [n]
// it is a list, which may be NULL if its count is 0; then `*`: no entry is NULL, `?`: the list may be NULL,
// `!`: both. (ndim): a count of dims; {size}: of bytes. Given contains the values in this order: each
// pointer, then its count.
enum class Need : uint64_t { kPointer = 1, kList, kEntries, kOptional, kDims, kBytes, kOptionalEntries };
struct Needs {
  const char* text;
  uint64_t kinds = 0;  // four bits each, the first in the lowest
  consteval Needs(const char* s) : text(s) {
    for (int shift = 0; *s; shift += 4) {
      char mark = *s == ' ' ? *++s : *s;
      while (*s && *s != ' ')
        mark = *s == '[' || *s == '(' || *s == '{' || *s == '*' || *s == '?' || *s == '!' ? *s : mark, s++;
      Need need = mark == '['   ? Need::kList
                  : mark == '(' ? Need::kDims
                  : mark == '{' ? Need::kBytes
                  : mark == '*' ? Need::kEntries
                  : mark == '?' ? Need::kOptional
                  : mark == '!' ? Need::kOptionalEntries
                                : Need::kPointer;
      kinds |= static_cast<uint64_t>(need) << shift;
    }
  }
};
struct Word {
  uintptr_t value;
  template <typename T>
  Word(T* p) : value(reinterpret_cast<uintptr_t>(p)) {}
  Word(int32_t n) : value(static_cast<uintptr_t>(static_cast<intptr_t>(n))) {}
  Word(uint32_t n) : value(n) {}
  Word(uint64_t n) : value(n) {}
};
using Given = std::initializer_list<Word>;
absl::Status CheckGiven(std::string_view function, const char* text, uint64_t kinds, const Word* given);
inline absl::Status CheckGiven(std::string_view function, Needs needs, Given given) {
  return CheckGiven(function, needs.text, needs.kinds, given.begin());
}
// A single branch for hot functions: false if all pointers and counts are valid, otherwise call CheckGiven.
template <typename... T>
bool NeedsCheck(uint32_t counts, const T*... pointers) {
  return ((((reinterpret_cast<uintptr_t>(pointers) - 1) >> 63) | ...) | counts >> 20) != 0;
}

// The boundary of the library: runs the body and turns errors and exceptions into a code and *err. The only
// exception that the kernel expects is a failed allocation. `function` is the name of the caller.
// GuardInline is for hot functions.
template <typename Body>
[[gnu::always_inline]] inline keel_rc GuardInline(keel_error** err, const Body& body,
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
keel_rc Guard(keel_error** err, const char* text, uint64_t kinds, const Word* given,
              absl::FunctionRef<absl::Status()> body, const char* function) noexcept;
inline keel_rc Guard(keel_error** err, Needs needs, Given given, absl::FunctionRef<absl::Status()> body,
                     const char* function = __builtin_FUNCTION()) noexcept {
  return Guard(err, needs.text, needs.kinds, given.begin(), body, function);
}

// Guard, with the module locked.
keel_rc GuardModule(keel_module* m, keel_error** err, Needs needs, Given given,
                    absl::FunctionRef<absl::Status(Module&)> body,
                    const char* function = __builtin_FUNCTION()) noexcept;
keel_rc GuardGraph(keel_graph* g, keel_error** err, Needs needs, Given given,
                   absl::FunctionRef<absl::Status(Graph&)> body,
                   const char* function = __builtin_FUNCTION()) noexcept;

// The current trace of a program; null: it runs eagerly.
inline Trace* TraceOf(const keel_trace* within) {
  return within && within->tracing.trace ? within->tracing.trace->Current() : nullptr;
}
// The tape of a call, or of its program; may be null.
inline Tape* TapeOf(Tape* tape, const keel_trace* within) {
  return tape || !within ? tape : within->tracing.tape;
}

// An object of the caller, released by release(arg) after its last use. A call that fails takes nothing, so
// `release` is set after the last step that can fail.
struct CallerObject {
  void* arg;
  void (*release)(void*) = nullptr;
  ~CallerObject() {
    if (release) release(arg);
  }
};

// Calls a callback and returns its error as a status; frees the callback's error object. Violations of the
// rules (a C++ exception, an unknown code, an error with KEEL_OK) are errors that describe them. lent: the
// trace passed to the callback.
absl::Status CallBack(keel_trace& lent, absl::FunctionRef<keel_rc(keel_error**)> code);
absl::Status RefuseLent(const keel_trace* t, std::string_view function, std::string_view parameter);

// graph.cc: stores dtype, shape and rank of a type in the non-null outputs; a symbolic dim is -1.
void GiveType(const TensorType& type, keel_dt* dtype, int64_t* shape, int32_t* ndim);
// gradient.cc
absl::Status CheckGradientFlags(std::string_view function, uint32_t flags, uint32_t n_ys, bool seeds);
// For a text parameter with fixed choices.
inline absl::Status UnknownChoice(std::string_view function, std::string_view parameter, std::string_view got,
                                  std::string_view choices) {
  return Invalid(function, ": '", parameter, "' is \"", got, "\"; expected one of ", choices);
}

// report.cc
absl::StatusOr<std::string> ReportOf(Context& context, std::string_view caller, std::string_view what);
// info.cc
std::string ModuleInfo(const Module& module);

}  // namespace keel
