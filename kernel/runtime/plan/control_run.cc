// control_run.cc: see control.h. kKinds has a row for each op with the class that runs it.
#include "kernel/runtime/plan/control.h"

#include <algorithm>
#include <cstring>

#include "kernel/runtime/device/accelerator.h"
#include "kernel/runtime/plan/frame.h"
#include "kernel/runtime/plan/step.h"

namespace keel {
namespace {

// Shared by all control steps: the frames of the bodies, copies and errors.
class ControlBase : public OwnLaunch {
 public:
  ControlBase(const Lowered& lowered, const Binding& binding, size_t step, RunState& state, char* scratch)
      : lowered_(lowered),
        step_(lowered.steps[step]),
        bound_(*binding.controls[step]),
        state_(state),
        scratch_(scratch),
        layout_(bound_.layout) {
    for (size_t i = 0; i < step_.bodies.size(); i++) {
      char* arena = scratch + bound_.frames_at;
      const Binding& body = *bound_.bodies[i];
      frames_.push_back(
          std::make_unique<Frame>(*step_.bodies[i], body, state, arena, arena + body.arena_bytes));
    }
  }

 protected:
  keel_rc Fail(const absl::Status& status) {
    state_.error = StepError(status, step_);
    return static_cast<keel_rc>(status.code());
  }
  keel_rc Stop() {
    state_.error = Stopped(step_.name, *state_.options);
    return KEEL_CANCELLED;
  }
  keel_rc Copy(void* to, const void* from, uint64_t bytes) {
    if (to == from || !bytes) return KEEL_OK;
    if (!state_.machine) return std::memcpy(to, from, bytes), KEEL_OK;
    absl::Status status = state_.machine->Copy(to, from, bytes);
    return status.ok() ? KEEL_OK : Fail(status);
  }
  // Clears the bytes [from, end); on a device with its own memory [0, end).
  keel_rc Zero(char* to, uint64_t from, uint64_t end) {
    if (from == end) return KEEL_OK;
    if (!state_.machine) return std::memset(to + from, 0, end - from), KEEL_OK;
    // A fill covers whole 32-bit words; memory of values is padded to whole words.
    absl::Status status = state_.machine->Fill(to, (end + 3) / 4 * 4, 0);
    return status.ok() ? KEEL_OK : Fail(status);
  }
  // Reads a scalar on the host.
  keel_rc Read(const void* from, void* to, uint64_t bytes) {
    if (!state_.machine) return std::memcpy(to, from, bytes), KEEL_OK;
    absl::Status status = state_.machine->Fetch(from, to, bytes);
    if (status.ok()) return KEEL_OK;
    state_.error = status;
    return static_cast<keel_rc>(status.code());
  }

  const Lowered& lowered_;
  const Step& step_;
  const ControlBinding& bound_;
  RunState& state_;
  char* scratch_;
  const BodyLayout& layout_;
  std::vector<std::unique_ptr<Frame>> frames_;
};

class Branches : public ControlBase {
 public:
  using ControlBase::ControlBase;
  keel_rc Run(const keel_call& call) override {
    int64_t index = 0;
    if (keel_rc rc = Index(*call.in[0], &index); rc != KEEL_OK) return rc;
    if (absl::Status status = CheckBranch(index, frames_.size()); !status.ok()) return Fail(status);
    Frame& frame = *frames_[static_cast<size_t>(index)];
    for (uint32_t i = 1; i < call.n_in; i++) frame.SetFeed(i - 1, call.in[i]->data);
    for (uint32_t i = 0; i < call.n_out; i++) frame.SetOutput(i, call.out[i]->data);
    return frame.Run();
  }

