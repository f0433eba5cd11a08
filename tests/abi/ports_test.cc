// ports_test.cc: what a binding can learn about a plan or a function before it runs anything: counts, names
// and types of ports, the number of results.
#include <cstring>

#include "misuse.h"

namespace {

using namespace misuse;

struct Port {
  std::string name;
  keel_dt dtype;
  std::vector<int64_t> shape;
  bool operator==(const Port&) const = default;
};
void PrintTo(const Port& p, std::ostream* out) {
  *out << p.name << ": " << p.dtype << " of rank " << p.shape.size();
}

class Ports : public Misuse {
 protected:
  static constexpr char kTwo[] =
      "keel 1\n"
      "fn @main(x: f32[n, 3], i: i64[]) -> f32[n, 3], sum: f32[] {\n  y = neg(x)\n  s = reduce_sum(y)\n"
      "  return y, s\n}\n"
      "entry main = @main (x, i) -> (out, sum)\n";

  void SetUp() override {
    Misuse::SetUp();
    Ok(keel_module_parse(context_, kTwo, sizeof kTwo - 1, &two_, &error_));
    Ok(keel_session_new(two_, "reference", nullptr, 0, &runs_, &error_));
  }
  void TearDown() override {
    keel_session_free(runs_);
    keel_module_free(two_);
    Misuse::TearDown();
  }
  Port At(const keel_plan* plan, int32_t output, uint32_t i) {
    Port port;
    keel_text* name = nullptr;
    int64_t shape[KEEL_MAX_RANK];
    int32_t ndim = -1;
    Ok(keel_plan_port(plan, output, i, &name, &port.dtype, shape, &ndim, &error_));
    port.name = keel_text_data(name, nullptr);
    port.shape.assign(shape, shape + ndim);
    keel_text_free(name);
    return port;
  }

  keel_module* two_ = nullptr;
  keel_session* runs_ = nullptr;
};

TEST_F(Ports, OfAWholeEntry) {
  keel_plan* plan = nullptr;
  Ok(keel_plan_new(runs_, nullptr, 0, nullptr, 0, nullptr, 0, &plan, &error_));
  uint32_t in = 7, out = 7;
  keel_plan_counts(plan, &in, &out);
  EXPECT_EQ(in, 2u);
  EXPECT_EQ(out, 2u);
  EXPECT_EQ(At(plan, 0, 0), (Port{"x", KEEL_F32, {-1, 3}}));
  EXPECT_EQ(At(plan, 0, 1), (Port{"i", KEEL_I64, {}}));
  EXPECT_EQ(At(plan, 1, 0).shape, (std::vector<int64_t>{-1, 3}));
  EXPECT_EQ(At(plan, 1, 1).dtype, keel_dt{KEEL_F32});
  keel_plan_free(plan);
}

TEST_F(Ports, OfFeedsAndFetches) {
  const char *feed = "y", *fetches[] = {"s", "y"};
  keel_plan* plan = nullptr;
  Ok(keel_plan_new(runs_, &feed, 1, fetches, 2, nullptr, 0, &plan, &error_));
  uint32_t in = 7, out = 7;
  keel_plan_counts(plan, &in, nullptr);
  keel_plan_counts(plan, nullptr, &out);
  EXPECT_EQ(in, 1u);
  EXPECT_EQ(out, 2u);
  EXPECT_EQ(At(plan, 0, 0), (Port{"y", KEEL_F32, {-1, 3}}));
  EXPECT_EQ(At(plan, 1, 0), (Port{"s", KEEL_F32, {}}));
  EXPECT_EQ(At(plan, 1, 1), (Port{"y", KEEL_F32, {-1, 3}}));
  keel_plan_free(plan);
}

TEST_F(Ports, ThatDoNotExist) {
  keel_dt dtype = 7;
  ExpectError(keel_plan_port(plan_, 0, 1, nullptr, &dtype, nullptr, nullptr, &error_), KEEL_NOT_FOUND,
              "keel_plan_port: 'i' is 1, but the plan has 1 inputs");
  ExpectError(keel_plan_port(plan_, 1, UINT32_MAX, nullptr, &dtype, nullptr, nullptr, &error_),
              KEEL_NOT_FOUND, "keel_plan_port: 'i' is 4294967295, but the plan has 1 outputs");
  EXPECT_EQ(dtype, 7u);
  Ok(keel_plan_port(plan_, 1, 0, nullptr, nullptr, nullptr, nullptr, &error_));
  uint32_t in = 7, out = 7;
  keel_plan_counts(nullptr, &in, &out);
  EXPECT_EQ(in + out, 0u);
  keel_plan_counts(plan_, nullptr, nullptr);
}

struct Program {
  keel_context* context;
  keel_variable* counter;
  int runs = 0;
};
// Three results, and a write.
keel_rc Three(void* arg, keel_trace* t, const keel_leaf* leaves, uint32_t, keel_error** err) {
  auto* program = static_cast<Program*>(arg);
  program->runs++;
  keel_rc rc = keel_variable_write(program->counter, t, "assign_add", leaves[0].array, err);
  for (int i = 0; i < 3 && rc == KEEL_OK; i++) rc = keel_trace_result(t, nullptr, leaves[0].array, err);
  return rc;
}

TEST_F(Ports, AFunctionStatesItsResultsBeforeAnEffect) {
  static_cast<float*>(tensor_.data)[0] = 1;
  Program program{context_, variable_};
  keel_function* f = nullptr;
  keel_module* m = nullptr;
  uint32_t n = 77;
  Ok(keel_function_new(context_, "three", "reference", nullptr, 0, Three, &program, nullptr, &f, &error_));
  Ok(keel_function_module(f, "", leaves_.data(), 1, &m, &n, &error_));
  keel_module_free(m);
  EXPECT_EQ(n, 3u);
  keel_array *now = nullptr, *out[3] = {};
  keel_tensor t;
  Ok(keel_variable_read(variable_, nullptr, nullptr, &now, &error_));
  keel_array_tensor(now, &t);
  EXPECT_EQ(static_cast<float*>(t.data)[0], 0) << "the module of a function ran it";
  keel_array_free(now);
  Ok(keel_function_call(f, nullptr, nullptr, "", leaves_.data(), 1, out, n, &n, &error_));
  EXPECT_EQ(n, 3u);
  for (keel_array* a : out) keel_array_free(a);
  Ok(keel_function_module(function_, nullptr, nullptr, 0, &m, &n, &error_));
  EXPECT_EQ(n, 0u);
  keel_module_free(m);
  Ok(keel_function_module(f, "", leaves_.data(), 1, &m, nullptr, &error_));
  keel_module_free(m);
  n = 77;
  keel_leaf wrong = {99, 0, nullptr, nullptr, 0, 0, nullptr};
  ExpectInvalid(keel_function_module(f, "", &wrong, 1, &m, &n, &error_), "kind 99");
  EXPECT_EQ(n, 77u);
  keel_function_free(f);
}

}  // namespace
