// pass_helpers.h: passes written as lambdas of a test, in plugins created at run time.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "kernel/runtime/plan/make_plan.h"
#include "kernel/runtime/rules/rules.h"
#include "tests/kernel/verify.h"

namespace keel::test {

using PassBody = std::function<keel_rc(const keel_host*, keel_edit*)>;
inline std::vector<PassBody>& Bodies() {
  static std::vector<PassBody> bodies(8);
  return bodies;
}
template <size_t I>
keel_rc RunBody(const keel_host* h, keel_edit* e) {
  return Bodies()[I] ? Bodies()[I](h, e) : KEEL_OK;
}
constexpr keel_rc (*kRunners[])(const keel_host*, keel_edit*) = {
    RunBody<0>, RunBody<1>, RunBody<2>, RunBody<3>, RunBody<4>, RunBody<5>, RunBody<6>, RunBody<7>};

struct PassSpec {
  const char* name;
  int32_t phase = KEEL_PHASE_CANON, level = 1, exactness = KEEL_EXACT;
  const char* after = nullptr;
  const char* before = nullptr;
};

class PassTest : public testing::Test {
 protected:
  PassTest() : registry_(std::make_shared<Catalogue>(), ReadRules), passes_(registry_) {
    absl::Status loaded = registry_.LoadFile(KEEL_TEST_PLUGINS "/keel-reference.so", "");
    EXPECT_TRUE(loaded.ok()) << loaded;
    device_ = *registry_.FindDevice("reference");
    Bodies().assign(8, nullptr);
  }

  // A plugin with these passes; pass i runs Bodies()[i].
  absl::Status Add(const std::string& plugin, const std::vector<PassSpec>& specs, const char* ops = nullptr) {
    names_.push_back(plugin);
    auto& rows = rows_.emplace_back();
    for (const PassSpec& s : specs)
      rows.push_back({s.name, "a test", s.phase, s.level, s.exactness, 0, s.after, s.before,
                      kRunners[made_++ % std::size(kRunners)]});
    keel_plugin table{};
    table.struct_size = sizeof table;
    table.draft = KEEL_ABI_DRAFT;
    table.name = names_.back().c_str();
    table.about = "";
    table.ops = ops;
    table.passes = rows.data();
    table.n_passes = static_cast<uint32_t>(rows.size());
    table.pass_stride = sizeof(keel_pass);
    tables_.push_back(table);
    return registry_.Add(&tables_.back(), "").status();
  }

  void Parse(const std::string& body) {
    auto module = ParseText("keel 1\n" + body, registry_.catalogue());
    ASSERT_TRUE(module.ok()) << module.status();
    module_ = *std::move(module);
    graph_ = *module_->FindGraph("main");
  }

  // Runs one pass on the whole graph, in place; returns the text afterwards.
  std::string Optimize(PassBody body, PassChoice choice = {}) {
    if (made_ == 0) {
      EXPECT_TRUE(Add("test", {{"test", KEEL_PHASE_LOWER}}).ok());
    }
    if (body) Bodies()[0] = std::move(body);
    report_ = {};
    auto better = OptimizeModule(passes_, choice, *graph_, device_, {}, &report_);
    EXPECT_TRUE(better.ok()) << better.status();
    if (!better.ok()) return "";
    EXPECT_TRUE(!*better || Verify(**better).ok());
    return PrintText(*better ? **better : *module_);
  }

  // The body of @main in the result of Optimize.
  static std::string Main(const std::string& text) {
    size_t at = text.find("fn @main");
    size_t begin = text.find('\n', at) + 1;
    return text.substr(begin, text.find("\n}", begin) + 1 - begin);
  }

  std::deque<std::string> names_;
  std::deque<std::vector<keel_pass>> rows_;
  std::deque<keel_plugin> tables_;
  size_t made_ = 0;
  Registry registry_;
  Passes passes_;
  Device* device_ = nullptr;
  std::unique_ptr<Module> module_;
  Graph* graph_ = nullptr;
  PassReport report_;
};

// Common edits.
struct Reader {
  const keel_host* h;
  keel_edit* e;
  std::vector<uint32_t> Nodes(const std::string& op = "") const {
    const uint32_t* list = nullptr;
    uint32_t n = h->edit_nodes(e, &list);
    std::vector<uint32_t> out;
    for (uint32_t i = 0; i < n; i++)
      if (op.empty() || op == h->node_op(h->edit_node(e, list[i]))) out.push_back(list[i]);
    return out;
  }
  keel_value In(uint32_t node, uint32_t i) const {
    const keel_value* in = nullptr;
    uint32_t n = 0;
    EXPECT_EQ(h->edit_operands(e, node, &in, &n, nullptr, nullptr), KEEL_OK);
    return in[i];
  }
  keel_value Out(uint32_t node) const {
    const keel_value* out = nullptr;
    uint32_t n = 0;
    EXPECT_EQ(h->edit_operands(e, node, nullptr, nullptr, &out, &n), KEEL_OK);
    return out[0];
  }
  std::vector<uint32_t> Users(keel_value v) const {
    const uint32_t* list = nullptr;
    uint32_t n = h->edit_users(e, v, &list);
    return {list, list + n};
  }
  keel_rc AddNode(const char* op, std::vector<keel_value> in, keel_value* out,
                  const char* name = nullptr) const {
    keel_node_spec spec{
        sizeof spec, 0, op, name, in.data(), nullptr, nullptr, static_cast<uint32_t>(in.size()), 0};
    return h->add_node(e, &spec, out, 1);
  }
};

// Sample graphs and simple passes.
inline constexpr char kChain[] =
    "fn @main(x: f32[2]) -> y: f32[2] {\n  a = neg(x)\n  b = relu(a)\n  y = exp(b)\n  return y\n}\n"
    "entry main = @main (x) -> (y)\n";

inline constexpr char kCalls[] =
    "fn @deep(x: f32[2]) -> f32[2] {\n  a = neg(x)\n  b = relu(a)\n  return b\n}\n"
    "fn @inner(x: f32[2]) -> f32[2] {\n  c = call(x){body=@deep}\n  d = neg(c)\n  e = abs(d)\n  return e\n}\n"
    "fn @other(x: f32[2]) -> f32[2] {\n  a = neg(x)\n  b = relu(a)\n  return b\n}\n"
    "fn @main(x: f32[2]) -> y: f32[2] {\n  p = call(x){body=@inner}\n  q = call(p){body=@inner}\n  y = "
    "exp(q)\n"
    "  return y\n}\nentry main = @main (x) -> (y)\n";

// Drops the first node that is not fetched.
inline keel_rc DropOne(const keel_host* h, keel_edit* e) {
  Reader r{h, e};
  uint32_t first = r.Nodes()[0];
  return h->edit_fetched(e, r.Out(first)) ? KEEL_OK : h->edit_replace(e, r.Out(first), r.In(first, 0));
}

// Drops every neg.
inline keel_rc DropNegs(const keel_host* h, keel_edit* e) {
  Reader r{h, e};
  for (uint32_t neg : r.Nodes("neg")) EXPECT_EQ(h->edit_replace(e, r.Out(neg), r.In(neg, 0)), KEEL_OK);
  return KEEL_OK;
}

}  // namespace keel::test
