// parts_run.cc: runs the parts of a placed plan (place.h), in order.
#include <algorithm>
#include <map>
#include <set>

#include "kernel/runtime/device/move.h"
#include "kernel/runtime/plan/parts.h"
#include "kernel/runtime/plan/variable_steps.h"

namespace keel {
namespace {

// Copies of arrays on the devices of parts. Each array is copied once per device, and all arrays that a part
// needs from one device in one download.
class Moves {
 public:
  absl::Status Move(Device* device, std::span<keel_array*> feeds) {
    Device* to = device->host_memory() ? nullptr : device;
    auto elsewhere = [&](keel_array* a) {  // the plan of the part uploads host arrays itself
      return a->device_block() && a->device_block()->home->name() != device->name();
    };
    std::map<Accelerator*, std::set<keel_array*>> downloads;
    for (keel_array* a : feeds)
      if (!to && elsewhere(a) && !moved_[{a, to}]) downloads[a->device_block()->home.get()].insert(a);
    for (auto& [home, arrays] : downloads) RETURN_IF_ERROR(Download(arrays));
    for (keel_array*& a : feeds) {
      if (!elsewhere(a)) continue;
      ArrayRef& copy = moved_[{a, to}];
      if (!copy) {
        ASSIGN_OR_RETURN(copy, MoveTo(a, device));
      }
      a = copy.get();
    }
    return absl::OkStatus();
  }
  void Drop(const keel_array* array) {
    std::erase_if(moved_, [&](const auto& m) { return m.first.first == array; });
  }

 private:
  absl::Status Download(const std::set<keel_array*>& arrays) {
    std::vector<ArrayRef> copies;
    for (keel_array* a : arrays) copies.push_back(ArrayRef::Share(a));
    RETURN_IF_ERROR(DownloadAll(copies));
    size_t next = 0;
    for (keel_array* a : arrays) moved_[{a, nullptr}] = std::move(copies[next++]);
    return absl::OkStatus();
  }

  std::map<std::pair<const keel_array*, Device*>, ArrayRef> moved_;
};

// One run.
class Running {
 public:
  Running(const Parts& parts, std::span<keel_array* const> in) : parts_(parts), in_(in), made_(parts.slots) {}

  absl::Status Run(std::span<ArrayRef> out, Observer observer, void* arg, const Deadline* end) {
    EventForwarder forwarder{observer, arg, 0};
    AddRunsOfVariables();
    for (const Parts::Part& part : parts_.parts) {
      std::vector<ArrayRef> results(part.results.size());
      RETURN_IF_ERROR(RunPart(part, results, observer ? &forwarder : nullptr, end));
      for (size_t i = 0; i < results.size(); i++) made_[part.results[i]] = std::move(results[i]);
      for (uint32_t slot : part.last_use) {
        moves_.Drop(made_[slot].get());
        made_[slot] = {};
      }
      forwarder.before += CountSteps(part.plan->lowered());
    }
    for (size_t i = 0; i < out.size(); i++) {
      out[i] = made_[parts_.fetches[i]];
      if (SharesFeed(*out[i].get())) {
        ASSIGN_OR_RETURN(out[i], CopyArray(out[i]->view));
      }
      if (parts_.results_on_device) continue;
      ASSIGN_OR_RETURN(out[i], MoveTo(out[i].get(), nullptr));
    }
    return absl::OkStatus();
  }

  // Waits; the first failure in program order.
  absl::Status Failure() const { return pending_.Get(); }

 private:
  // No effect of this run takes place if an earlier run fails whose variables this run reads or writes.
  void AddRunsOfVariables() {
    for (const Parts::Part& part : parts_.parts)
      if (part.variables)
        for (const Step& step : part.plan->lowered().steps)
          if (step.core && step.core->variable) step.core->variable->Read(&pending_);
  }

  // Whether the program may write the elements of a result: trim and loops pass operands on.
  bool SharesFeed(const keel_array& result) const {
    if (result.device_block()) return false;
    const auto* const data = static_cast<const char*>(result.data());
    return std::ranges::any_of(in_, [&](const keel_array* feed) {
      if (feed->device_block()) return false;
      const auto* const begin = static_cast<const char*>(feed->data());
      return data >= begin && data < begin + feed->bytes();
    });
  }

  absl::Status RunPart(const Parts::Part& part, std::span<ArrayRef> results, EventForwarder* forwarder,
                       const Deadline* end) {
    std::vector<keel_array*> feeds;
    for (const Parts::Source& s : part.feeds)
      feeds.push_back(s.outside ? in_[s.index] : made_[s.index].get());
    if (part.variables) return RunVariables(part, feeds, results, forwarder, end);
    if (part.effects) RETURN_IF_ERROR(pending_.Get());
    RETURN_IF_ERROR(moves_.Move(part.device, feeds));
    RETURN_IF_ERROR(part.plan->Run(feeds, results, forwarder ? ForwardEvent : nullptr, forwarder, end));
    // All results of a part have the same outcome.
    if (!results.empty() && results[0]->device_block()) pending_.Add(results[0]->device_block()->outcome);
    return absl::OkStatus();
  }

  absl::Status RunVariables(const Parts::Part& part, std::span<keel_array* const> feeds,
                            std::span<ArrayRef> results, const EventForwarder* forwarder,
                            const Deadline* end) {
    std::vector<bool> shared;
    for (const Parts::Source& s : part.feeds)
      shared.push_back(s.outside || std::ranges::find(parts_.fetches, s.index) != parts_.fetches.end());
    auto find = [&](const keel_array* array) {
      const std::string name = DeviceOf(array);
      auto at =
          std::ranges::find_if(parts_.parts, [&](const Parts::Part& p) { return p.device->name() == name; });
      return at == parts_.parts.end() ? nullptr : at->device;
    };
    return RunVariablePart({part.plan->lowered(), feeds, shared, results, forwarder, end}, find, *parts_.sums,
                           &pending_);
  }

  const Parts& parts_;
  std::span<keel_array* const> in_;
  std::vector<ArrayRef> made_;  // by slot
  Moves moves_;
  PendingRuns pending_;  // of the parts so far, and of the variables before
};

}  // namespace

absl::Status Parts::Run(std::span<keel_array* const> in, std::span<ArrayRef> out, Observer observer,
                        void* arg, const Deadline* end) const {
  Running running(*this, in);
  absl::Status status = running.Run(out, observer, arg, end);
  if (status.ok() ? results_on_device : absl::IsCancelled(status)) return status;
  RETURN_IF_ERROR(running.Failure());
  return status;
}

}  // namespace keel
