// decline_test.cc: a host-memory device whose launch of `square` declines some sizes in its run: the body,
// `mul`, computes those, also after the op was learnt for eager calls.
#include <gtest/gtest.h>

#include <vector>

#include "abi/keel.h"
#include "abi/keel_plugin.h"
#include "tests/abi/plugin_table.h"

namespace {

int squares, products;

keel_rc Multiply(const keel_tensor* a, const keel_tensor* b, const keel_call* call, int* count) {
  ++*count;
  for (int64_t i = 0; i < call->count; i++)
    static_cast<float*>(keel_ptr(call->out[0]))[i] =
        static_cast<float*>(keel_ptr(a))[i] * static_cast<float*>(keel_ptr(b))[i];
  return KEEL_OK;
}

keel_rc Square(const keel_call* call) {
  if (call->count > 4) return call->env->host->fail(KEEL_UNIMPLEMENTED, "at most 4 elements");
  return Multiply(call->in[0], call->in[0], call, &squares);
}

keel_rc Mul(const keel_call* call) { return Multiply(call->in[0], call->in[1], call, &products); }

constexpr keel_impl kImpls[] = {
    {"square", 1, 1, "T=f32", "square", 0, KEEL_IMPL_ANY_DIMS, nullptr, nullptr, Square},
    {"mul", 1, 1, "T=f32", "mul", 0, KEEL_IMPL_ANY_DIMS, nullptr, nullptr, Mul}};
constexpr keel_device kDevice = KEEL_HOST_DEVICE(nullptr, nullptr, nullptr, nullptr);

TEST(Decline, AnEagerOpIsComputedByItsBody) {
  const keel_plugin plugin = PluginTable("declines", &kDevice, kImpls, 2);
  keel_context* context = nullptr;
  keel_op* op = nullptr;
  ASSERT_EQ(keel_context_new(nullptr, 0, &context, nullptr), KEEL_OK);
  ASSERT_EQ(keel_plugin_add(context, &plugin, nullptr), KEEL_OK);
  ASSERT_EQ(keel_op_new(context, "declines", "square", 0, nullptr, nullptr, 0, &op, nullptr), KEEL_OK);
  for (int64_t n : {3, 5, 5, 4, 5, 3, 6, 6}) {
    squares = products = 0;
    std::vector<float> numbers(static_cast<size_t>(n), 3.0f);
    keel_tensor t = {};
    t.data = numbers.data();
    t.device = {1, 0};
    t.ndim = 1;
    t.dtype = {2, 32, 1};
    t.shape = &n;
    keel_array *x = nullptr, *y = nullptr;
    ASSERT_EQ(keel_array_from_tensor(context, &t, nullptr, nullptr, &x, nullptr), KEEL_OK);
    ASSERT_EQ(keel_apply(op, &x, 1, &y, 1, nullptr), KEEL_OK) << n;
    keel_tensor result = {};
    keel_array_tensor(y, &result);
    for (int64_t i = 0; i < n; i++) EXPECT_EQ(static_cast<float*>(result.data)[i], 9.0f) << n;
    EXPECT_EQ(squares, n <= 4) << n;
    EXPECT_EQ(products, n > 4) << n;
    keel_array_free(x);
    keel_array_free(y);
  }
  keel_op_free(op);
  keel_context_free(context);
}

}  // namespace
