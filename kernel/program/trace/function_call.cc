// function_call.cc: the fast path of a call: from arguments that match a recent call to its plan, without a
// lock or an allocation. function.cc handles all other calls and adds them to the table of recent calls.
#include "kernel/program/trace/function.h"

namespace keel {

absl::Status Function::Call(Tracing* within, Tape* tape, const Arguments& arguments, Results* results) {
  std::unique_ptr<Warm> warm;
  if (!tape && !(within && within->trace) && !eager_ && !context_->eager) [[likely]]
    warm = warm_.Take(
        [&](const Warm& w) {
          return w.arguments.Same(arguments) && !w.concrete->dropped.load(std::memory_order_relaxed);
        },
        [](std::unique_ptr<Warm>) {});
  if (!warm) [[unlikely]]
    return CallCold(within, tape, arguments, results);
  absl::Status status = CallWarm(*warm, arguments, results);
  if (!warm->concrete->dropped.load(std::memory_order_relaxed)) warm_.Put(std::move(warm));
  return status;
}

absl::Status Function::CallWarm(const Warm& warm, const Arguments& arguments, Results* results) {
  Concrete& concrete = *warm.concrete;
  concrete.calls.fetch_add(1, std::memory_order_relaxed);
  uint64_t now = clock_.load(std::memory_order_relaxed) + 1;  // concurrent calls may share a count
  clock_.store(now, std::memory_order_relaxed);
  concrete.last_call.store(now, std::memory_order_relaxed);
  Arguments::Arrays feeds = arguments.OnlyArrays();
  const size_t outputs = concrete.plan->outputs();
  if (outputs > arguments.room) [[unlikely]]
    return NoRoom("the function", outputs, arguments.room);
  results->resize(outputs);
  return concrete.plan->Run({feeds.data(), feeds.size()}, {results->data(), results->size()});
}

}  // namespace keel
