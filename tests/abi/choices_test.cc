// choices_test.cc: parameters of which exactly one is given, texts with fixed choices, and the flags of
// gradients. Good input is compared with literals.
#include "misuse.h"

namespace {

using namespace misuse;

class Choices : public Misuse {
 protected:
  std::string Text(keel_rc rc, keel_text** text) {
    Ok(rc);
    uint64_t size = 77;
    const char* data = keel_text_data(*text, &size);
    std::string out(data, size);
    EXPECT_STREQ(keel_text_data(*text, nullptr), data);
    keel_text_free(*text);
    *text = nullptr;
    return out;
  }
  std::string Report(const char* what) {
    keel_text* text = nullptr;
    return Text(keel_module_report(module_, what, &text, &error_), &text);
  }
  std::vector<float> Floats(const keel_array* array) {
    keel_tensor t;
    keel_array_tensor(array, &t);
    int64_t n = 1;
    for (int32_t d = 0; d < t.ndim; d++) n *= t.shape[d];
    const auto* data = reinterpret_cast<const float*>(static_cast<char*>(t.data) + t.byte_offset);
    return {data, data + n};
  }
  void Fill(const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), static_cast<float*>(tensor_.data));
  }
};

TEST_F(Choices, ReportsOfAModule) {
  const std::string canonical =
      "keel 1\n\nfn @main(x: f32[3]) -> y: f32[3] {\n  y = neg(x) : f32[3]\n  return y\n}\n\n"
      "entry main = @main (x) -> (y)\n";
  EXPECT_EQ(Report("text"), canonical);
  EXPECT_EQ(Report("outline"), canonical);
  EXPECT_EQ(Report("info").rfind("{\"entries\":[{\"name\":\"main\"", 0), 0u);
  EXPECT_NE(Report("signatures").find("main"), std::string::npos);
  keel_text* text = nullptr;
  for (const char* what : {"", "Text", "report", "text "})
    ExpectInvalid(keel_module_report(module_, what, &text, &error_),
                  "keel_module_report: 'what' is \"" + std::string(what) +
                      "\"; expected one of text, outline, info, signatures");
  EXPECT_EQ(text, nullptr);
}

TEST_F(Choices, ReportsOfAFunction) {
  keel_text* text = nullptr;
  EXPECT_EQ(
      Text(keel_function_report(function_, "report", &text, &error_), &text).rfind("{\"name\":\"f\"", 0), 0u);
  EXPECT_EQ(Text(keel_function_report(function_, "signatures", &text, &error_), &text), "");
  ExpectInvalid(keel_function_report(function_, "text", &text, &error_),
                "keel_function_report: 'what' is \"text\"; expected one of report, signatures");
}

TEST_F(Choices, PartsOfAnError) {
  keel_error* error = nullptr;
  EXPECT_EQ(keel_error_new(KEEL_RANGE, "too far", &error), KEEL_RANGE);
  EXPECT_EQ(keel_error_code(error), KEEL_RANGE);
  EXPECT_STREQ(keel_error_text(error, KEEL_ERROR_MESSAGE), "too far");
  for (int32_t part : {-1, 1, 2, 3, 4, 5, INT32_MAX}) EXPECT_STREQ(keel_error_text(error, part), "") << part;
  for (int32_t part = -1; part < 6; part++) EXPECT_STREQ(keel_error_text(nullptr, part), "");
  keel_error_free(error);
  error = nullptr;
  EXPECT_EQ(keel_error_new(KEEL_INVALID, nullptr, &error), KEEL_INVALID);
  EXPECT_STREQ(keel_error_text(error, KEEL_ERROR_MESSAGE), "");
  keel_error_free(error);
  EXPECT_EQ(keel_error_new(KEEL_INVALID, "nobody reads it", nullptr), KEEL_INVALID);
  for (keel_rc none : {keel_rc{KEEL_OK}, -1, 4, 4711, INT32_MAX}) {  // a callback must not succeed by mistake
    error = nullptr;
    EXPECT_EQ(keel_error_new(none, "which code?", &error), KEEL_UNKNOWN) << none;
    EXPECT_EQ(keel_error_code(error), KEEL_UNKNOWN) << none;
    EXPECT_STREQ(keel_error_text(error, KEEL_ERROR_MESSAGE), "which code?");
    keel_error_free(error);
  }
  keel_array* out[1] = {};
  EXPECT_EQ(keel_apply(op_, arrays_.data(), 2, out, 1, &error), KEEL_INVALID);
  EXPECT_STREQ(keel_error_text(error, KEEL_ERROR_OP), "neg");
  keel_error_free(error);
}

