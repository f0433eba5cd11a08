// shader_op.h: impls with shaders of shaders/op.glsl: a function fills an Op from its node.
#ifndef KEEL_PLUGINS_VULKAN_SHADER_OP_H
#define KEEL_PLUGINS_VULKAN_SHADER_OP_H
#include <string>

#include "node.h"
#include "sdk/plugin/numbers.h"

namespace vulkan {

using keel::plugin::kAllTypes, keel::plugin::kFloatTypes, keel::plugin::kNumTypes;

inline uint32_t Count32(const keel_tensor& t) { return static_cast<uint32_t>(keel_count(&t)); }
inline uint32_t Product32(const int64_t* begin, const int64_t* end) {
  return static_cast<uint32_t>(product(begin, end));
}
inline bool IsFloat(const keel_tensor& t) { return keel::plugin::Computed(keel_dt_of(&t)).floating; }

// A tensor viewed as [outer, size, inner] around an axis.
struct Lines {
  uint32_t outer, size, inner;
  Lines(const keel_tensor& t, int64_t axis)
      : outer(Product32(t.shape, t.shape + axis)),
        size(static_cast<uint32_t>(t.shape[axis])),
        inner(Product32(t.shape + axis + 1, t.shape + t.ndim)) {}
  uint32_t count() const { return outer * inner; }
};

// Iterations of loops that a thread runs in a dispatch, about: GPUs stop work of seconds, and lavapipe ends
// all loops of a thread after 65,535 iterations without an error. Longer work takes several steps.
inline constexpr uint32_t kMostIterations = 20000;

class Op : public Node {
 public:
  Op(keel_dev d, const keel_host* host, const keel_node* node) : Node(host, node), device(d) {
    if (!rc) host->node_arity(node, &n_in, &n_out);
  }
  // A shader for elements of t: constants from number 2 on.
  VkPipeline Numbers(const char* shader, const keel_tensor& t, const Constants& constants);
  // A shader for elements of t by width: constants from number 1 on.
  VkPipeline Movement(const char* shader, const keel_tensor& t, const Constants& constants);
  // A product of tiles by cooperative matrices: constants from number 4 on.
  VkPipeline Cooperative(const char* shader, const Constants& constants);
  // The first dispatch, or one more, after a barrier.
  void Then(VkPipeline pipeline, Groups groups, uint64_t step, uint64_t numbers = 0) {
    const Dispatch each{pipeline, groups, step, numbers};
    if (work.pipeline)
      work.more.push_back(each);
    else
      static_cast<Dispatch&>(work) = each;
  }
  void Fail(keel_rc code, const std::string& message) {
    if (!rc) rc = host->fail(code, message.c_str());
  }
  bool Is(const char* op) const { return std::string_view(host->node_op(node)) == op; }

  keel_dev device;
  uint32_t n_in = 0, n_out = 0;
  Work work;

 private:
  VkPipeline Make(const std::string& module, const Constants& constants, uint32_t subgroup = 0);
};

// Why shaders that compute, and shaders that move elements and need only their width, do not take the
// elements of an operand or result; NULL: they do.
const char* LackOfNumbers(const Optional& has, const keel_tensor& t);
const char* LackOfWidth(const Optional& has, const keel_tensor& t);
// 1 if they take all operands and results.
int32_t MatchNumbers(keel_dev d, const keel_host* host, const keel_node* node);
int32_t MatchWidths(keel_dev d, const keel_host* host, const keel_node* node);

// Values as elements.glsl's from_bits takes them, for elements of t.
inline uint64_t BitsOf(const keel_tensor& t, double value) {
  return keel::plugin::bits_of_number(keel_dt_of(&t), value);
}
inline uint64_t LowestBits(const keel_tensor& t) {
  return BitsOf(t, keel_dt_of(&t) == KEEL_BOOL ? 0 : -HUGE_VAL);
}
inline uint64_t HighestBits(const keel_tensor& t) { return BitsOf(t, HUGE_VAL); }

template <void (*FILL)(Op&)>
keel_rc Prepared(keel_dev d, const keel_host* host, const keel_node* of, keel_launch* launch) {
  Op op(d, host, of);
  if (keel_rc rc = CheckCounts(op)) return rc;
  FILL(op);
  return op.Finish(op.work, launch);
}
template <void (*FILL)(Op&)>
keel_impl NumbersRow(const char* op, const char* types, const char* name) {
  return Row<Prepared<FILL>, MatchNumbers>(op, types, name);
}
template <void (*FILL)(Op&)>
keel_impl MovementRow(const char* op, const char* name, uint32_t flags = 0) {
  return Row<Prepared<FILL>, MatchWidths>(op, nullptr, name, flags);
}

}  // namespace vulkan
#endif
