// sized_bodies.cc: see sized_bodies.h. kBodies has a row for each op with the function that runs it.
#include "kernel/runtime/plan/sized_bodies.h"

#include <algorithm>
#include <cstring>

#include "kernel/runtime/device/move.h"
#include "kernel/runtime/plan/step.h"

namespace keel {
namespace {

using Arrays = std::vector<ArrayRef>;

// One step in one run. The inputs of a loop's bodies are `state`: carried values, then all others.
class Bodies {
 public:
  explicit Bodies(const BodiesRun& run) : run_(run), step_(run.step), layout_(LayoutOf(run.step)) {}

  absl::StatusOr<Arrays> Call() { return RunBody(0, run_.in); }

  absl::StatusOr<Arrays> Branch() {
    ASSIGN_OR_RETURN(int64_t index, Scalar(run_.in[0]));
    if (run_.in[0]->dtype == DType::kBool) index = index ? 0 : 1;  // the first body is the branch for true
    RETURN_IF_ERROR(CheckBranch(index, step_.plans.size()));
    return RunBody(static_cast<size_t>(index), {run_.in.begin() + 1, run_.in.end()});
  }

  absl::StatusOr<Arrays> While() {
    Arrays state = run_.in;
    for (;;) {
      ASSIGN_OR_RETURN(Arrays go, RunBody(0, state));
      ASSIGN_OR_RETURN(int64_t more, Scalar(go[0]));
      if (!more) break;
      ASSIGN_OR_RETURN(Arrays next, RunBody(1, state));
      std::ranges::move(next, state.begin());
    }
    state.resize(layout_.carry);
    return state;
  }

  absl::StatusOr<Arrays> Scan() {
    ASSIGN_OR_RETURN(const int64_t length, SizeOf(IntAttr(step_.attrs, "length")));
    ASSIGN_OR_RETURN(const int64_t count, Count(length));
    Arrays state(run_.in.begin(), run_.in.end() - static_cast<ptrdiff_t>(layout_.trailing));
    Arrays sliced(state.begin() + static_cast<ptrdiff_t>(layout_.first_sliced), state.end());
    for (ArrayRef& x : sliced) {
      ASSIGN_OR_RETURN(x, RowMajor(x));
    }
    ASSIGN_OR_RETURN(Arrays stacked, NewStacks());
    const bool reverse = IntAttr(step_.attrs, "reverse");
    for (int64_t i = 0; i < count; i++) {
      const int64_t at = reverse ? count - 1 - i : i;
      for (size_t k = 0; k < sliced.size(); k++) {
        ASSIGN_OR_RETURN(state[layout_.first_sliced + k], Entry(*sliced[k].get(), at));
      }
      ASSIGN_OR_RETURN(Arrays next, RunBody(0, state));
      std::move(next.begin(), next.begin() + static_cast<ptrdiff_t>(layout_.carry), state.begin());
      for (size_t k = 0; k < stacked.size(); k++)
        RETURN_IF_ERROR(SetEntry(*stacked[k].get(), at, std::move(next[layout_.carry + k])));
    }
    state.resize(layout_.carry);
    std::ranges::move(stacked, std::back_inserter(state));
    return state;
  }

 private:
  absl::StatusOr<Arrays> RunBody(size_t number, const Arrays& in) {
    Plan& plan = *step_.plans[number].plan;
    const PlanOptions& options = plan.options();
    if ((options.stopper && options.stopper->asked) ||
        (run_.end && std::chrono::steady_clock::now() >= *run_.end))
      return Stopped(step_.name, options);
    std::vector<keel_array*> feeds;
    for (const ArrayRef& x : in) feeds.push_back(x.get());
    feeds.insert(feeds.end(), run_.sizes.begin(), run_.sizes.end());
    Arrays out(plan.outputs());
    if (!run_.events) {
      RETURN_IF_ERROR(plan.Run(feeds, out, nullptr, nullptr, run_.end));
      return out;
    }
    EventForwarder events = *run_.events;
    events.before += FirstLaunch(plan);
    RETURN_IF_ERROR(plan.Run(feeds, out, ForwardEvent, &events, run_.end));
    return out;
  }