 private:
  // The first body of a cond is the branch for true.
  keel_rc Index(const keel_tensor& t, int64_t* index) {
    union {
      uint8_t truth;
      int32_t narrow;
      int64_t wide;
    } value{};
    if (keel_rc rc = Read(t.data, &value, t.dtype.bits / 8); rc != KEEL_OK) return rc;
    *index = t.dtype.bits == 8 ? !value.truth : t.dtype.bits == 32 ? value.narrow : value.wide;
    return KEEL_OK;
  }
};

// The carried values of a loop. A large value is double-buffered: the body reads `at` and writes `next`. A
// small value in host memory is copied back after each iteration, which is cheaper than updating pointers.
class Loop : public ControlBase {
 public:
  Loop(const Lowered& lowered, const Binding& binding, size_t step, RunState& state, char* scratch)
      : ControlBase(lowered, binding, step, state, scratch) {
    for (size_t i = 0; i < layout_.carry; i++) {
      if (frames_.back()->PassesThrough(i)) {
        untouched_.push_back(i);
        continue;
      }
      uint64_t bytes = BytesOf(lowered, binding, step_.out[i]);
      (bytes && bytes <= kSmall && !lowered.accelerator ? small_ : large_)
          .push_back({i, bytes, scratch + bound_.buffers[i], nullptr, nullptr, nullptr});
    }
  }

 protected:
  void Begin(const keel_call& call) {
    for (uint32_t i = 0; i < call.n_in && !layout_.IsSliced(i); i++) Feed(i, call.in[i]->data);
    for (size_t i : untouched_) frames_.back()->SetOutput(i, call.in[i]->data);
    for (Carried& c : large_) {
      c.at = call.in[c.number]->data;
      c.next = call.out[c.number]->data;
      c.other = c.buffer;
    }
    for (Carried& c : small_) {
      c.next = call.out[c.number]->data;
      std::memcpy(c.buffer, call.in[c.number]->data, c.bytes);
      Feed(c.number, c.buffer);
      frames_.back()->SetOutput(c.number, c.next);
    }
  }
  // Runs the body, which is the last frame, and feeds its results to the next iteration.
  keel_rc Advance() {
    Frame& body = *frames_.back();
    for (const Carried& c : large_) body.SetOutput(c.number, c.next);
    if (keel_rc rc = body.Run(); rc != KEEL_OK) return rc;
    for (const Carried& c : small_) CopySmall(c.buffer, c.next, c.bytes);
    for (Carried& c : large_) {
      c.at = c.next;
      std::swap(c.next, c.other);
      Feed(c.number, c.at);
    }
    return KEEL_OK;
  }
  keel_rc End(const keel_call& call) {
    for (size_t i : untouched_)
      if (keel_rc rc = Copy(call.out[i]->data, call.in[i]->data, keel::BytesOf(*call.out[i])); rc != KEEL_OK)
        return rc;
    for (const Carried& c : small_) std::memcpy(c.next, c.buffer, c.bytes);
    for (const Carried& c : large_)
      if (keel_rc rc = Copy(call.out[c.number]->data, c.at, c.bytes); rc != KEEL_OK) return rc;
    return KEEL_OK;
  }

 private:
  static constexpr uint64_t kSmall = 64;
  struct Carried {
    size_t number;
    uint64_t bytes;
    char* buffer;
    void *at, *next, *other;
  };
  static void CopySmall(void* to, const void* from, uint64_t bytes) {
    if (bytes == 4)
      std::memcpy(to, from, 4);
    else if (bytes == 8)
      std::memcpy(to, from, 8);
    else
      std::memcpy(to, from, bytes);
  }
  void Feed(size_t i, void* data) {
    for (auto& frame : frames_) frame->SetFeed(i, data);
  }

  std::vector<Carried> large_, small_;
  std::vector<size_t> untouched_;  // carried values that the body returns unchanged
};

class While : public Loop {
 public:
  using Loop::Loop;
  keel_rc Run(const keel_call& call) override {
    Begin(call);
    Frame& test = *frames_[0];
    char* flag = scratch_ + bound_.flag_at;
    test.SetOutput(0, flag);
    for (;;) {
      if (state_.Stopping()) return Stop();
      if (keel_rc rc = test.Run(); rc != KEEL_OK) return rc;
      uint8_t go = 0;
      if (keel_rc rc = Read(flag, &go, 1); rc != KEEL_OK) return rc;
      if (!go) return End(call);
      if (keel_rc rc = Advance(); rc != KEEL_OK) return rc;
    }
  }
};

class Scan : public Loop {
 public:
  Scan(const Lowered& lowered, const Binding& binding, size_t step, RunState& state, char* scratch)
      : Loop(lowered, binding, step, state, scratch), reverse_(IntAttr(step_.attrs, "reverse")) {
    const uint64_t* buffer = bound_.buffers.data() + layout_.carry;
    auto add = [&](uint32_t i, uint32_t value, std::vector<Stacked>* to) {
      uint64_t all = BytesOf(lowered, binding, value);
      to->push_back({i, bound_.length ? all / static_cast<uint64_t>(bound_.length) : 0,
                     *buffer == kGivenInPlace ? nullptr : scratch + *buffer});
      buffer++;
    };
    for (size_t i = layout_.first_sliced; i < step_.in.size() - layout_.trailing; i++)
      add(static_cast<uint32_t>(i), step_.in[i], &sliced_);
    for (size_t i = layout_.carry; i < step_.out.size(); i++)
      add(static_cast<uint32_t>(i), step_.out[i], &stacked_);
  }

