#include "kernel/language/values/variable.h"

#include <algorithm>
#include <atomic>

namespace keel {
namespace {

using State = PendingRun::State;

// Header and elements in one block: the memory is Keel's own.
bool OwnsMemory(keel_array* a) { return a->data() == a->payload(); }

}  // namespace

uint64_t Variable::NextId() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

// Drops the versions whose runs succeeded. Once a failure is reported, returns to the value before the first
// write that depends on a failed run.
void Variable::Settle(std::vector<Version>* dropped) const {
  auto is = [this](State least, size_t from) {  // the first version in this state
    while (from < versions_.size() && !versions_[from].Is(least)) from++;
    return from;
  };
  size_t failed = is(State::kFailed, 0), kept = 0;
  if (is(State::kReported, failed) == versions_.size()) failed = versions_.size();
  if (failed < versions_.size()) std::swap(value_, versions_[failed].value);
  for (size_t i = 0; i < versions_.size(); i++)
    if (i >= failed || !versions_[i].Is(State::kPending))
      dropped->push_back(std::move(versions_[i]));
    else if (i != kept++)
      versions_[kept - 1] = std::move(versions_[i]);
  versions_.erase(versions_.begin() + static_cast<ptrdiff_t>(kept), versions_.end());
}

ArrayRef Variable::Read(PendingRuns* pending) const {
  std::vector<Version> dropped;  // freed after the lock is released
  std::lock_guard lock(mutex_);
  if (versions_.empty()) [[likely]]
    return value_;
  Settle(&dropped);
  for (const Version& version : versions_)
    if (pending) pending->Add(version.runs);
  return value_;
}

absl::StatusOr<ArrayRef> Variable::ReadOnHost() const {
  PendingRuns pending;
  ArrayRef value = Read(&pending);
  RETURN_IF_ERROR(pending.Get());
  return OnHost(std::move(value));
}

absl::Status Variable::Assign(ArrayRef value, const PendingRuns& runs) {
  return Swap(nullptr, &value, runs).status();
}

absl::StatusOr<bool> Variable::Replace(const keel_array* old, ArrayRef value, const PendingRuns& runs) {
  return Swap(old, &value, runs);
}

// *value receives the old array, which the caller releases after the lock is released.
absl::StatusOr<bool> Variable::Swap(const keel_array* old, ArrayRef* value, const PendingRuns& runs) {
  std::vector<Version> dropped;
  for (;;) {
    std::shared_ptr<PendingRun> run = runs.First(State::kFailed);
    if (run) return run->Get();
    {
      std::lock_guard lock(mutex_);
      Settle(&dropped);
      if (old && value_.get() != old) return false;
      bool doomed = std::ranges::any_of(versions_, [](const Version& v) { return v.Is(State::kFailed); });
      bool keep = !doomed && runs.First(State::kPending);
      if (!keep || versions_.size() < kVersions) {
        if (keep) versions_.push_back({value_, runs});
        std::swap(value_, *value);
        return true;
      }
      run = versions_[0].runs.First(State::kPending);
    }
    if (run) RETURN_IF_ERROR(run->Wait());
  }
}

// Requires the lock and a value in host memory.
absl::Status Variable::AddHere(const void* elements, bool subtract) {
  keel_array* old = value_.get();
  bool alone = old->references.load(std::memory_order_acquire) == 1 && OwnsMemory(old);
  ArrayRef made = alone ? value_ : ArrayRef(NewResult(dtype_, shape_, old->count));
  if (!made) return Exhausted("no memory for the new value of a variable of ", old->bytes(), " bytes");
  AddElements(dtype_, subtract, old->data(), elements, made->data(), old->count);
  value_ = std::move(made);
  return absl::OkStatus();
}

absl::Status Variable::Add(const void* elements, bool subtract, const PendingRuns& runs) {
  std::vector<Version> dropped;
  for (;;) {
    ArrayRef old;
    {
      std::lock_guard lock(mutex_);
      Settle(&dropped);
      if (!value_->device_block() && !runs.First(State::kPending)) return AddHere(elements, subtract);
      old = value_;
    }
    ASSIGN_OR_RETURN(ArrayRef host, OnHost(old));
    ASSIGN_OR_RETURN(ArrayRef sum, NewArray(dtype_, shape_, false));
    AddElements(dtype_, subtract, host->data(), elements, sum->data(), sum->count);
    ASSIGN_OR_RETURN(bool replaced, Replace(old.get(), std::move(sum), runs));
    if (replaced) return absl::OkStatus();
  }
}

}  // namespace keel
