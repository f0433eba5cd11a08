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
// A plan as it was asked for, by numbers of its graph, so that it can be made again.
struct Prepared {
  std::vector<ValueId> feeds, fetches;
  std::vector<NodeId> targets;
  std::shared_ptr<Plan> plan;
  size_t rules = 0;  // of the session's placing when it was made
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
  std::vector<std::shared_ptr<Plan>> declined;             // by an impl as it ran; handles may still run them
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
  bool lent = false, freed = false;  // to a program or block; which tried to free it
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
  std::atomic<keel::Plan*> plan;  // the prepared one, or what was made since
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

// What a function needs of its caller: "out in[n_in]". Each word is a parameter that must not be
// NULL; before `[`, a list, which may be if its count is 0; behind it `*`: no entry is NULL, `?`: the list
// may be left out, `!`: both. (ndim): a count of dims; {size}: of bytes. The words of Given follow: each
// pointer, then the count.
enum class Need : uint64_t { kPointer = 1, kList, kEntries, kLeftOut, kDims, kBytes, kLeftOutEntries };
struct Needs {
  const char* text;
  uint64_t kinds = 0;  // one in four bits, the first lowest
  consteval Needs(const char* s) : text(s) {
    for (int shift = 0; *s; shift += 4) {
      char mark = *s == ' ' ? *++s : *s;
      while (*s && *s != ' ')
        mark = *s == '[' || *s == '(' || *s == '{' || *s == '*' || *s == '?' || *s == '!' ? *s : mark, s++;
      Need need = mark == '['   ? Need::kList
                  : mark == '(' ? Need::kDims
                  : mark == '{' ? Need::kBytes
                  : mark == '*' ? Need::kEntries
                  : mark == '?' ? Need::kLeftOut
                  : mark == '!' ? Need::kLeftOutEntries
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
// The same for calls that take nanoseconds, in one branch: false: all is well.
template <typename... T>
bool Doubtful(uint32_t counts, const T*... pointers) {
  return ((((reinterpret_cast<uintptr_t>(pointers) - 1) >> 63) | ...) | counts >> 20) != 0;
}

// The border: runs the body and lets nothing but a code out. The only exception that the kernel expects
// is a failing allocation. `function` begins with the caller's name. GuardInline: for calls that take
// nanoseconds.
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
keel_rc Guard(keel_error** err, const char* text, uint64_t kinds, const Word* given,
              absl::FunctionRef<absl::Status()> body, const char* function) noexcept;
inline keel_rc Guard(keel_error** err, Needs needs, Given given, absl::FunctionRef<absl::Status()> body,
                     const char* function = __builtin_FUNCTION()) noexcept {
  return Guard(err, needs.text, needs.kinds, given.begin(), body, function);
}

// The caller's object, which release(arg) gives back when its last use ends; but a call that fails takes
// nothing, so release is set where nothing can fail any more.
struct Taken {
  void* arg;
  void (*release)(void*) = nullptr;
  ~Taken() {
    if (release) release(arg);
  }
};

// Options by name, each at most once but those that repeat; unknown ones are an error that lists the known.
struct Option {
  const char* name;
  absl::Status (*set)(void* target, const std::string& value);
  bool repeats = false;
};
absl::Status SetOptions(std::span<const Option> known, const keel_kv* given, uint32_t n, void* target);
absl::StatusOr<uint64_t> ParseNumber(std::string_view what, const std::string& text, uint64_t min,
                                     uint64_t max);
absl::Status SetThreads(const std::string& value, uint32_t* threads);
absl::Status SetMemory(const std::string& value, uint64_t* memory);
absl::Status SetTimeout(const std::string& value, uint32_t* ms);
absl::Status SetFlag(std::string_view what, const std::string& value, bool* flag);  // "0" or "1"
absl::Status SetLevel(const std::string& value, PassChoice* choice);

// Calls a caller's code and gives what it left as a status, so that it can be told with what the kernel knows
// besides. What breaks the rules (a C++ exception, a code that is none, an error with KEEL_OK) is an error
// that says so. lent: the trace that it is given.
absl::Status CallBack(keel_trace& lent, absl::FunctionRef<keel_rc(keel_error**)> code);
absl::Status RefuseLent(const keel_trace* t, std::string_view function, std::string_view parameter);

// report.cc
absl::StatusOr<std::string> ReportOf(Context& context, std::string_view what);
// info.cc
std::string ModuleInfo(const Module& module);

}  // namespace keel
