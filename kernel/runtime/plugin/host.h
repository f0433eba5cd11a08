// host.h: the kernel as seen by plugins: the host table, and the module that an importer builds.
#pragma once

#include <forward_list>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "abi/keel_plugin.h"
#include "kernel/base/status.h"
#include "kernel/language/graph/graph.h"
#include "kernel/language/opset/opset.h"
#include "kernel/runtime/plugin/build.h"
#include "kernel/runtime/plugin/node.h"
#include "kernel/runtime/plugin/registry.h"

namespace keel {

const keel_host& HostTable();

// Whether it is an error code of keel_base.h.
bool IsCode(keel_rc rc);

// Scope of a call into a plugin; converts the plugin's return code and message to a status. A plugin may fail
// on any thread: the message belongs to the current call of that thread. Calls nest. Without a message it
// costs two pointer writes.
class HostCall {
 public:
  HostCall() : outer_(current_) { current_ = this; }
  ~HostCall() {
    current_ = outer_;
    if (failure_) [[unlikely]]
      delete failure_;
  }
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;
  absl::Status Finish(keel_rc rc, const Plugin& plugin, std::string_view doing) const;
  // For the innermost call; dropped if there is none.
  static void SetMessage(std::string_view text, std::string_view hint = {}) noexcept;

 private:
  static __thread HostCall* current_ __attribute__((tls_model("initial-exec")));
  HostCall* outer_;
  struct Failure {
    std::string text, hint;
  };
  Failure* failure_ = nullptr;
  bool no_memory_ = false;  // not even for the message
};

bool HasExtension(const keel_importer& importer, const std::string& path);
// Appends the gradient of a y with respect to xs: of kernel/program, so each import receives it.
using GradientFn = absl::StatusOr<std::vector<ValueId>> (*)(Graph& graph, ValueId y,
                                                            std::span<const ValueId> xs);
// Imports a file with the best importer.
absl::StatusOr<std::unique_ptr<Module>> ImportFile(Registry& registry, GradientFn gradient,
                                                   const std::string& path, std::span<const keel_kv> options,
                                                   std::span<const char* const> fixed_names,
                                                   std::span<const keel_tensor> fixed_values);

// Implements the edit members of the host table for a pass (kernel/runtime/pass). Each function checks its
// arguments; an error leaves the graph unchanged.
class Rewriter {
 public:
  virtual ~Rewriter() = default;
  virtual const std::string& DeviceName() = 0;
  virtual std::span<const NodeId> Nodes() = 0;         // in program order
  virtual const Node* Find(NodeId node) = 0;           // null: no such node, or removed
  virtual const keel_node* ViewNode(NodeId node) = 0;  // null: no such node, or removed
  virtual NodeId Producer(ValueId value) = 0;          // kNoValue: none
  virtual std::span<const NodeId> Users(ValueId value) = 0;
  virtual uint32_t Uses(ValueId value) = 0;  // their number
  virtual bool Fetched(ValueId value) = 0;
  virtual bool Fed(ValueId value) = 0;  // if so, a constant has no known value
  virtual bool Supported(NodeId node) = 0;
  virtual absl::Status Before(NodeId node) = 0;
  virtual absl::Status AddNode(const keel_node_spec& spec, std::span<ValueId> out) = 0;
  virtual absl::StatusOr<ValueId> AddConstant(Constant constant) = 0;
  virtual absl::Status Replace(ValueId old_value, ValueId new_value) = 0;
  virtual absl::StatusOr<NodeId> Outline(std::span<const NodeId> nodes, std::string_view name) = 0;
  virtual absl::Status Inline(NodeId node) = 0;
  virtual absl::Status Eval(NodeId node) = 0;
  virtual uint64_t Hash(NodeId node) = 0;  // of op, attributes, device scope; 0: must not be merged
  virtual bool Same(NodeId one, NodeId other) = 0;
  virtual absl::Status Splice(NodeId node, int64_t graph, std::span<const ValueId> in) = 0;
  virtual uint32_t EffectsAt(NodeId node) = 0;
  virtual absl::StatusOr<Rewriter*> Body(int64_t graph) = 0;  // read-only
  virtual keel_edit* edit() = 0;
  virtual absl::StatusOr<uint32_t> Derive(int64_t graph, std::span<const ValueId> params,
                                          const ValueId* types, std::span<const ValueId> results) = 0;
};

// The first impl of the device that supports the node, best first, or null (choose.cc). after: an impl that
// declined the node, which only later ones replace.
using NodeView = std::function<absl::StatusOr<keel_node>()>;
absl::StatusOr<const Impl*> ChooseImpl(Device& device, const OpDef& op, const Inferred& inferred,
                                       const NodeView& view, const Impl* after = nullptr);
}  // namespace keel

// The object that an importer builds or a pass rewrites (edit.cc, rewrite.cc).
struct keel_edit {
  keel::Module* module;
  keel::Graph* graph;
  keel::Rewriter* rewriter = nullptr;  // in a pass
  // In an import: the file, the edits of all graphs of the module, and gradients.
  const keel::FileMap* source = nullptr;
  std::forward_list<keel_edit>* graphs = nullptr;
  keel::GradientFn gradient = nullptr;
  std::string text{};  // the last result of dim_text or value_name
};
namespace keel {
void FillEditMembers(keel_host* table);        // edit.cc
void FillRewriteMembers(keel_host* table);     // rewrite.cc
void FillSpaceMembers(keel_host* table);       // node_space.cc
keel_rc HostFail(const absl::Status& status);  // sets the message of the current call
keel_rc HostFailNoMemory() noexcept;
// Runs external code, such as "the observer"; converts a C++ exception to an error.
absl::Status CatchExceptions(std::string_view whose, absl::FunctionRef<absl::Status()> code);

// Disables the edit of a pass that ran out of memory half-way and may be inconsistent: every later member
// fails (rewrite.cc). No-op for other types.
void DisableEdit(keel_edit* edit) noexcept;
template <typename T>
void DisableEdit(const T&) noexcept {}

// A noexcept wrapper of a host member. `failed` is its result if memory runs out.
template <auto Member, auto failed = KEEL_OOM>
struct GuardedMember;
template <typename Result, typename First, typename... Args, Result (*Member)(First, Args...), auto failed>
struct GuardedMember<Member, failed> {
  static Result Call(First first, Args... args) noexcept {
    try {
      return Member(first, args...);
    } catch (const std::exception&) {
      DisableEdit(first);
      HostFailNoMemory();
      return Result(failed);
    }
  }
};
template <auto Member, auto failed = KEEL_OOM>
inline constexpr auto Guarded = GuardedMember<Member, failed>::Call;
}  // namespace keel
