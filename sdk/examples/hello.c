/* hello.c: a complete plugin: a device "hello" that adds f32 numbers. It links no Keel library.
 *   cc -shared -fPIC hello.c $(pkg-config --cflags keel) -o plugins/keel-hello.so
 *   keel run add.txt -d hello --plugins plugins -i x=f32[2]=1,2 -i y=f32[2]=3,4 */
#include <keel/keel_plugin.h>

/* Element i of an operand, broadcast to the result: dims of size 1 repeat. */
static float at(const keel_tensor* t, const keel_tensor* out, int64_t i) {
  int64_t offset = 0, step = 1;
  for (int32_t d = 1; d <= out->ndim; d++) {
    int64_t size = out->shape[out->ndim - d], index = i % size;
    i /= size;
    if (d > t->ndim) continue;
    int64_t own = t->shape[t->ndim - d];
    int64_t stride = t->strides ? t->strides[t->ndim - d] : step;
    if (own != 1) offset += index * stride;
    step *= own;
  }
  return ((const float*)keel_ptr(t))[offset];
}

static keel_rc add(const keel_call* call) {
  float* out = (float*)keel_ptr(call->out[0]);
  for (int64_t i = 0; i < call->count; i++)
    out[i] = at(call->in[0], call->out[0], i) + at(call->in[1], call->out[0], i);
  return KEEL_OK;
}

static const keel_impl impls[] = {
    {"add", 1, 1, "T=f32", "hello add", 0, KEEL_IMPL_ANY_DIMS, NULL, NULL, add},
};
static const keel_device device = {.struct_size = sizeof device, .flags = KEEL_DEVICE_HOST_MEMORY};
static const keel_plugin hello = {
    KEEL_PLUGIN_HEADER, .name = "hello", .version = "0.1.0", .about = "adds f32 numbers",
    .device = &device,  .impls = impls,  .n_impls = 1,       .impl_stride = sizeof(keel_impl),
};
KEEL_PLUGIN(hello)
