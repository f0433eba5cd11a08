// selection_ops_test.cc: nonzero and unique, as C programs see them: eagerly, in a trace whose sizes are
// symbols, and in the file and the text that it is saved as.
#include "values.h"

namespace {

using namespace misuse;

class SelectionOps : public Values {
 protected:
  keel_op* Op(const char* name) {
    keel_op* made = nullptr;
    Ok(keel_op_new(context_, "reference", name, 0, nullptr, nullptr, 0, &made, &error_));
    return made;
  }
  std::vector<keel_array*> Apply(keel_trace* trace, const char* name, keel_array* x, uint32_t n) {
    keel_op* op = Op(name);
    std::vector<keel_array*> out(n);
    Ok(keel_trace_apply(trace, nullptr, op, &x, 1, out.data(), n, &error_));
    keel_op_free(op);
    return out;
  }
  keel_module* Traced();
  void CheckRuns(keel_module* module);
};

// 1 at every `step`-th place; 0: nowhere.
std::vector<float> Every(int64_t step, const Numbers& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  std::vector<float> all(static_cast<size_t>(n));
  for (int64_t i = 0; step && i < n; i += step) all[static_cast<size_t>(i)] = 1;
  return all;
}

// The indices of these places: a row for each dim.
Numbers Rows(const std::vector<float>& x, const Numbers& shape) {
  Numbers rows;
  for (size_t axis = 0; axis < shape.size(); axis++)
    for (size_t i = 0; i < x.size(); i++) {
      auto rest = static_cast<int64_t>(i);
      for (size_t after = shape.size() - 1; after > axis; after--) rest /= shape[after];
      if (x[i] != 0) rows.push_back(rest % shape[axis]);
    }
  return rows;
}

TEST_F(SelectionOps, NonzeroOfRanksAndSizes) {
  const std::vector<Numbers> shapes = {{1}, {0}, {7}, {3, 4}, {0, 2}, {2, 3, 4}, {1, 1, 1}, {2, 1, 3, 2}};
  for (const Numbers& shape : shapes)
    for (int64_t step : {0, 1, 3}) {
      const std::vector<float> x = Every(step, shape);
      keel_array* in = Array(shape, x);
      keel_array* i = Apply(nullptr, "nonzero", in, 1)[0];
      const Numbers rows = Rows(x, shape);
      EXPECT_EQ(Shape(i), (Numbers{static_cast<int64_t>(shape.size()),
                                   static_cast<int64_t>(rows.size() / shape.size())}));
      EXPECT_EQ(Elements<int64_t>(i), rows);
      keel_array_free(i), keel_array_free(in);
    }
}

TEST_F(SelectionOps, UniqueHasFourResults) {
  keel_array* in = Array({6}, {3, 1, 3, 2, 1, 3});
  const std::vector<keel_array*> out = Apply(nullptr, "unique", in, 4);
  EXPECT_EQ(Elements<float>(out[0]), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(Elements<int64_t>(out[1]), (Numbers{1, 3, 0}));
  EXPECT_EQ(Elements<int64_t>(out[2]), (Numbers{2, 0, 2, 1, 0, 2}));
  EXPECT_EQ(Elements<int64_t>(out[3]), (Numbers{2, 1, 3}));
  for (keel_array* a : out) keel_array_free(a);
  keel_array_free(in);
}

// i = nonzero(x), doubled = i + i, the different numbers of x's first column.
keel_module* SelectionOps::Traced() {
  keel_trace* trace = nullptr;
  keel_module* made = nullptr;
  std::array<keel_dim, 2> dims{};
  keel_array *x = nullptr, *column = nullptr;
  Ok(keel_trace_new(context_, "main", "reference", &trace, &error_));
  Ok(keel_trace_dim(trace, "n", 0, dims.data(), &error_));
  dims[1] = 2;
  Ok(keel_trace_param(trace, "x", KEEL_F32, dims.data(), 2, &x, &error_));
  Ok(keel_trace_param(trace, "column", KEEL_F32, dims.data(), 1, &column, &error_));
  keel_array* i = Apply(trace, "nonzero", x, 1)[0];
  std::array<keel_array*, 2> twice = {i, i};
  keel_array* doubled = nullptr;
  keel_op* add = Op("add");
  Ok(keel_trace_apply(trace, nullptr, add, twice.data(), 2, &doubled, 1, &error_));
  keel_op_free(add);
  const std::vector<keel_array*> different = Apply(trace, "unique", column, 4);
  for (keel_array* result : {i, doubled, different[0], different[3]})
    Ok(keel_trace_result(trace, nullptr, result, &error_));
  Ok(keel_trace_end(trace, &made, &error_));
  for (keel_array* a : different) keel_array_free(a);
  for (keel_array* a : {doubled, i, column, x}) keel_array_free(a);
  keel_trace_free(trace);
  return made;
}

void SelectionOps::CheckRuns(keel_module* module) {
  keel_session* session = nullptr;
  keel_plan* plan = nullptr;
  Ok(keel_session_new(module, "reference", nullptr, 0, &session, &error_));
  Ok(keel_plan_new(session, nullptr, 0, nullptr, 0, nullptr, 0, &plan, &error_));
  for (int64_t n : {0, 1, 5})
    for (int64_t step : {0, 1, 3}) {
      const std::vector<float> x = Every(step, {n, 2}), ones = Every(1, {n});
      std::array<keel_array*, 2> in = {Array({n, 2}, x), Array({n}, ones)};
      std::array<keel_array*, 4> out{};
      Ok(keel_plan_run(plan, in.data(), 2, out.data(), 4, &error_));
      Numbers rows = Rows(x, {n, 2});
      EXPECT_EQ(Elements<int64_t>(out[0]), rows);
      for (int64_t& each : rows) each *= 2;
      EXPECT_EQ(Elements<int64_t>(out[1]), rows);
      EXPECT_EQ(Elements<float>(out[2]), std::vector<float>(n ? 1 : 0, 1));
      EXPECT_EQ(Elements<int64_t>(out[3]), Numbers(n ? 1 : 0, n));
      for (keel_array* a : out) keel_array_free(a);
      for (keel_array* a : in) keel_array_free(a);
    }
  keel_plan_free(plan);
  keel_session_free(session);
}

TEST_F(SelectionOps, ATraceItsFileAndItsTextServeAllSizes) {
  keel_module *traced = Traced(), *loaded = nullptr;
  CheckRuns(traced);
  Ok(keel_module_save(traced, file_.c_str(), &error_));
  Ok(keel_module_load(context_, file_.c_str(), &loaded, &error_));
  CheckRuns(loaded);
  keel_module* parsed = ReadAgain(loaded, "= nonzero(x)");
  CheckRuns(parsed);
  for (keel_module* m : {traced, loaded, parsed}) keel_module_free(m);
}

TEST_F(SelectionOps, ScalarsAreRefused) {
  keel_array *in = Array({}, {1}), *out = nullptr;
  keel_op* op = Op("nonzero");
  ExpectInvalid(keel_apply(op, &in, 1, &out, 1, &error_), "x has no dims; reshape");
  keel_op_free(op);
  keel_array_free(in);
}

}  // namespace
