// region.h: a region of a graph as a program of oneDNN primitives.
//
// Where to start: body.h represents the region's nodes; fuse.h groups nodes into primitives; Builder
// (build.cc, buffers.cc) tracks the layouts of each value, inserts reorders and plans memory; conv.cc,
// own_conv.cc, winograd.cc and matmul.cc (on ops.h), conv_grad.cc and single_ops.cc emit one op each,
// relu_pool_grad.cc gradients of relu and pooling; region.cc runs the program.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>

#include "plugins/cpu/onednn/onednn.h"
#include "plugins/cpu/regions/body.h"
#include "plugins/cpu/regions/fuse.h"

namespace keel_cpu {

using Layout = dnnl::memory::desc;

struct Buffer {
  enum Kind : uint8_t { kIn, kOut, kArena, kConstant } kind = kArena;
  uint32_t index = 0;          // of the operand or result
  const void* data = nullptr;  // of a constant
  uint64_t bytes = 0, offset = 0;
  int first = -1, last = -1;  // first and last step that use it
};

struct Arg {
  int id;  // a DNNL_ARG_ number
  Layout layout;
  int buffer;
  uint64_t offset = 0;  // byte offset of a part in the buffer
};

// An impl's launch for one node; shared by all programs of a region.
struct OwnLaunch {
  keel_launch launch{};
  Run run = nullptr;
  const char* name = nullptr;  // of the impl, if it has one
  // It raises the processor's invalid-operation flag if its results are worthless; other launches may raise
  // it without cause.
  bool reports_nan_loss = false;
  OwnLaunch() = default;
  OwnLaunch(const OwnLaunch&) = delete;
  OwnLaunch& operator=(const OwnLaunch&) = delete;
  ~OwnLaunch() {
    if (launch.release != nullptr) launch.release(nullptr, launch.state);
  }
};
using OwnLaunches = std::map<const BodyNode*, OwnLaunch>;

// A step that runs a launch on plain operands.
struct OwnStep {
  const OwnLaunch* launch;
  std::vector<uint32_t> in, out;    // values
  std::vector<int> buffers;         // of in, then out; -1: omitted
  std::unique_ptr<OwnLaunch> made;  // set if the launch belongs to this step alone
  int scratch = -1;
};

struct Step {
  dnnl::primitive run;
  std::vector<Arg> args;
  std::unique_ptr<OwnStep> own;  // replaces the primitive
  GangNeeds gang = {};
  int concurrent = 1;  // so many steps from here on run concurrently, on one thread each
};

struct Program {
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  uint64_t arena = 0;
  bool loses_nan = false;  // a step may, and then raises the processor's flag
  std::string ways;        // keel_launch.steps
};

// Constant operands in primitives' layouts, shared by the programs of a region.
class Constants {
 public:
  // `key` identifies data derived from a constant; `make` creates it in layout `from`.
  const void* Get(const void* key, const Layout& from, const Layout& to,
                  const std::function<const void*(Bytes*)>& make);
  // These live as long as this object.
  const void* Vector(const std::vector<float>& values);
  const void* Integer(int32_t value);

 private:
  struct CachedConstant {
    const void* key;
    Layout from, to;
    Packed packed;
  };
  std::vector<CachedConstant> entries_;
  std::vector<std::unique_ptr<std::vector<float>>> vectors_;
  std::deque<int32_t> integers_;
};

dnnl::memory::data_type TypeOf(keel_dt dtype);  // undef: oneDNN does not compute with it here
bool IsPlain(const Layout& layout);

struct ReluPoolGrad;

class Builder {
 public:
  enum Kind : uint8_t { kFast, kCareful };  // careful: no step that may lose a NaN
  Builder(const Body& body, const std::vector<Group>& groups, Constants* constants, OwnLaunches* launches,
          Kind kind)
      : body(body),
        constants(constants),
        launches_(launches),
        kind_(kind),
        groups_(groups),
        copies_(body.values.size()),
        done_(body.nodes.size()) {}
  std::unique_ptr<Program> Run();

  const Body& body;
  const bool channels_last = IsTraining(body);  // of images, where oneDNN has optimised code for it
  Constants* constants;

