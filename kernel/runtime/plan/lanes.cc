// lanes.cc: see lanes.h: selects the steps that run in parallel.
#include "kernel/runtime/plan/lanes.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "kernel/runtime/plan/core.h"
#include "kernel/runtime/plan/step.h"

namespace keel {
namespace {

// Overheads in nanoseconds: of a parallel section, of each of its steps, of a launch in a body.
constexpr uint64_t kSection = 5'000, kHandOver = 200, kLaunch = 20;
constexpr int64_t kGuess = 10;         // assumed iterations of a loop of unknown length
constexpr size_t kMostSteps = 20'000;  // larger plans run serially, which bounds the time of planning

// Nanoseconds on all threads and on one thread; 0: unknown.
struct Time {
  uint64_t all_threads = 0, one_thread = 0;
};

// Execution times of steps, as estimated by the device.
class Times {
 public:
  Times(const Lowered& lowered, keel_dev dev, uint32_t threads)
      : device_(lowered.device->plugin().device), dev_(dev), threads_(threads) {}

  absl::StatusOr<Time> OfStep(const Lowered& l, const Binding& b, size_t s) const {
    const Step& step = l.steps[s];
    if (step.core) return Time();
    if (!step.bodies.empty()) return OfBodies(step, *b.controls[s]);
    ASSIGN_OR_RETURN(keel_node node, ViewStep(l, step, b.symbols));
    auto estimate = [&](uint32_t threads) { return device_.cost(dev_, &HostTable(), &node, threads); };
    return Time{estimate(threads_), estimate(1)};
  }

 private:
  absl::StatusOr<Time> OfBodies(const Step& step, const ControlBinding& bound) const {
    Time sum;
    for (size_t i = 0; i < step.bodies.size(); i++)
      for (size_t s = 0; s < step.bodies[i]->steps.size(); s++) {
        ASSIGN_OR_RETURN(Time time, OfStep(*step.bodies[i], *bound.bodies[i], s));
        if (!time.one_thread) return Time();
        sum.all_threads += time.all_threads + kLaunch;
        sum.one_thread += time.one_thread + kLaunch;
      }
    if (bound.layout.IsBranch())
      return Time{sum.all_threads / step.bodies.size(), sum.one_thread / step.bodies.size()};
    auto times = static_cast<uint64_t>(bound.length ? bound.length : kGuess);
    return Time{sum.all_threads * times, sum.one_thread * times};
  }

  const keel_device& device_;
  const keel_dev dev_;
  const uint32_t threads_;
};

bool HasCore(const Step& step) {
  auto in = [](const std::shared_ptr<Lowered>& body) { return std::ranges::any_of(body->steps, HasCore); };
  return step.core || std::ranges::any_of(step.bodies, in);
}
// A step that writes, prints or asserts; no step may move across it.
bool IsBarrier(const Step& step) {
  return HasCore(step) && !(step.core && step.core->reads && !step.core->writes);
}

class Scheduler {
 public:
  Scheduler(const Lowered& lowered, const Binding& binding, const PlanOptions& options)
      : l_(lowered), b_(binding), options_(options), n_(static_cast<uint32_t>(lowered.steps.size())) {}

  absl::StatusOr<std::vector<Section>> Run() {
    Connect();
    if (IsChain()) return std::vector<Section>();
    RETURN_IF_ERROR(EstimateTimes());
    for (uint32_t s = 0; s < n_; s++)
      if (!waits_[s]) Ready(s);
    while (!serial_.empty() || !parallel_.empty()) {
      while (!serial_.empty()) Add(Pop(&serial_));
      std::vector<uint32_t> group;  // all steps that can run in parallel before the next serial step
      while (!parallel_.empty()) group.push_back(Pop(&parallel_));
      if (IsFaster(group)) {
        found_ = true;
        sections_.push_back({std::move(group), true});
      } else {
        for (uint32_t s : group) Add(s);
      }
    }
    return found_ ? std::move(sections_) : std::vector<Section>();
  }

 private:
  using Queue = std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>>;  // lowest number first

