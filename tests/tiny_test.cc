// tiny_test.cc: Keel in one page. Start here: a graph built in code, a run, an error.
#include <gtest/gtest.h>

#include <string>

#include "abi/keel.h"

namespace {

// y = x * x + 1 on the reference device, for x of any length.
TEST(Tiny, GraphByHand) {
  keel_context* context = nullptr;
  ASSERT_EQ(keel_context_new(nullptr, 0, &context, nullptr), KEEL_OK);
  ASSERT_EQ(keel_plugin_load(context, KEEL_TEST_PLUGINS "/keel-reference.so", nullptr), KEEL_OK);

  keel_module* module = nullptr;
  keel_graph* graph = nullptr;
  keel_dim n;
  keel_value x, one, square, y;
  ASSERT_EQ(keel_module_new(context, &module, nullptr), KEEL_OK);
  ASSERT_EQ(keel_module_dim(module, "n", &n, nullptr), KEEL_OK);
  ASSERT_EQ(keel_graph_new(module, "main", nullptr, &graph, nullptr), KEEL_OK);
  ASSERT_EQ(keel_graph_param(graph, "x", KEEL_F32, &n, 1, &x, nullptr), KEEL_OK);

  keel_array* one_array = nullptr;
  ASSERT_EQ(keel_array_new(context, KEEL_F32, nullptr, 0, &one_array, nullptr), KEEL_OK);
  keel_tensor view;
  keel_array_tensor(one_array, &view);
  *static_cast<float*>(view.data) = 1;
  ASSERT_EQ(keel_graph_constant(graph, "one", one_array, &one, nullptr), KEEL_OK);
  keel_array_free(one_array);

  keel_value squared[] = {x, x};
  ASSERT_EQ(keel_graph_node(graph, "square", "mul", 0, nullptr, nullptr, 0, squared, 2, &square, 1, nullptr),
            KEEL_OK);
  keel_value sum[] = {square, one};
  ASSERT_EQ(keel_graph_node(graph, "y", "add", 0, nullptr, nullptr, 0, sum, 2, &y, 1, nullptr), KEEL_OK);
  ASSERT_EQ(keel_graph_result(graph, "y", y, nullptr), KEEL_OK);
  ASSERT_EQ(keel_module_entry(module, "main", graph, nullptr), KEEL_OK);

  keel_session* session = nullptr;
  ASSERT_EQ(keel_session_new(module, "reference", nullptr, 0, &session, nullptr), KEEL_OK);
  float values[] = {1, 2, 3};
  int64_t shape[] = {3};
  keel_tensor tensor = {values, {1, 0}, 1, {2, 32, 1}, shape, nullptr, 0};
  keel_array *in = nullptr, *out = nullptr;
  ASSERT_EQ(keel_array_from_tensor(context, &tensor, nullptr, nullptr, &in, nullptr), KEEL_OK);
  ASSERT_EQ(keel_session_run(session, nullptr, &in, 1, nullptr, &out, 1, nullptr, 0, nullptr), KEEL_OK);
  keel_array_tensor(out, &view);
  const float* result = static_cast<const float*>(view.data);
  EXPECT_EQ(result[0], 2);
  EXPECT_EQ(result[1], 5);
  EXPECT_EQ(result[2], 10);

  keel_error* error = nullptr;
  keel_session* nowhere = nullptr;
  EXPECT_EQ(keel_session_new(module, "gpu", nullptr, 0, &nowhere, &error), KEEL_NOT_FOUND);
  EXPECT_EQ(std::string(keel_error_text(error, KEEL_ERROR_MESSAGE)),
            "no device \"gpu\"; available devices: reference:0");

  keel_error_free(error);
  keel_array_free(in);
  keel_array_free(out);
  keel_session_free(session);
  keel_module_free(module);
  keel_context_free(context);
}

}  // namespace