TEST_F(Choices, ATapeWatchesOneThing) {
  ExpectInvalid(keel_tape_watch(tape_, nullptr, nullptr, &error_),
                "keel_tape_watch: 'array' and 'variable' are both NULL; exactly one is needed");
  ExpectInvalid(keel_tape_watch(tape_, array_, variable_, &error_),
                "keel_tape_watch: 'array' and 'variable' are both given; exactly one is needed");
  Ok(keel_tape_watch(tape_, array_, nullptr, &error_));
  Ok(keel_tape_watch(tape_, nullptr, variable_, &error_));
}

TEST_F(Choices, DlpackHasOneForm) {
  DLManagedTensorVersioned* versioned = nullptr;
  DLManagedTensor* legacy = nullptr;
  ExpectInvalid(keel_array_to_dlpack(array_, nullptr, nullptr, &error_),
                "keel_array_to_dlpack: 'versioned' and 'legacy' are both NULL; exactly one is needed");
  ExpectInvalid(keel_array_to_dlpack(array_, &versioned, &legacy, &error_), "are both given");
  EXPECT_EQ(versioned, nullptr);
  EXPECT_EQ(legacy, nullptr);
  Ok(keel_array_to_dlpack(array_, &versioned, nullptr, &error_));
  Ok(keel_array_to_dlpack(array_, nullptr, &legacy, &error_));
  EXPECT_EQ(versioned->tensor.data, tensor_.data);
  EXPECT_EQ(legacy->tensor.data, tensor_.data);
  keel_array* in = nullptr;
  ExpectInvalid(keel_array_from_dlpack(context_, nullptr, nullptr, &in, &error_),
                "keel_array_from_dlpack: 'versioned' and 'legacy' are both NULL; exactly one is needed");
  ExpectInvalid(keel_array_from_dlpack(context_, versioned, legacy, &in, &error_), "are both given");
  EXPECT_EQ(in, nullptr);
  for (bool is_versioned : {true, false}) {
    Ok(keel_array_from_dlpack(context_, is_versioned ? versioned : nullptr, is_versioned ? nullptr : legacy,
                              &in, &error_));
    keel_tensor t;
    keel_array_tensor(in, &t);
    EXPECT_EQ(t.data, tensor_.data);
    keel_array_free(in);
  }
}

TEST_F(Choices, AGraphIsNewOrACopy) {
  keel_graph *copy = nullptr, *empty = nullptr;
  keel_value x = 7;
  uint32_t node = 7;
  ExpectInvalid(keel_graph_new(nullptr, "g", nullptr, &copy, &error_),
                "keel_graph_new: 'module' and 'copy_of' are both NULL; at least one is required");
  ExpectInvalid(keel_graph_new(module_, "g", graph_, &copy, &error_),
                "keel_graph_new: 'copy_of' is a graph of another module");
  EXPECT_EQ(copy, nullptr);
  Ok(keel_graph_new(other_, "copy", graph_, &copy, &error_));
  Ok(keel_graph_new(nullptr, "copy2", copy, &copy, &error_));
  Ok(keel_graph_find(copy, "y", &x, &node, &error_));
  EXPECT_EQ(x, 1u);
  EXPECT_EQ(node, 0u);
  uint32_t results = 7;
  Ok(keel_graph_counts(copy, nullptr, nullptr, nullptr, &results, &error_));
  EXPECT_EQ(results, 0u);
  Ok(keel_graph_new(other_, "empty", nullptr, &empty, &error_));
  ExpectError(keel_graph_find(empty, "y", nullptr, nullptr, &error_), KEEL_NOT_FOUND, "y");
}

