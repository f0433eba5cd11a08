// host.h: what plugins see of the kernel: the host table, nodes, and the module that an importer builds.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "abi/keel_plugin.h"
#include "kernel/base/status.h"
#include "kernel/graph/graph.h"
#include "kernel/opset/opset.h"
#include "kernel/plugin/registry.h"

namespace keel {
struct BodyView;
}

// One op with known operands, for match, prepare and passes. Filled by the planner.
struct keel_node {
  const keel::OpDef* op = nullptr;
  std::string name;
  struct Side {  // an operand or a result; left out: dtype none
    keel::DType dtype = keel::DType::kNone;
    std::vector<int64_t> dims;  // -1: any
    const void* data = nullptr;
  };
  std::vector<Side> in, out;
  keel::Attrs attrs;                           // complete; every dim a number (in a pass: or a handle)
  bool exact_convolution = false;              // the session's option
  std::shared_ptr<const keel::BodyView> body;  // of a call
  std::vector<std::shared_ptr<const keel::BodyView>> graphs;  // of a control op
  // Passes look at many nodes, mostly at their op: the rest is filled in when it is asked for.
  std::function<void(keel_node*)> fill;
};

namespace keel {

const keel_host& HostTable();

// One of the codes of keel_base.h that tell of a failure.
bool IsCode(keel_rc rc);

// Runs a call into a plugin and turns its code and text into a status. A plugin may fail on any thread;
// the text belongs to the call under way on that thread. Calls nest. Costs nothing but two pointers
// unless there is a text.
class HostCall {
 public:
  HostCall() : outer_(current_) { current_ = this; }
  ~HostCall() {
    current_ = outer_;
    if (text_) [[unlikely]]
      delete text_;
  }
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;
  absl::Status Finish(keel_rc rc, const Plugin& plugin, std::string_view doing) const;
  static void Keep(std::string_view text) noexcept;  // for the innermost call; without one it is lost

 private:
  static __thread HostCall* current_ __attribute__((tls_model("initial-exec")));
  HostCall* outer_;
  std::string* text_ = nullptr;
  bool no_memory_ = false;  // not even for the text
};

// What an importer writes into.
absl::StatusOr<std::unique_ptr<Module>> ImportFile(Registry& registry, const std::string& path,
                                                   std::span<const keel_kv> options,
                                                   std::span<const char* const> fixed_names,
                                                   std::span<const keel_tensor> fixed_values);

keel_attr ViewAttr(const AttrValue& value);  // borrows
absl::StatusOr<AttrValue> OwnAttr(const keel_attr& attr);
absl::StatusOr<Attrs> OwnAttrs(const char* const* names, const keel_attr* attrs, uint32_t n);  // sorted

// build.cc: a graph from the types of the C headers, for importers and for graphs by hand. `out` has room
// for all results of the node.
absl::StatusOr<TensorType> ParamType(std::string_view name, keel_dt code, const keel_dim* dims, int32_t ndim);
absl::StatusOr<ValueId> BuildParam(Graph&, const char* name, keel_dt code, const keel_dim* dims,
                                   int32_t ndim);
absl::Status BuildNode(Graph&, const keel_node_spec&, std::span<keel_value> out);
}  // namespace keel

namespace keel {

// What the edit members of the host table do to the graph of a pass; implemented by kernel/pass. Each
// function checks what it is given; an error leaves the graph as it was.
class Rewriter {
 public:
  virtual ~Rewriter() = default;
  virtual const std::string& DeviceName() = 0;
  virtual std::span<const NodeId> Nodes() = 0;         // in program order
  virtual const Node* Find(NodeId node) = 0;           // null: no such node (any more)
  virtual const keel_node* ViewNode(NodeId node) = 0;  // likewise
  virtual NodeId Producer(ValueId value) = 0;          // kNoValue: none
  virtual std::span<const NodeId> Users(ValueId value) = 0;
  virtual uint32_t Uses(ValueId value) = 0;  // how many these are
  virtual bool Fetched(ValueId value) = 0;
  virtual bool Fed(ValueId value) = 0;  // then a constant is none
  virtual bool Supported(NodeId node) = 0;
  virtual absl::Status Before(NodeId node) = 0;
  virtual absl::Status AddNode(const keel_node_spec& spec, std::span<ValueId> out) = 0;
  virtual absl::StatusOr<ValueId> AddConstant(Constant constant) = 0;
  virtual absl::Status Replace(ValueId old_value, ValueId new_value) = 0;
  virtual absl::StatusOr<NodeId> Outline(std::span<const NodeId> nodes, std::string_view name) = 0;
  virtual absl::Status Inline(NodeId call) = 0;
  virtual absl::Status Eval(NodeId node) = 0;
  virtual uint64_t Hash(NodeId node) = 0;  // of op, attributes, device scope; 0: it may not be merged
  virtual bool Same(NodeId one, NodeId other) = 0;
  virtual absl::Status Splice(NodeId node, int64_t graph, std::span<const ValueId> in) = 0;
  virtual uint32_t EffectsAt(NodeId node) = 0;
  virtual absl::StatusOr<Rewriter*> Body(int64_t graph) = 0;  // only to be read
  virtual keel_edit* edit() = 0;
  virtual absl::StatusOr<uint32_t> Derive(int64_t graph, std::span<const ValueId> params,
                                          const ValueId* types, std::span<const ValueId> results) = 0;
};

// The best impl of the device that takes these types and this node, or null (choose.cc).
using NodeView = std::function<absl::StatusOr<keel_node>()>;
absl::StatusOr<const Impl*> ChooseImpl(Device& device, const OpDef& op, const Inferred& inferred,
                                       const NodeView& view);
}  // namespace keel

// What an importer builds or a pass rewrites (edit.cc, rewrite.cc).
struct keel_edit {
  keel::Module* module;
  keel::Graph* graph;
  keel::Rewriter* rewriter = nullptr;     // in a pass
  const keel::FileMap* source = nullptr;  // in an import
};
namespace keel {
void FillEditMembers(keel_host* table);        // edit.cc
void FillRewriteMembers(keel_host* table);     // rewrite.cc
keel_rc HostFail(const absl::Status& status);  // sets the text of the call under way
keel_rc HostFailNoMemory() noexcept;
// Runs code of others, as "the observer": a C++ exception of it is an error that says so.
absl::Status Caught(std::string_view whose, absl::FunctionRef<absl::Status()> code);

// After an edit that ran out of memory half-way nobody knows what the graph is: from then on every member
// refuses (rewrite.cc). What is not of an edit is left alone.
void GiveUp(keel_edit* edit) noexcept;
template <typename T>
void GiveUp(const T&) noexcept {}

// A host member that lets no exception into the plugin: GuardedMember<Member>, or with what it answers
// when there is no memory.
template <auto Member, auto failed = KEEL_OOM>
struct GuardedMember;
template <typename Result, typename First, typename... Args, Result (*Member)(First, Args...), auto failed>
struct GuardedMember<Member, failed> {
  static Result Call(First first, Args... args) noexcept {
    try {
      return Member(first, args...);
    } catch (const std::exception&) {
      GiveUp(first);
      HostFailNoMemory();
      return Result(failed);
    }
  }
};
template <auto Member, auto failed = KEEL_OOM>
inline constexpr auto Guarded = GuardedMember<Member, failed>::Call;
}  // namespace keel
