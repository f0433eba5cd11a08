// einsum_op_test.cc: the op einsum as C programs see it: eagerly, in a trace with symbolic sizes, and in the
// text that the trace is saved as. The oracle is a loop over all labels.
#include <algorithm>

#include "values.h"

namespace {

using namespace misuse;

struct Labels {
  Numbers x, y, to;
};

// Labels are 0, 1, 2; sizes[label] is the size of its dims.
const std::vector<Labels> kForms = {
    {{0, 1}, {1, 2}, {0, 2}}, {{1, 0}, {2, 1}, {2, 0}}, {{0, 1, 2}, {0, 2}, {0, 1}}, {{0}, {1}, {1, 0}},
    {{0, 1}, {0, 1}, {}},     {{0, 1}, {2}, {2}},       {{}, {2, 0}, {0, 2}}};
const std::vector<Numbers> kSizes = {{1, 1, 1}, {2, 3, 4}, {5, 1, 2}, {0, 2, 3}, {2, 0, 3}};

Numbers Dims(const Numbers& labels, const Numbers& sizes) {
  Numbers dims;
  for (int64_t label : labels) dims.push_back(sizes[static_cast<size_t>(label)]);
  return dims;
}
int64_t Count(const Numbers& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}
size_t Offset(const Numbers& labels, const Numbers& sizes, const Numbers& at) {
  int64_t offset = 0;
  for (int64_t label : labels)
    offset = offset * sizes[static_cast<size_t>(label)] + at[static_cast<size_t>(label)];
  return static_cast<size_t>(offset);
}
bool Has(const Labels& l, int64_t label) {
  const auto in = [&](const Numbers& list) {
    return std::find(list.begin(), list.end(), label) != list.end();
  };
  return in(l.x) || in(l.y);
}

std::vector<float> Counting(int64_t n) {
  std::vector<float> all;
  for (int64_t i = 0; i < n; i++) all.push_back(static_cast<float>(i % 7 - 3));
  return all;
}

std::vector<float> Sums(const Labels& l, Numbers sizes) {
  for (int64_t label = 0; label < 3; label++)
    if (!Has(l, label)) sizes[static_cast<size_t>(label)] = 1;
  const std::vector<float> a = Counting(Count(Dims(l.x, sizes))), b = Counting(Count(Dims(l.y, sizes)));
  std::vector<float> sums(static_cast<size_t>(Count(Dims(l.to, sizes))));
  for (int64_t i = 0; i < sizes[0]; i++)
    for (int64_t j = 0; j < sizes[1]; j++)
      for (int64_t k = 0; k < sizes[2]; k++) {
        const Numbers at = {i, j, k};
        sums[Offset(l.to, sizes, at)] += a[Offset(l.x, sizes, at)] * b[Offset(l.y, sizes, at)];
      }
  return sums;
}

class EinsumOp : public Values {
 protected:
  keel_op* Op(const Labels& l) {
    const auto list = [](const Numbers& v) {
      return keel_attr{KEEL_ATTR_I64S, static_cast<uint32_t>(v.size()), 0, 0, v.data()};
    };
    const std::array<const char*, 3> names = {"x", "y", "to"};
    const std::array<keel_attr, 3> values = {list(l.x), list(l.y), list(l.to)};
    keel_op* made = nullptr;
    Ok(keel_op_new(context_, "reference", "einsum", 0, names.data(), values.data(), 3, &made, &error_));
    return made;
  }
  keel_array* Array(const Numbers& dims) { return Values::Array(dims, Counting(Count(dims))); }
  static void Expect(const keel_array* got, const Labels& l, const Numbers& sizes) {
    EXPECT_EQ(Shape(got), Dims(l.to, sizes));
    EXPECT_EQ(Elements<float>(got), Sums(l, sizes));
  }
  keel_module* Traced(const Labels& l);
};

TEST_F(EinsumOp, EagerlyInAllForms) {
  for (const Labels& l : kForms)
    for (const Numbers& sizes : kSizes) {
      keel_op* op = Op(l);
      std::array<keel_array*, 2> in = {Array(Dims(l.x, sizes)), Array(Dims(l.y, sizes))};
      keel_array* out = nullptr;
      Ok(keel_apply(op, in.data(), 2, &out, 1, &error_));
      Expect(out, l, sizes);
      for (keel_array* a : {in[0], in[1], out}) keel_array_free(a);
      keel_op_free(op);
    }
}

keel_module* EinsumOp::Traced(const Labels& l) {
  keel_trace* trace = nullptr;
  keel_module* made = nullptr;
  Ok(keel_trace_new(context_, "main", "reference", &trace, &error_));
  std::array<keel_dim, 3> symbols{};
  const std::array<const char*, 3> names = {"i", "j", "k"};
  for (size_t s = 0; s < 3; s++) Ok(keel_trace_dim(trace, names[s], 0, &symbols[s], &error_));
  const auto param = [&](const char* name, const Numbers& labels) {
    std::vector<keel_dim> dims;
    for (int64_t label : labels) dims.push_back(symbols[static_cast<size_t>(label)]);
    keel_array* x = nullptr;
    Ok(keel_trace_param(trace, name, KEEL_F32, dims.data(), static_cast<int32_t>(dims.size()), &x, &error_));
    return x;
  };
  std::array<keel_array*, 2> in = {param("a", l.x), param("b", l.y)};
  keel_array* out = nullptr;
  keel_op* op = Op(l);
  Ok(keel_trace_apply(trace, nullptr, op, in.data(), 2, &out, 1, &error_));
  Ok(keel_trace_result(trace, "c", out, &error_));
  Ok(keel_trace_end(trace, &made, &error_));
  for (keel_array* a : {in[0], in[1], out}) keel_array_free(a);
  keel_op_free(op);
  keel_trace_free(trace);
  return made;
}

TEST_F(EinsumOp, TheTextOfATraceServesAllSizes) {
  for (const Labels& l : kForms) {
    keel_module *traced = Traced(l), *parsed = ReadAgain(traced, "einsum(a, b)");
    keel_session* session = nullptr;
    Ok(keel_session_new(parsed, "reference", nullptr, 0, &session, &error_));
    for (const Numbers& sizes : kSizes) {
      std::array<keel_array*, 2> in = {Array(Dims(l.x, sizes)), Array(Dims(l.y, sizes))};
      keel_array* out = nullptr;
      Ok(keel_session_run(session, nullptr, in.data(), 2, nullptr, &out, 1, nullptr, 0, &error_));
      Expect(out, l, sizes);
      for (keel_array* a : {in[0], in[1], out}) keel_array_free(a);
    }
    keel_session_free(session);
    for (keel_module* m : {traced, parsed}) keel_module_free(m);
  }
}

TEST_F(EinsumOp, LabelsThatDoNotFit) {
  const auto refused = [&](const Labels& l, const Numbers& a, const Numbers& b, const char* message) {
    keel_op* op = Op(l);
    std::array<keel_array*, 2> in = {Array(a), Array(b)};
    keel_array* out = nullptr;
    ExpectInvalid(keel_apply(op, in.data(), 2, &out, 1, &error_), message);
    for (keel_array* each : in) keel_array_free(each);
    keel_op_free(op);
  };
  refused({{0, 1}, {1, 2}, {0, 2}}, {2, 3}, {4, 5}, "differ in the size of a label");
  refused({{0, 0}, {1}, {0}}, {2, 2}, {3}, "a label repeats in x [0, 0]");
  refused({{0, 1}, {1, 2}, {0, 0}}, {2, 3}, {3, 4}, "a label repeats");
  refused({{0, 1}, {1, 2}, {3}}, {2, 3}, {3, 4}, "to [3] has a label that neither x [0, 1] nor y [1, 2] has");
  refused({{0}, {1, 2}, {0}}, {2, 3}, {3, 4}, "attribute x has 1 entries but P has 2 dims");
}

}  // namespace