TEST_F(Choices, AValueIsFoundAndDescribed) {
  keel_value x = 7;
  uint32_t node = 7;
  Ok(keel_graph_find(graph_, "x", &x, &node, &error_));
  EXPECT_EQ(x, 0u);
  EXPECT_EQ(node, KEEL_NO_VALUE);
  keel_text* name = nullptr;
  keel_dt dtype = 0;
  int64_t shape[KEEL_MAX_RANK] = {};
  int32_t ndim = 7;
  EXPECT_EQ(Text(keel_graph_value_at(graph_, 1, &name, &node, &dtype, shape, &ndim, &error_), &name), "y");
  EXPECT_EQ(node, 0u);
  EXPECT_EQ(dtype, keel_dt{KEEL_F32});
  EXPECT_EQ(ndim, 1);
  EXPECT_EQ(shape[0], 3);
  Ok(keel_graph_value_at(graph_, 1, nullptr, nullptr, nullptr, nullptr, nullptr, &error_));
  ExpectError(keel_graph_value_at(graph_, 2, nullptr, nullptr, &dtype, nullptr, nullptr, &error_),
              KEEL_NOT_FOUND, "value 2 is not one of the 2 values");
}

TEST_F(Choices, VariablesAreWrittenInThreeWays) {
  keel_array* now = nullptr;
  Fill({1, 2, 3});
  const std::pair<const char*, std::vector<float>> writes[] = {
      {"assign", {1, 2, 3}}, {"assign_add", {2, 4, 6}}, {"assign_sub", {1, 2, 3}}};
  for (const auto& [how, want] : writes) {
    Ok(keel_variable_write(variable_, nullptr, how, array_, &error_));
    Ok(keel_variable_read(variable_, nullptr, nullptr, &now, &error_));
    EXPECT_EQ(Floats(now), want) << how;
    keel_array_free(now);
  }
  ExpectInvalid(keel_variable_write(variable_, nullptr, "add", array_, &error_),
                "keel_variable_write: 'how' is \"add\"; expected one of assign, assign_add, assign_sub");
  const char* name = "?";
  int32_t trainable = 7;
  uint64_t id = 0, none = 7;
  keel_variable_info(variable_, &name, &trainable, &id);
  EXPECT_STREQ(name, "");
  EXPECT_EQ(trainable, 1);
  EXPECT_NE(id, 0u);
  keel_variable_info(nullptr, &name, &trainable, &none);
  EXPECT_STREQ(name, "");
  EXPECT_EQ(trainable, 0);
  EXPECT_EQ(none, 0u);
}

TEST_F(Choices, JacobiansOfATape) {
  Fill({1, 2, 3});
  Ok(keel_tape_watch(tape_, array_, nullptr, &error_));
  keel_array *y = nullptr, *dx = nullptr;
  Ok(keel_trace_apply(nullptr, tape_, op_, &array_, 1, &y, 1, &error_));
  keel_array* ys[] = {y, y};
  auto gradient = [&](uint32_t n_ys, keel_array* const* seeds, uint32_t flags) {
    return keel_tape_gradient(tape_, ys, n_ys, seeds, &array_, nullptr, 1, flags, &dx, &error_);
  };
  ExpectInvalid(gradient(2, nullptr, KEEL_GRADIENT_JACOBIAN),
                "keel_tape_gradient: 'n_ys' is 2; KEEL_GRADIENT_JACOBIAN requires one y");
  ExpectInvalid(gradient(0, nullptr, KEEL_GRADIENT_JACOBIAN), "'n_ys' is 0");
  ExpectInvalid(gradient(1, &array_, KEEL_GRADIENT_JACOBIAN),
                "keel_tape_gradient: 'seeds' is not NULL; KEEL_GRADIENT_JACOBIAN takes no seeds");
  ExpectInvalid(gradient(1, nullptr, 4), "keel_tape_gradient: 'flags' is 4");
  EXPECT_EQ(dx, nullptr);
  Ok(gradient(1, nullptr, KEEL_GRADIENT_JACOBIAN));  // calls with wrong arguments have not used the tape
  EXPECT_EQ(Floats(dx), (std::vector<float>{-1, 0, 0, 0, -1, 0, 0, 0, -1}));
  keel_array_free(dx);
  keel_array_free(y);
}

