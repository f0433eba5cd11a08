// while.cc: a `while` over scalars as one launch in machine code (jit.h). Other carried values, ops that may
// fail and effects are declined; libkeel then runs the loop's bodies launch by launch.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <string_view>

#include "plugins/cpu/common.h"
#include "plugins/cpu/elementwise/binary_loops.h"
#include "plugins/cpu/elementwise/cast_loops.h"
#include "plugins/cpu/elementwise/unary_loops.h"
#include "plugins/cpu/jit/jit.h"

namespace keel_cpu {
namespace {

bool IsScalar(const keel_tensor& t) {
  return std::all_of(t.shape, t.shape + t.ndim, [](int64_t d) { return d == 1; });
}

// The loop function of an op without machine code; null: none, or one that may fail.
const void* FunctionOf(const Node& node, std::string_view op, uint32_t n_in) {
  const keel_tensor x = node.In(0), y = node.Out(0);
  if (n_in == 1) {
    if (op == "cast") return reinterpret_cast<const void*>(FindCast(TypeOf(x), TypeOf(y)));
    const UnaryOp* found = FindUnary(node);
    return found ? reinterpret_cast<const void*>(found->loop) : nullptr;
  }
  const BinaryOp* found = n_in == 2 ? FindBinary(node.host->node_op(node.node), TypeOf(x)) : nullptr;
  return found && !found->failure ? reinterpret_cast<const void*>(found->loops[0]) : nullptr;
}

// Flattens the two graphs into one list of ops.
class Compiler {
 public:
  explicit Compiler(const Node& node) : node_(node) { ok_ = Read(); }
  bool ok() const { return ok_; }
  const JitWhile& loop() const { return loop_; }

 private:
  bool Read() {
    const uint32_t n_in = node_.InCount();
    for (uint32_t i = 0; i < n_in; i++)
      if (!Add(node_.In(i))) return false;
    loop_.given = n_in;
    const auto carry = static_cast<size_t>(node_.Int("carry"));
    std::vector<uint32_t> results;
    if (!ReadGraph(0, &results) || results.size() != 1) return false;
    loop_.go = results[0];
    loop_.test_ops = loop_.body.ops.size();
    return ReadGraph(1, &loop_.next) && loop_.next.size() == carry;
  }
  // Adds a value of one element whose dtype has registers.
  std::optional<uint32_t> Add(const keel_tensor& t) {
    if (!HasRegisters(TypeOf(t)) || !IsScalar(t)) return std::nullopt;
    loop_.body.values.push_back(TypeOf(t));
    return static_cast<uint32_t>(loop_.body.values.size() - 1);
  }
  bool ReadGraph(uint32_t i, std::vector<uint32_t>* results) {
    keel_body graph = {sizeof(keel_body), 0, 0, 0, nullptr, nullptr};
    if (node_.host->node_graph(node_.node, i, &graph) != KEEL_OK) return false;
    std::vector<uint32_t> given(loop_.given);
    std::iota(given.begin(), given.end(), 0);
    return ReadNodes(graph, given, results);
  }
  bool ReadNodes(const keel_body& graph, const std::vector<uint32_t>& given, std::vector<uint32_t>* results) {
    std::vector<uint32_t> outer = given;
    outer.resize(graph.n_values, KEEL_NO_VALUE);
    std::swap(outer, number_);
    bool ok = true;
    for (uint32_t k = 0; ok && k < graph.n_nodes; k++) ok = ReadNode(graph.nodes[k]);
    for (uint32_t k = 0; k < graph.n_results; k++) results->push_back(number_[graph.results[k]]);
    std::swap(outer, number_);
    return ok && std::find(results->begin(), results->end(), KEEL_NO_VALUE) == results->end();
  }
  bool ReadCall(const keel_body_node& n) {
    keel_body graph = {sizeof(keel_body), 0, 0, 0, nullptr, nullptr};
    if (node_.host->node_body(n.node, &graph) != KEEL_OK || graph.n_results != n.n_out) return false;
    std::vector<uint32_t> given, results;
    for (uint32_t k = 0; k < n.n_in; k++) given.push_back(number_[n.in[k]]);
    if (!ReadNodes(graph, given, &results)) return false;
    std::copy(results.begin(), results.end(), number_.begin() + n.out);
    return true;
  }
  bool ReadNode(const keel_body_node& n) {
    const Node node{node_.host, n.node};
    const std::string_view op = node.host->node_op(n.node);
    for (uint32_t k = 0; k < n.n_in; k++)
      if (n.in[k] == KEEL_NO_VALUE || !Known(n.in[k], node.In(k))) return false;
    if (op == "call") return ReadCall(n);
    if (n.n_out != 1 || n.n_in < 1 || n.n_in > 3) return false;
    keel_dt types[3];
    for (uint32_t k = 0; k < n.n_in; k++) types[k] = TypeOf(node.In(k));
    if (op == "identity" || op == "stop_gradient") {
      number_[n.out] = number_[n.in[0]];
      return true;
    }
    JitOp made = {
        FindJit(node.host->node_op(n.node), types, TypeOf(node.Out(0))), {}, 0, static_cast<uint8_t>(n.n_in)};
    if (!made.row) made.function = FunctionOf(node, op, n.n_in);
    const std::optional<uint32_t> out = Add(node.Out(0));
    if ((!made.row && !made.function) || !out) return false;
    for (uint32_t k = 0; k < n.n_in; k++) made.in[k] = number_[n.in[k]];
    made.out = number_[n.out] = *out;
    loop_.body.ops.push_back(made);
    return true;
  }
  // Whether the value is known; a value that no node produces is a constant.
  bool Known(uint32_t v, const keel_tensor& t) {
    if (number_[v] != KEEL_NO_VALUE) return true;
    const std::optional<uint32_t> number = t.data ? Add(t) : std::nullopt;
    if (!number) return false;
    uint64_t bits = 0;
    std::memcpy(&bits, keel_ptr(&t), static_cast<size_t>(ItemSize(t)));
    loop_.literals.emplace_back(*number, bits);
    number_[v] = *number;
    return true;
  }

