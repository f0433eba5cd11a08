// frame.h: the launches of one binding, of a plan or of a body, on memory of the caller. Views and calls are
// built once; a run only sets pointers and calls the launches.
//
// How to read it: RunState is shared by the frames of one runner. The launch of a control step (control.h)
// owns the frames of its bodies. On a device with its own memory a launch encodes its work, and the Machine
// of the run (device_runner.h) does what needs the queue.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernel/runtime/plan/binding.h"
#include "kernel/runtime/plan/core.h"
#include "kernel/runtime/plan/run_state.h"

namespace keel {

class Lanes;
class OwnLaunch;

class Frame {
 public:
  // `arena` and `scratch`: at least binding.arena_bytes and scratch_bytes; must outlive the frame.
  Frame(const Lowered& lowered, const Binding& binding, RunState& state, char* arena, char* scratch);
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // Set the memory of feeds and results: host pointers or device addresses.
  void SetFeed(size_t i, void* data) {
    for (const View& view : feed_views_[i]) view.tensor->data = static_cast<char*>(data) + view.offset;
  }
  void SetOutput(size_t i, void* data) {
    outputs_[i].data = data;
    for (const View& view : outputs_[i].views) view.tensor->data = static_cast<char*>(data) + view.offset;
  }
  // Set state.error on failure. Run: RunLaunches, then CopyOutputs; a frame with core steps has only Run.
  keel_rc Run();
  keel_rc RunLaunches();
  keel_rc CopyOutputs();
  // Whether result i is feed i, unchanged, so that a loop need not copy it.
  bool PassesThrough(size_t i) const;

  std::span<keel_call> calls() { return calls_; }
  size_t failed_step() const { return failed_step_; }  // after a failure

 private:
  struct View {
    keel_tensor* tensor;
    uint64_t offset;
  };
  struct Output {
    void* data = nullptr;
    std::vector<View> views;              // of values written directly to the output
    const keel_tensor* source = nullptr;  // the value to copy from; null: written in place
    uint64_t bytes = 0;
  };
  void BuildViews(char* arena);
  void BuildOutputs();
  void BuildCalls(char* scratch);
  std::unique_ptr<OwnLaunch> MakeOwnLaunch(size_t step, RunState& state, char* scratch);
  void BuildCore();
  void BuildCoreViews();
  void LinkCore();
  void BuildLaneStates();
  void BuildSections();
  keel_rc RunStep(size_t step, bool watched);
  keel_rc RunSteps();
  keel_rc RunSections();
  keel_rc ShowLanes(const Lanes& lanes);
  keel_rc EndEarly(keel_rc rc, size_t step);
  keel_rc Fail(const absl::Status& status);
  bool Watch(size_t step);  // time limit, device and observer, after each launch; false: stop

  const Lowered& lowered_;
  const Binding& binding_;
  RunState& state_;
  std::vector<keel_tensor> views_;  // by value
  std::vector<keel_tensor*> operands_;
  std::vector<keel_call> calls_;
  std::vector<keel_rc (*)(const keel_call*)> runs_;
  std::vector<std::vector<View>> feed_views_;
  std::vector<Output> outputs_;
  std::vector<uint32_t> copied_;  // outputs with a source
  std::vector<std::unique_ptr<OwnLaunch>> own_launches_;
  std::vector<std::unique_ptr<RunState>> lane_states_;  // states of parallel steps
  std::vector<RunState*> lane_state_of_;                // by step, empty without sections; null: state_
  std::vector<std::unique_ptr<Lanes>> lanes_;           // by section; null: serial
  std::vector<CoreRun> core_;                           // of core steps
  std::vector<CoreRun*> core_of_;                       // by step, empty without core steps
  std::vector<keel_tensor*> core_views_;
  // Lists of core runs whose arrays are allocated at the start, and released at the end of a run.
  CoreRun *allocate_first_ = nullptr, *release_last_ = nullptr;
  size_t failed_step_ = 0;
};

}  // namespace keel
