// The module of each op for each combination of dtypes, and of random bodies, is accepted by spirv-val. The
// variants take turns, as they share nothing with an op's instructions; with KEEL_SWEEP=1 each op is built in
// each variant, and there are more bodies.
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "cases.h"
#include "launch.h"

namespace {

using namespace vulkan_test;

// What spirv-val reports; "": nothing.
std::string Validate(const keel_spirv::Words& words) {
  const std::string path = testing::TempDir() + "keel_module.spv", log = path + ".log";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(words.data()), static_cast<int64_t>(words.size() * 4));
  const int rc =
      std::system((KEEL_SPIRV_VAL " --target-env vulkan1.3 " + path + " >" + log + " 2>&1").c_str());
  std::ifstream text(log);
  const std::string all((std::istreambuf_iterator<char>(text)), {});
  return rc == 0 ? "" : "exit status " + std::to_string(rc) + ": " + all;
}
keel_spirv::Words ModuleOf(const keel_node& node, const Variant& variant) {
  const keel_spirv::Kernel kernel = keel_spirv::MakeKernel(SpecOf(node, variant));
  EXPECT_EQ(kernel.error, "") << NameOf(node);
  return kernel.words;
}

TEST(SpirvModules, AreValid) {
  const bool sweep = std::getenv("KEEL_SWEEP") != nullptr;
  uint32_t n = 0, turn = 0;
  for (const keel_node& node : AllNodes({5, 7}))
    for (uint32_t i = 0; i < (sweep ? kVariants : 1); i++, n++) {
      const Variant v = Variant::Of(sweep ? i : turn++ % kVariants);
      EXPECT_EQ(Validate(ModuleOf(node, v)), "") << NameOf(node) << ", " << v.Name();
    }
  std::cout << n << " modules\n";
  EXPECT_GE(n, 556u);
}

// Calls of random nodes on an operand of each dtype and on earlier results. The last node's result and up to
// three others are those of the call.
class RandomCalls {
 public:
  RandomCalls() {
    for (const keel_node& node : AllNodes({5, 7})) by_op_[node.op].push_back(node);
    for (const auto& [op, nodes] : by_op_) ops_.push_back(op);
  }
  size_t n_ops() const { return ops_.size(); }

  // The last node is of op `last`.
  keel_node Make(size_t last) {
    keel_node call;
    call.op = "call";
    values_.clear();
    for (const keel_node& node : by_op_.at("equal")) AddOperand(node.in[0].dtype, &call);  // every dtype
    const uint32_t others = 1 + Draw(8);
    for (uint32_t i = 0; i < others; i++) AddNode(ops_[Draw(n_ops())], &call);
    AddNode(ops_[last], &call);
    call.results = {call.n_values - 1};
    call.out = {call.nodes.back().out[0]};
    for (uint32_t i = 0; i < others && call.out.size() < 4; i++) {
      if (Draw(2)) continue;
      call.results.push_back(call.node_out[i]);
      call.out.push_back(call.nodes[i].out[0]);
    }
    return call;
  }

 private:
  uint32_t Draw(size_t n) { return static_cast<uint32_t>(rng_() % n); }
  void AddOperand(keel_dt dtype, keel_node* call) {
    values_[dtype].push_back(call->n_values++);
    call->in.push_back({dtype, {5, 7}});
  }
  // Half of the operands are the last values of their dtypes, so that nodes depend on each other.
  void AddNode(const std::string& op, keel_node* call) {
    const std::vector<keel_node>& all = by_op_.at(op);
    const keel_node& node = all[Draw(all.size())];
    std::vector<uint32_t> in;
    for (const BareTensor& t : node.in) {
      const std::vector<uint32_t>& fitting = values_.at(t.dtype);
      in.push_back(Draw(2) ? fitting.back() : fitting[Draw(fitting.size())]);
    }
    call->nodes.push_back(node);
    call->nodes.back().out[0].dims = {5, 7};
    call->node_in.push_back(std::move(in));
    call->node_out.push_back(call->n_values);
    values_[node.out[0].dtype].push_back(call->n_values++);
  }

  std::map<std::string, std::vector<keel_node>> by_op_;
  std::vector<std::string> ops_;
  std::map<keel_dt, std::vector<uint32_t>> values_;  // by dtype
  std::mt19937_64 rng_{7};
};

TEST(SpirvModules, OfRandomBodiesAreValid) {
  RandomCalls calls;
  std::set<std::string> ops;
  std::set<keel_dt> operands, results;
  const size_t n = calls.n_ops() * (std::getenv("KEEL_SWEEP") != nullptr ? 20 : 3);
  size_t steps = 0;
  for (size_t i = 0; i < n; i++) {
    const keel_node call = calls.Make(i % calls.n_ops());
    const Variant v = Variant::Of(static_cast<uint32_t>(i) % kVariants);
    const keel_spirv::KernelSpec spec = SpecOf(call, v);
    std::string text;
    for (const keel::plugin::Step& step : spec.body.steps) text += " " + step.op, ops.insert(step.op);
    for (uint32_t r : spec.reads) operands.insert(spec.body.dtypes[r]);
    for (const BareTensor& t : call.out) results.insert(t.dtype);
    EXPECT_EQ(Validate(ModuleOf(call, v)), "") << v.Name() << ":" << text;
    steps += spec.body.steps.size();
  }
  std::cout << n << " bodies of " << steps << " ops\n";
  EXPECT_EQ(ops.size(), calls.n_ops());
  EXPECT_EQ(operands.size(), 13u);
  EXPECT_EQ(results.size(), 13u);
  EXPECT_GE(steps, 2 * n);
}

TEST(SpirvModules, OfOneOpAreValidInEachVariant) {
  const BareTensor t = {KEEL_I16, {3, 4}};
  for (uint32_t i = 0; i < kVariants; i++)
    EXPECT_EQ(Validate(ModuleOf(bare::NodeBuilder("div", {t, t}, {t}).node, Variant::Of(i))), "") << i;
}

// A changed opcode is reported: the test can fail.
TEST(SpirvModules, ThatAreDamagedAreInvalid) {
  const BareTensor t = {KEEL_F32, {4}};
  keel_spirv::Words words = ModuleOf(bare::NodeBuilder("add", {t, t}, {t}).node, {});
  const auto add = std::find(words.begin(), words.end(), 5u << 16 | 129u);  // OpFAdd
  ASSERT_NE(add, words.end());
  *add = 5u << 16 | 128u;  // OpIAdd
  EXPECT_NE(Validate(words), "");
}

TEST(SpirvModules, OfRandomNumbersAreValid) {
  for (const char* kind : {"random.uniform", "random.normal"})
    for (keel_dt dt : bare::kFloats)
      EXPECT_EQ(Validate(keel_spirv::MakeKernel(keel_spirv::RandomSpec(kind, dt)).words), "") << kind;
}

}  // namespace
