// region.h: a region of a graph as a program of oneDNN primitives: what runs where, and in which layout.
//
// How to read it: body.h is what a region is made of; fuse.h decides which nodes become one primitive;
// Builder (build.cc) keeps book of the layouts in which each value exists, puts reorders in
// between and plans memory; conv.cc, winograd.cc, matmul.cc (by ops.h),
// conv_grad.cc and alone.cc emit one op each, back.cc those of what relu and pools send back;
// region.cc runs the program.
#pragma once

#include <array>
#include <atomic>
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
  int first = -1, last = -1;  // steps that use it
};

struct Arg {
  int id;  // oneDNN's
  Layout layout;
  int buffer;
  uint64_t offset = 0;  // bytes in the buffer: where a part begins
};

// What one of our own impls made of a node; it serves every program of a region.
struct OwnLaunch {
  keel_launch launch{};
  Run run = nullptr;
  // It raises the processor's flag for an invalid operation where its results are worthless; others may for
  // nothing.
  bool tells_loss = false;
  OwnLaunch() = default;
  OwnLaunch(const OwnLaunch&) = delete;
  OwnLaunch& operator=(const OwnLaunch&) = delete;
  ~OwnLaunch() {
    if (launch.release != nullptr) launch.release(nullptr, launch.state);
  }
};
using OwnLaunches = std::map<const BodyNode*, OwnLaunch>;

// A node that runs by it, on plain operands.
struct OwnStep {
  const OwnLaunch* launch;
  std::vector<uint32_t> in, out;    // values
  std::vector<int> buffers;         // of in, then out; -1: left out
  std::unique_ptr<OwnLaunch> made;  // where it is this step's own
  int scratch = -1;
};

struct Step {
  dnnl::primitive run;
  std::vector<Arg> args;
  std::unique_ptr<OwnStep> own;  // instead of a primitive
  Meetings meetings = {};
  int beside = 1;  // so many steps from here on run at once, each on one thread
};

struct Program {
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  uint64_t arena = 0;
  bool loses_nan = false;  // some step may, and raises the processor's flag
};

// Constant operands in the layouts that primitives want, shared by the programs of a region.
class Constants {
 public:
  // `key` tells apart what was made of one constant; `make` gives the data in layout `from`.
  const void* Get(const void* key, const Layout& from, const Layout& to,
                  const std::function<const void*(Bytes*)>& make);
  const void* Vector(const std::vector<float>& values);  // kept as long as this

 private:
  struct Entry {
    const void* key;
    Layout from, to;
    Packed packed;
  };
  std::vector<Entry> entries_;
  std::vector<std::unique_ptr<std::vector<float>>> vectors_;
};

dnnl::memory::data_type TypeOf(keel_dt dtype);  // undef: not one that oneDNN computes with here
bool IsPlain(const Layout& layout);

struct Back;

class Builder {
 public:
  enum Kind : uint8_t { kFast, kCareful };  // careful: nothing that may lose a NaN
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
  const bool channels_last = Trains(body);  // images are, wherever oneDNN is good at it
  Constants* constants;

  const BodyValue& Value(uint32_t v) const { return body.values[v]; }
  Layout PlainOf(uint32_t v) const;
  // The layout in which a value was made first.
  Layout LayoutOf(uint32_t v) const { return copies_[v].front().layout; }
  bool Blocked(uint32_t v) const { return !copies_[v].empty() && !IsPlain(copies_[v].front().layout); }
  // The buffer of a value in a layout; a reorder makes it if there is none yet.
  int Need(uint32_t v, const Layout& layout);
  int Made(uint32_t v, const Layout& layout);  // a new buffer for a value that the next step makes
  void MadeIn(uint32_t v, const Layout& layout, int buffer);
  // The buffer of a value that nobody wants after this use, in memory of ours: may be overwritten.
  int Take(uint32_t v, uint32_t user, const Layout& layout);
  bool MayTake(uint32_t v, uint32_t user) const;
  int Constant(const void* data, uint64_t bytes);
  int Scratch(uint64_t bytes);
  void Emit(dnnl::primitive run, std::vector<Arg> args);
  // The same with the scratchpad that it wants.
  template <class P>
  void Emit(const typename P::primitive_desc& d, std::vector<Arg> args) {
    const Layout pad = d.scratchpad_desc();
    if (pad.get_size() > 0) args.push_back({DNNL_ARG_SCRATCHPAD, pad, Scratch(pad.get_size())});
    Emit(P(d), std::move(args));
  }
  // The steps that `emit` makes run at once, each by a primitive made for one thread.
  void EmitBeside(const std::function<void()>& emit);
  void EmitOwn(const BodyNode& node);
  // By a launch of this step's own; buffers of in, then out.
  void EmitOwn(std::unique_ptr<OwnLaunch> made, std::vector<uint32_t> in, std::vector<uint32_t> out,
               std::vector<int> buffers);
  // Whether what a recipe or an op asks may be done: notes that it loses a NaN, which a careful program may
  // not.
  bool Allows(const PostOp& op);
  bool Alias(const BodyNode& node);  // same elements, other dims

 private:
  struct Copy {
    Layout layout;
    int buffer;
  };
  static bool Trains(const Body& body);
  void EmitRelay(uint32_t v, const Copy& from, const Copy& to);
  void EmitOwn(std::unique_ptr<OwnStep> step);
  int New(Buffer buffer);
  int Use(int buffer);
  void EmitGroup(const Group& group);
  void EmitBackOf(const Back& back);
  bool Empty(const BodyNode& node) const;
  void EmitNode(uint32_t n);
  void Finish();
  void PlanArena();

  void PrepareOwn();
  OwnLaunches* launches_;
  Kind kind_;
  const OwnLaunch* Launch(const BodyNode& node);
  const std::vector<Group>& groups_;
  std::vector<std::vector<Copy>> copies_;  // by value
  std::vector<bool> done_, shared_ = std::vector<bool>(copies_.size());
  std::unique_ptr<Program> program_;
};

// One op each; false: oneDNN has no good implementation, try with fewer post-ops or run our own impl.
bool EmitConv(Builder& b, const BodyNode& node, const Recipe& recipe);
bool EmitMatmul(Builder& b, const BodyNode& node, const Recipe& recipe);
bool EmitMaxPool(Builder& b, const BodyNode& node, const Layout& x, const Layout& y);
bool EmitConvGradX(Builder& b, const BodyNode& node);
bool EmitConvGradW(Builder& b, const BodyNode& node);
// A sum over all but the channels of images; that of sum_to has no other impl.
bool IsChannelSum(const Body& body, const BodyNode& node);
bool EmitChannelSum(Builder& b, const BodyNode& node);
using EmitAlone = bool (*)(Builder& b, const BodyNode& node);
EmitAlone FindEmitter(const std::string& op);  // for a node outside of groups

}  // namespace keel_cpu