  absl::Status EstimateTimes() {
    ASSIGN_OR_RETURN(keel_dev dev, l_.device->Open());
    const Times times(l_, dev, options_.threads);
    times_.resize(n_);
    for (uint32_t s = 0; s < n_; s++) {
      ASSIGN_OR_RETURN(times_[s], times.OfStep(l_, b_, s));
    }
    return absl::OkStatus();
  }
  // Steps with an unknown time, steps that use several threads well, and core steps run serially.
  bool IsParallel(uint32_t s) const {
    if (HasCore(l_.steps[s])) return false;
    return options_.lanes == LaneUse::kAll ||
           (times_[s].one_thread && times_[s].all_threads * 3 > times_[s].one_thread * 2);
  }

  // Adds edges from producers to consumers, and to and from barriers.
  void Connect() {
    next_.resize(n_);
    waits_.assign(n_, 0);
    std::vector<uint32_t> producer(l_.values.size(), kNoValue);
    uint32_t barrier = kNoValue, since = 0;
    for (uint32_t s = 0; s < n_; s++) {
      for (uint32_t v : l_.steps[s].in)
        if (v != kNoValue && producer[l_.Root(v)] != kNoValue) Edge(producer[l_.Root(v)], s);
      for (uint32_t v : l_.steps[s].out) producer[v] = s;
      if (barrier != kNoValue) Edge(barrier, s);
      if (!IsBarrier(l_.steps[s])) continue;
      for (; since < s; since++) Edge(since, s);
      barrier = s;
    }
  }
  // Whether each step depends on its predecessor, so that no two can run in parallel.
  bool IsChain() const {
    std::vector<uint32_t> before(n_, 0);  // length of the longest path to each step
    for (uint32_t s = 0; s < n_; s++) {
      if (before[s] != s) return false;
      for (uint32_t next : next_[s]) before[next] = std::max(before[next], s + 1);
    }
    return true;
  }
  void Edge(uint32_t from, uint32_t to) {
    next_[from].push_back(to);
    waits_[to]++;
  }

  void Ready(uint32_t s) { (IsParallel(s) ? parallel_ : serial_).push(s); }
  uint32_t Pop(Queue* queue) {
    uint32_t s = queue->top();
    queue->pop();
    for (uint32_t next : next_[s])
      if (--waits_[next] == 0) Ready(next);
    return s;
  }
  void Add(uint32_t s) {
    if (sections_.empty() || sections_.back().parallel) sections_.emplace_back();
    sections_.back().steps.push_back(s);
  }

  // Whether the parallel section takes less than 4/5 of the serial time, by list scheduling.
  bool IsFaster(const std::vector<uint32_t>& group) {
    if (group.size() < 2) return false;
    if (options_.lanes == LaneUse::kAll) return true;
    uint64_t serial = 0, end = 0;
    std::vector<uint64_t> lanes(options_.threads);  // time at which each lane is free
    ready_.resize(n_);
    for (uint32_t s : group) ready_[s] = 0;
    for (uint32_t s : group) {
      serial += times_[s].all_threads;
      uint64_t& lane = *std::ranges::min_element(lanes);
      lane = std::max(lane, ready_[s]) + times_[s].one_thread + kHandOver;
      for (uint32_t next : next_[s]) ready_[next] = std::max(ready_[next], lane);
      end = std::max(end, lane);
    }
    return (end + kSection) * 5 < serial * 4;
  }

  const Lowered& l_;
  const Binding& b_;
  const PlanOptions& options_;
  const uint32_t n_;
  std::vector<Time> times_;
  std::vector<uint64_t> ready_;
  std::vector<std::vector<uint32_t>> next_;
  std::vector<uint32_t> waits_;
  Queue serial_, parallel_;
  std::vector<Section> sections_;
  bool found_ = false;
};

}  // namespace

absl::StatusOr<std::vector<Section>> PlanLanes(const Lowered& lowered, const Binding& binding,
                                               const PlanOptions& options) {
  const keel_device& device = lowered.device->plugin().device;
  bool may = options.lanes == LaneUse::kAll || (options.lanes == LaneUse::kAuto && options.threads > 1);
  if (!may || options.observe || lowered.accelerator || !device.run_lanes || !device.cost ||
      lowered.steps.size() < 2 || lowered.steps.size() > kMostSteps)
    return std::vector<Section>();
  return Scheduler(lowered, binding, options).Run();
}

}  // namespace keel