  keel_rc Run(const keel_call& call) override {
    int64_t count = bound_.length;
    if (layout_.trailing)
      if (keel_rc rc = Count(call, &count); rc != KEEL_OK) return rc;
    Begin(call);
    for (int64_t i = 0; i < count; i++) {
      if (state_.Stopping()) return Stop();
      auto at = static_cast<uint64_t>(reverse_ ? count - 1 - i : i);
      if (keel_rc rc = Entry(call, at); rc != KEEL_OK) return rc;
    }
    return End(call);
  }

 private:
  struct Stacked {  // an operand or result with one entry per iteration
    uint32_t number;
    uint64_t bytes;
    char* buffer;  // null: the body uses the entry in place
    char* At(const keel_tensor* t, uint64_t entry) const {
      return static_cast<char*>(t->data) + entry * bytes;
    }
  };

  // Reads the number of iterations and clears the stacked results of the remaining entries.
  keel_rc Count(const keel_call& call, int64_t* count) {
    if (keel_rc rc = Read(call.in[call.n_in - 1]->data, count, sizeof *count); rc != KEEL_OK) return rc;
    if (absl::Status status = CheckCount(*count, bound_.length); !status.ok()) return Fail(status);
    for (const Stacked& y : stacked_) {
      auto from = static_cast<uint64_t>(*count) * y.bytes,
           end = static_cast<uint64_t>(bound_.length) * y.bytes;
      if (keel_rc rc = Zero(y.At(call.out[y.number], 0), from, end); rc != KEEL_OK) return rc;
    }
    return KEEL_OK;
  }

  keel_rc Entry(const keel_call& call, uint64_t at) {
    Frame& body = *frames_[0];
    for (const Stacked& x : sliced_) {
      char* entry = x.At(call.in[x.number], at);
      if (x.buffer)
        if (keel_rc rc = Copy(x.buffer, entry, x.bytes); rc != KEEL_OK) return rc;
      body.SetFeed(x.number, x.buffer ? x.buffer : entry);
    }
    for (const Stacked& y : stacked_)
      body.SetOutput(y.number, y.buffer ? y.buffer : y.At(call.out[y.number], at));
    if (keel_rc rc = Advance(); rc != KEEL_OK) return rc;
    for (const Stacked& y : stacked_)
      if (y.buffer)
        if (keel_rc rc = Copy(y.At(call.out[y.number], at), y.buffer, y.bytes); rc != KEEL_OK) return rc;
    return KEEL_OK;
  }

  const bool reverse_;
  std::vector<Stacked> sliced_, stacked_;
};

template <typename T>
std::unique_ptr<OwnLaunch> Make(const Lowered& lowered, const Binding& binding, size_t step, RunState& state,
                                char* scratch) {
  return std::make_unique<T>(lowered, binding, step, state, scratch);
}

struct Kind {
  std::string_view op;
  decltype(&Make<While>) make;
};
constexpr Kind kKinds[] = {
    {"cond", Make<Branches>}, {"switch", Make<Branches>}, {"while", Make<While>}, {"scan", Make<Scan>}};

const Kind& KindOf(const Step& step) {
  for (const Kind& kind : kKinds)
    if (kind.op == OpName(*step.op)) return kind;
  return kKinds[0];
}

}  // namespace

std::unique_ptr<OwnLaunch> MakeControl(const Lowered& lowered, const Binding& binding, size_t step,
                                       RunState& state, char* scratch) {
  return KindOf(lowered.steps[step]).make(lowered, binding, step, state, scratch);
}

}  // namespace keel