  // The number of the first launch of a body in the part.
  size_t FirstLaunch(const Plan& body) const {
    size_t first = run_.lowered.steps.size();
    for (const Step& step : run_.lowered.steps)
      for (const PlannedBody& planned : step.plans) {
        if (planned.plan.get() == &body) return first;
        first += planned.launches;
      }
    return first;
  }

  static absl::StatusOr<ArrayRef> RowMajor(ArrayRef x) {
    ASSIGN_OR_RETURN(ArrayRef host, OnHost(std::move(x)));
    return host->contiguous ? std::move(host) : CopyArray(host->view);
  }
  static absl::StatusOr<int64_t> Scalar(ArrayRef x) {
    ASSIGN_OR_RETURN(ArrayRef host, OnHost(std::move(x)));
    return IntegerOf(*host.get());
  }

  absl::StatusOr<int64_t> SizeOf(Dim d) const { return run_.lowered.dims.Evaluate(d, run_.symbols); }
  absl::StatusOr<int64_t> Count(int64_t length) const {
    if (!layout_.trailing) return length;
    ASSIGN_OR_RETURN(const int64_t count, Scalar(run_.in.back()));
    RETURN_IF_ERROR(CheckCount(count, length));
    return count;
  }

  // Entries of iterations that do not take place are 0.
  absl::StatusOr<Arrays> NewStacks() const {
    Arrays made;
    for (size_t k = layout_.carry; k < step_.out.size(); k++) {
      const TensorType& type = run_.lowered.values[step_.out[k]].type;
      std::vector<int64_t> shape;
      for (Dim d : type.dims) {
        ASSIGN_OR_RETURN(shape.emplace_back(), SizeOf(d));
      }
      ASSIGN_OR_RETURN(made.emplace_back(), NewArray(type.dtype, shape, false));
      if (const uint64_t bytes = made.back()->bytes()) std::memset(made.back()->data(), 0, bytes);
    }
    return made;
  }
  static char* At(keel_array& stack, int64_t entry, uint64_t* bytes) {
    *bytes = stack.bytes() / static_cast<uint64_t>(stack.dims[0]);
    return static_cast<char*>(stack.data()) + static_cast<uint64_t>(entry) * *bytes;
  }
  static absl::StatusOr<ArrayRef> Entry(keel_array& stack, int64_t number) {
    uint64_t bytes = 0;
    const char* const from = At(stack, number, &bytes);
    ASSIGN_OR_RETURN(ArrayRef entry, NewArray(stack.dtype, stack.shape().subspan(1), false));
    if (bytes) std::memcpy(entry->data(), from, bytes);
    return entry;
  }
  static absl::Status SetEntry(keel_array& stack, int64_t number, ArrayRef value) {
    ASSIGN_OR_RETURN(value, RowMajor(std::move(value)));
    uint64_t bytes = 0;
    char* const to = At(stack, number, &bytes);
    if (bytes) std::memcpy(to, value->data(), bytes);
    return absl::OkStatus();
  }

  const BodiesRun& run_;
  const Step& step_;
  const BodyLayout layout_;
};

struct BodiesKind {
  std::string_view op;
  absl::StatusOr<Arrays> (Bodies::*run)();
};
constexpr BodiesKind kBodies[] = {{"call", &Bodies::Call},
                                  {"cond", &Bodies::Branch},
                                  {"switch", &Bodies::Branch},
                                  {"while", &Bodies::While},
                                  {"scan", &Bodies::Scan}};

}  // namespace

absl::StatusOr<std::vector<ArrayRef>> RunBodies(BodiesRun run, PendingRuns* pending) {
  RETURN_IF_ERROR(pending->Get());  // the bodies may have effects
  const auto* kind =
      std::ranges::find_if(kBodies, [&](const BodiesKind& k) { return k.op == OpName(*run.step.op); });
  if (kind == std::end(kBodies)) return Internal("no bodies of ", OpName(*run.step.op), " find sizes");
  Device* const device = run.step.plans[0].plan->options().bodies;
  for (ArrayRef& x : run.in) {
    if (!x->device_block() || x->device_block()->home->name() == device->name()) continue;
    ASSIGN_OR_RETURN(x, OnHost(std::move(x)));
  }
  ASSIGN_OR_RETURN(std::vector<ArrayRef> out, (Bodies(run).*kind->run)());
  for (const ArrayRef& y : out)
    if (y->device_block()) pending->Add(y->device_block()->outcome);
  return out;
}

}  // namespace keel
