// new_sizes_test.cc: results whose sizes only a run knows (trim), as C programs see them: the ports of a
// plan, the shapes of results, counts out of range, and bodies that find sizes.
#include <numeric>

#include "values.h"

namespace {

using namespace misuse;

constexpr const char* kFirst =
    "keel 1\n\nfn @main(x: f32[n, 2], count: i64[]) {\n  y = trim(x, count)\n  s = reduce_sum(y){axes=[0]}\n"
    "  return y, s\n}\n\nentry main = @main (x, count) -> (y, s)\n";

class NewSizes : public Values {
 protected:
  keel_module* Parsed(const std::string& text) {
    keel_module* made = nullptr;
    Ok(keel_module_parse(context_, text.data(), text.size(), &made, &error_));
    return made;
  }
  // Runs the plan on the numbers 0, 1 ... of [n, 2].
  keel_rc Run(keel_plan* plan, int64_t n, int64_t count, std::array<keel_array*, 2>* out) {
    std::vector<float> x(static_cast<size_t>(n) * 2);
    std::iota(x.begin(), x.end(), 0.F);
    std::array<keel_array*, 2> in = {Array({n, 2}, x), Array(KEEL_I64, {}, &count, sizeof count)};
    keel_rc rc = keel_plan_run(plan, in.data(), 2, out->data(), 2, &error_);
    for (keel_array* a : in) keel_array_free(a);
    return rc;
  }
};

TEST_F(NewSizes, OnePlanServesAllCounts) {
  keel_module* module = Parsed(kFirst);
  keel_session* session = nullptr;
  keel_plan* plan = nullptr;
  Ok(keel_session_new(module, "reference", nullptr, 0, &session, &error_));
  Ok(keel_plan_new(session, nullptr, 0, nullptr, 0, nullptr, 0, &plan, &error_));
  int64_t shape[KEEL_MAX_RANK] = {};
  Ok(keel_plan_port(plan, 1, 0, nullptr, nullptr, shape, nullptr, &error_));
  EXPECT_EQ(shape[0], -1);
  EXPECT_EQ(shape[1], 2);
  for (int64_t n : {0, 1, 3, 9})
    for (int64_t count : {int64_t{0}, n / 2, n}) {
      std::array<keel_array*, 2> out{};
      Ok(Run(plan, n, count, &out));
      keel_tensor y{}, s{};
      keel_array_tensor(out[0], &y), keel_array_tensor(out[1], &s);
      ASSERT_EQ(y.shape[0], count);
      for (int64_t i = 0; i < count * 2; i++)
        EXPECT_EQ(static_cast<const float*>(y.data)[i], static_cast<float>(i));
      EXPECT_EQ(static_cast<const float*>(s.data)[1], static_cast<float>(count * count));  // 1 + 3 + 5 ...
      for (keel_array* a : out) keel_array_free(a);
    }
  for (int64_t count : {-1, 4}) {
    std::array<keel_array*, 2> out{};
    ExpectError(Run(plan, 3, count, &out), KEEL_RANGE,
                "count " + std::to_string(count) + " is not in [0, 3]");
    EXPECT_EQ(out[0], nullptr);
  }
  keel_plan_free(plan);
  keel_session_free(session);
  keel_module_free(module);
}

constexpr const char* kBodies =
    "keel 1\n\nfn @cut(x: f32[n]) { return reduce_sum(trim(x, 1)) }\n"
    "fn @first(x: f32[n], c: i32[]) { return reduce_sum(trim(x, c)) }\n"
    "fn @kept(x: f32[n], c: i32[]) { return trim(x, c) }\n"
    "fn @sum(x: f32[n]) { return reduce_sum(x) }\n"
    "fn @step(s: f32[], x: f32[]) { return s + reduce_sum(trim(reshape(x){to=[1]}, 1)) }\n"
    "fn @more(x: f32[n]) { return reduce_sum(trim(x, 1)) < 3 }\n"
    "fn @grow(x: f32[n]) { return x + 1 }\n\n";
std::string WithBodies(const std::string& node) {
  return kBodies + ("fn @main(x: f32[n]) {\n  y = " + node + "\n  return y\n}\n\nentry main = @main\n");
}

TEST_F(NewSizes, BodiesFindThem) {
  const std::pair<const char*, std::vector<float>> cases[] = {
      {"cond(reduce_sum(x) > 0, x){then=@cut, else=@sum}", {1}},
      {"switch(1, x){branches=[@sum, @cut]}", {1}},
      {"scan(0.0, x){body=@step, carry=1}", {6}},
      {"while(x){test=@more, body=@grow, carry=1}", {3, 7}},
      {"call(x, 1){body=@first}", {1}}};
  for (const auto& [node, wanted] : cases) {
    keel_module* module = Parsed(WithBodies(node));
    keel_session* session = nullptr;
    keel_plan* plan = nullptr;
    Ok(keel_session_new(module, "reference", nullptr, 0, &session, &error_));
    Ok(keel_plan_new(session, nullptr, 0, nullptr, 0, nullptr, 0, &plan, &error_));
    const float x[] = {1, 5};
    keel_array *in = Array(KEEL_F32, {2}, x, sizeof x), *out = nullptr;
    Ok(keel_plan_run(plan, &in, 1, &out, 1, &error_));
    keel_tensor y{};
    keel_array_tensor(out, &y);
    const auto* p = static_cast<const float*>(y.data);
    EXPECT_EQ(std::vector<float>(p, p + wanted.size()), wanted) << node;
    keel_array_free(out), keel_array_free(in);
    keel_plan_free(plan);
    keel_session_free(session);
    keel_module_free(module);
  }
}

TEST_F(NewSizes, ResultsKeepTheirElementsWhenInputsAreWritten) {
  const char* nodes[] = {"trim(x, 2)", "while(x){test=@more, body=@grow, carry=1}",
                         "cond(reduce_sum(x) < 0, x){then=@cut, else=@sum}"};
  for (const char* node : nodes) {
    keel_module* module = Parsed(WithBodies(node));
    keel_session* session = nullptr;
    keel_plan* plan = nullptr;
    Ok(keel_session_new(module, "reference", nullptr, 0, &session, &error_));
    Ok(keel_plan_new(session, nullptr, 0, nullptr, 0, nullptr, 0, &plan, &error_));
    const float x[] = {3, 5};  // the loop ends before its first iteration
    keel_array *in = Array(KEEL_F32, {2}, x, sizeof x), *out = nullptr;
    Ok(keel_plan_run(plan, &in, 1, &out, 1, &error_));
    keel_tensor from{}, y{};
    keel_array_tensor(in, &from), keel_array_tensor(out, &y);
    const float before = *static_cast<const float*>(y.data);
    std::memset(from.data, 0, sizeof x);
    EXPECT_EQ(*static_cast<const float*>(y.data), before) << node;
    keel_array_free(out), keel_array_free(in);
    keel_plan_free(plan);
    keel_session_free(session);
    keel_module_free(module);
  }
}

TEST_F(NewSizes, ResultsOfBodiesHaveKnownSizes) {
  const std::string text = WithBodies("call(x, 1){body=@kept}");
  keel_module* made = nullptr;
  ExpectError(keel_module_parse(context_, text.data(), text.size(), &made, &error_), KEEL_UNIMPLEMENTED,
              "whose size only a run of the body knows");
  EXPECT_EQ(made, nullptr);
}

TEST_F(NewSizes, GradientsOfAGraph) {
  keel_module* module = Parsed(kFirst);
  keel_graph* graph = nullptr;
  Ok(keel_module_graph(module, nullptr, &graph, &error_));
  keel_value x = 0, s = 0, dx = KEEL_NO_VALUE;
  Ok(keel_graph_find(graph, "x", &x, nullptr, &error_));
  Ok(keel_graph_find(graph, "s", &s, nullptr, &error_));
  Ok(keel_graph_gradient(graph, &s, 1, nullptr, &x, 1, 0, &dx, &error_));
  Ok(keel_graph_result(graph, "dx", dx, &error_));
  keel_session* session = nullptr;
  keel_plan* plan = nullptr;
  const char* fetches[] = {"y", "dx"};
  Ok(keel_session_new(module, "reference", nullptr, 0, &session, &error_));
  Ok(keel_plan_new(session, nullptr, 0, fetches, 2, nullptr, 0, &plan, &error_));
  std::array<keel_array*, 2> out{};
  Ok(Run(plan, 3, 2, &out));
  keel_tensor d{};
  keel_array_tensor(out[1], &d);
  const auto* p = static_cast<const float*>(d.data);
  EXPECT_EQ(std::vector<float>(p, p + 6), (std::vector<float>{1, 1, 1, 1, 0, 0}));
  for (keel_array* a : out) keel_array_free(a);
  keel_plan_free(plan);
  keel_session_free(session);
  keel_module_free(module);
}

}  // namespace