TEST_F(Choices, JacobiansOfAGraph) {
  const keel_value ys[] = {1, 1}, seed = KEEL_NO_VALUE;
  const keel_value xs[] = {0, 1};
  keel_value out[2] = {7, 7};
  auto gradient = [&](uint32_t n_ys, const keel_value* seeds, uint32_t flags) {
    return keel_graph_gradient(graph_, ys, n_ys, seeds, xs, 2, flags, out, &error_);
  };
  ExpectInvalid(gradient(2, nullptr, KEEL_GRADIENT_JACOBIAN),
                "keel_graph_gradient: 'n_ys' is 2; KEEL_GRADIENT_JACOBIAN requires one y");
  ExpectInvalid(gradient(1, &seed, KEEL_GRADIENT_JACOBIAN),
                "keel_graph_gradient: 'seeds' is not NULL; KEEL_GRADIENT_JACOBIAN takes no seeds");
  ExpectInvalid(gradient(1, nullptr, UINT32_MAX), "keel_graph_gradient: 'flags' is 4294967295");
  Ok(gradient(1, nullptr, KEEL_GRADIENT_JACOBIAN));
  for (keel_value v : out) {
    int64_t shape[KEEL_MAX_RANK] = {};
    int32_t ndim = 0;
    Ok(keel_graph_value_at(graph_, v, nullptr, nullptr, nullptr, shape, &ndim, &error_));
    EXPECT_EQ(std::vector<int64_t>(shape, shape + ndim), (std::vector<int64_t>{3, 3}));
  }
}

TEST_F(Choices, AFailedJacobianLeavesTheGraph) {
  const char text[] =
      "keel 1\n"
      "fn @main(x: f32[2]) -> z: f32[2] {\n  z = neg(x)\n  return z\n}\n"
      "entry main = @main (x) -> (z)\n";
  keel_module* m = nullptr;
  keel_graph* g = nullptr;
  Ok(keel_module_parse(context_, text, sizeof text - 1, &m, &error_));
  Ok(keel_module_graph(m, nullptr, &g, &error_));
  uint32_t before[2] = {}, after[2] = {};
  Ok(keel_graph_counts(g, &before[0], &before[1], nullptr, nullptr, &error_));
  keel_value z = 0, xs[2] = {0, 99}, out[2] = {7, 7};
  Ok(keel_graph_find(g, "z", &z, nullptr, &error_));
  EXPECT_NE(keel_graph_gradient(g, &z, 1, nullptr, xs, 2, KEEL_GRADIENT_JACOBIAN, out, &error_), KEEL_OK);
  EXPECT_NE(Said().find("99"), std::string::npos);
  Ok(keel_graph_counts(g, &after[0], &after[1], nullptr, nullptr, &error_));
  EXPECT_EQ(after[0], before[0]);
  EXPECT_EQ(after[1], before[1]);
  EXPECT_EQ(out[0], 7u);
  xs[1] = 0;
  Ok(keel_graph_gradient(g, &z, 1, nullptr, xs, 2, KEEL_GRADIENT_JACOBIAN, out, &error_));
  keel_module_free(m);
}

TEST_F(Choices, ATraceHasInformation) {
  keel_tape* tape = tape_;
  int32_t writes = 7;
  keel_trace_info(trace_, &tape, &writes);
  EXPECT_EQ(tape, nullptr);
  EXPECT_EQ(writes, 1);
  keel_trace_info(nullptr, &tape, &writes);
  EXPECT_EQ(writes, 0);
  keel_trace_info(trace_, nullptr, nullptr);
  keel_dim dim = 0;
  ExpectError(keel_trace_dim(trace_, "n+1", 1, &dim, &error_), KEEL_NOT_FOUND, "n");
  Ok(keel_trace_dim(trace_, "n+1", 0, &dim, &error_));
  EXPECT_TRUE(KEEL_DIM_IS_HANDLE(dim));
  Ok(keel_trace_dim(trace_, "n-n+2", 1, &dim, &error_));
  EXPECT_EQ(dim, 2);
}

}  // namespace