  Node node_;
  bool ok_ = false;
  JitWhile loop_;
  std::vector<uint32_t> number_;  // by value of the graph being read: its number in the loop
};

struct While {
  std::shared_ptr<WhileLoop> code;
};
constexpr int kMost = 32;  // limit of operands and of results

keel_rc RunWhile(const keel_call* call) {
  char* at[kMost];
  for (int i = 0; i < call->n_in; i++) at[i] = const_cast<char*>(In<char>(call, i));
  for (int i = 0; i < call->n_out; i++) at[call->n_in + i] = Out<char>(call, i);
  return (*State<While>(call).code)(at, call->env->cancelled) ? KEEL_CANCELLED : KEEL_OK;
}

int32_t MatchWhile(keel_dev, const keel_host* host, const keel_node* node) {
  try {
    const Compiler compiler(Node{host, node});
    return compiler.ok() && compiler.loop().given + compiler.loop().next.size() <= kMost &&
           CompileWhile(compiler.loop()) != nullptr;
  } catch (...) {
    return 0;
  }
}
keel_rc PrepareWhile(const Node& node, keel_launch* launch) {
  const Compiler compiler(node);
  While made = {compiler.ok() ? CompileWhile(compiler.loop()) : nullptr};
  if (!made.code) Throw(KEEL_UNIMPLEMENTED, "no machine code for this loop");
  return Keep(launch, std::move(made), RunWhile);
}

constexpr keel_impl kImpls[] = {{"while", 1, 1, nullptr, "loop over scalars", 0, KEEL_IMPL_ANY_DIMS,
                                 MatchWhile, Prepare<PrepareWhile>, nullptr}};

}  // namespace

Impls WhileImpls() { return kImpls; }

}  // namespace keel_cpu