  const BodyValue& Value(uint32_t v) const { return body.values[v]; }
  Layout PlainOf(uint32_t v) const;
  // The layout in which a value was first produced.
  Layout LayoutOf(uint32_t v) const { return copies_[v].front().layout; }
  bool Blocked(uint32_t v) const { return !copies_[v].empty() && !IsPlain(copies_[v].front().layout); }
  // The buffer of a value in a layout, which a reorder fills if there is none yet.
  int BufferIn(uint32_t v, const Layout& layout);
  int ResultBuffer(uint32_t v, const Layout& layout);  // a new buffer for a value that the next step produces
  void AssignBuffer(uint32_t v, const Layout& layout, int buffer);
  // The buffer of a value without later uses, in the program's own memory: may be overwritten.
  int OverwriteBuffer(uint32_t v, uint32_t user, const Layout& layout);
  bool MayOverwrite(uint32_t v, uint32_t user) const;
  int Constant(const void* data, uint64_t bytes);
  int Scratch(uint64_t bytes);
  void Emit(dnnl::primitive run, std::vector<Arg> args);
  // The same with the scratchpad that the primitive requires.
  template <class P>
  void Emit(const typename P::primitive_desc& d, std::vector<Arg> args) {
    const Layout pad = d.scratchpad_desc();
    if (pad.get_size() > 0) args.push_back({DNNL_ARG_SCRATCHPAD, pad, Scratch(pad.get_size())});
    Emit(P(d), std::move(args));
  }
  // The steps that `emit` adds run concurrently, each by a primitive for one thread.
  void EmitConcurrent(const std::function<void()>& emit);
  // On operands and results in plain layouts, or all in `layout`.
  void EmitOwn(const BodyNode& node, const Layout* layout = nullptr);
  // With a launch of this step alone; `buffers` of in, then out.
  void EmitOwn(std::unique_ptr<OwnLaunch> made, std::vector<uint32_t> in, std::vector<uint32_t> out,
               std::vector<int> buffers);
  // Whether a post-op or op may be used. Records that it may lose a NaN, which a careful program forbids.
  bool Allows(const PostOp& op);
  bool Alias(const BodyNode& node);  // the same elements with other dims
  // For people: how the steps of this node compute, and why so. The first explanation of a node stands.
  void Explain(const BodyNode& node, const std::string& way);

 private:
  struct Copy {
    Layout layout;
    int buffer;
  };
  static bool IsTraining(const Body& body);
  void EmitLayoutCopy(uint32_t v, const Copy& from, const Copy& to);
  void EmitOwn(std::unique_ptr<OwnStep> step);
  int New(Buffer buffer);
  int Use(int buffer);
  void EmitGroup(const Group& group);
  void MarkDone(const Group& group);
  const Group* OnlyUser(const Group& group) const;
  void EmitQuantisedGroup(const Group& group);
  void EmitGradGroup(const ReluPoolGrad& grad);
  bool Empty(const BodyNode& node) const;
  bool EndsWithOwn() const;  // the last step runs a launch
  void EmitNode(uint32_t n);
  void Finish();
  void PlanArena();

  void PrepareOwn();
  OwnLaunches* launches_;
  Kind kind_;
  const OwnLaunch* Launch(const BodyNode& node);
  const std::vector<Group>& groups_;
  std::vector<std::vector<Copy>> copies_;  // by value
  std::vector<bool> explained_ = std::vector<bool>(body.nodes.size());
  std::vector<bool> done_, shared_ = std::vector<bool>(copies_.size());
  std::unique_ptr<Program> program_;
};

// Each emits one op; false: oneDNN has no optimised implementation. The caller tries fewer post-ops, then the
// plugin's own impl.
bool EmitConv(Builder& b, const BodyNode& node, const Recipe& recipe);
bool EmitMatmul(Builder& b, const BodyNode& node, const Recipe& recipe);
bool EmitMaxPool(Builder& b, const BodyNode& node, const Layout& x, const Layout& y);
bool EmitQuantised(Builder& b, const Group& group);
// A convolution and the depthwise one of its result (strips.cc); false: not applicable.
bool EmitStripPair(Builder& b, const Group& first, const Group& second);
bool EmitConvGradX(Builder& b, const BodyNode& node);
bool EmitConvGradW(Builder& b, const BodyNode& node);
// A sum over all dims of images but the channels; for sum_to this is the only impl.
bool IsChannelSum(const Body& body, const BodyNode& node);
bool EmitChannelSum(Builder& b, const BodyNode& node);
using EmitOp = bool (*)(Builder& b, const BodyNode& node);
EmitOp FindEmitter(const std::string& op);  // for nodes outside groups

}  // namespace keel_cpu
