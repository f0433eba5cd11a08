/* rows_programs.h: helpers of the C examples: the current context and device, check, make, apply, is,
 * programs for keel_function, and main. */
#ifndef KEEL_ROWS_PROGRAMS_H
#define KEEL_ROWS_PROGRAMS_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <keel/keel.h>

static keel_context* context;
static const char* device;
static keel_error* error;

#define EXPECT(condition)                                                            \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "line %d on %s: %s is false\n", __LINE__, device, #condition); \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)

static inline void check(keel_rc rc) {
  if (rc == KEEL_OK) return;
  fprintf(stderr, "on %s: %s\n", device,
          error ? keel_error_text(error, KEEL_ERROR_MESSAGE) : "an error without a message");
  exit(1);
}

/* An f32 or i32 array; ndim 0 to 2. */
static inline keel_array* make(keel_dt dtype, int32_t ndim, int64_t rows, int64_t columns,
                               const void* values) {
  int64_t shape[2], n = (ndim > 0 ? rows : 1) * (ndim > 1 ? columns : 1);
  keel_array* out = NULL;
  keel_tensor t;
  shape[0] = rows, shape[1] = columns;
  check(keel_array_new(context, dtype, shape, ndim, &out, &error));
  keel_array_tensor(out, &t);
  memcpy(t.data, values, (size_t)n * 4);
  return out;
}
static inline keel_array* f32(float v) { return make(KEEL_F32, 0, 1, 1, &v); }
static inline keel_array* i32(int32_t v) { return make(KEEL_I32, 0, 1, 1, &v); }
static inline keel_array* f32s(int32_t ndim, int64_t rows, int64_t columns, const float* v) {
  return make(KEEL_F32, ndim, rows, columns, v);
}
static inline keel_array* i32s(int32_t ndim, int64_t rows, int64_t columns, const int32_t* v) {
  return make(KEEL_I32, ndim, rows, columns, v);
}

static inline keel_rc try_apply(const char* op, keel_array* a, keel_array* b, keel_array** out,
                                keel_error** err) {
  keel_op* bound = NULL;
  keel_array* in[2];
  keel_rc rc = keel_op_new(context, device, op, 0, NULL, NULL, 0, &bound, err);
  in[0] = a, in[1] = b;
  if (rc == KEEL_OK) rc = keel_apply(bound, in, b ? 2 : 1, out, 1, err);
  keel_op_free(bound);
  return rc;
}
static inline keel_array* apply(const char* op, keel_array* a, keel_array* b) {
  keel_array* out = NULL;
  check(try_apply(op, a, b, &out, &error));
  return out;
}

/* The device's name in keel_array_device: "" for a device that computes in host memory. */
static inline const char* memory_of_device(void) {
  return strncmp(device, "cpu", 3) == 0 || strncmp(device, "reference", 9) == 0 ? "" : device;
}
/* The array in host memory, in place of one that a device may have; takes ownership of it. */
static inline keel_array* on_host(keel_array* a) {
  keel_array* here = NULL;
  check(keel_array_to(context, a, NULL, &here, &error));
  keel_array_free(a);
  return here;
}

/* Whether the array has this dtype and these elements (of 4 bytes). Takes ownership of the array. */
static inline int is(keel_array* a, keel_dt dtype, int64_t n, const void* wanted) {
  keel_tensor t;
  int64_t size = 1;
  int same, d;
  a = on_host(a);
  keel_array_tensor(a, &t);
  for (d = 0; d < t.ndim; d++) size *= t.shape[d];
  same = size == n && ((uint32_t)t.dtype.code | (uint32_t)t.dtype.bits << 8 | 1u << 16) == dtype &&
         memcmp((char*)t.data + t.byte_offset, wanted, (size_t)n * 4) == 0;
  keel_array_free(a);
  return same;
}
static inline int is_f32(keel_array* a, float v) { return is(a, KEEL_F32, 1, &v); }
static inline int is_i32(keel_array* a, int32_t v) { return is(a, KEEL_I32, 1, &v); }

/* ---- functions: a program and how often it ran */
static int ran;
typedef keel_rc (*program)(void*, keel_trace*, const keel_leaf*, uint32_t, keel_error**);

static inline keel_function* function(const char* name, program p, const char* signature) {
  keel_function* out = NULL;
  keel_kv option;
  option.key = "signature", option.value = signature;
  ran = 0;
  check(keel_function_new(context, name, device, &option, signature ? 1 : 0, p, NULL, NULL, &out, &error));
  return out;
}
static inline keel_leaf leaf(keel_array* a) {
  keel_leaf l = {0};
  l.kind = KEEL_LEAF_ARRAY, l.array = a;
  return l;
}
static inline keel_leaf number(int64_t i) {
  keel_leaf l = {0};
  l.kind = KEEL_LEAF_I64, l.i = i;
  return l;
}
static inline keel_array* call2(keel_function* f, keel_leaf a, keel_leaf b, uint32_t n) {
  keel_leaf leaves[2];
  keel_array* out = NULL;
  uint32_t n_out = 0;
  leaves[0] = a, leaves[1] = b;
  check(keel_function_call(f, NULL, NULL, "", leaves, n, &out, 1, &n_out, &error));
  return out;
}
static inline keel_array* call1(keel_function* f, keel_array* a) { return call2(f, leaf(a), leaf(a), 1); }
static inline int report_has(keel_function* f, const char* part) {
  keel_text* text = NULL;
  int has;
  check(keel_function_report(f, "report", &text, &error));
  has = strstr(keel_text_data(text, NULL), part) != NULL;
  keel_text_free(text);
  return has;
}

/* One step of a program: y = op(a, b); a failure is left in err. Results of steps live until the end. */
static inline keel_rc result(keel_trace* t, keel_array* y, keel_error** err) {
  return keel_trace_result(t, NULL, y, err);
}

static inline keel_rc matmul_add(void* arg, keel_trace* t, const keel_leaf* l, uint32_t n, keel_error** err) {
  keel_array *product = NULL, *sum = NULL;
  const float y[2] = {2, 3};
  keel_array* weights = f32s(2, 2, 1, y);
  keel_array* four = f32(4);
  keel_rc rc = try_apply("matmul", l[0].array, weights, &product, err);
  (void)arg, (void)n, ran++;
  if (rc == KEEL_OK) rc = try_apply("add", product, four, &sum, err);
  if (rc == KEEL_OK) rc = result(t, sum, err);
  keel_array_free(weights), keel_array_free(four);
  keel_array_free(product), keel_array_free(sum);
  return rc;
}
static inline keel_rc relu(void* arg, keel_trace* t, const keel_leaf* l, uint32_t n, keel_error** err) {
  keel_array *zero = f32(0), *y = NULL;
  keel_rc rc = try_apply("maximum", zero, l[0].array, &y, err);
  (void)arg, (void)n, ran++;
  if (rc == KEEL_OK) rc = result(t, y, err);
  keel_array_free(zero), keel_array_free(y);
  return rc;
}
static inline keel_array* mse(keel_array* a, keel_array* b) {
  keel_array* two = i32(2);
  keel_array* difference = apply("sub", a, b);
  keel_array* square = apply("pow", difference, two);
  keel_array* mean = apply("reduce_mean", square, NULL);
  keel_array_free(two), keel_array_free(difference), keel_array_free(square);
  return mean;
}
static inline keel_rc mse_program(void* arg, keel_trace* t, const keel_leaf* l, uint32_t n,
                                  keel_error** err) {
  keel_array* mean = mse(l[0].array, l[1].array);
  keel_rc rc = result(t, mean, err);
  (void)arg, (void)n, ran++;
  keel_array_free(mean);
  return rc;
}
static inline keel_array* power(keel_array* x, int n) {
  keel_array *y = keel_array_retain(x), *next;
  int i;
  for (i = 1; i < n; i++, y = next) {
    next = apply("matmul", y, x);
    keel_array_free(y);
  }
  return y;
}
static inline keel_rc power_program(void* arg, keel_trace* t, const keel_leaf* l, uint32_t n,
                                    keel_error** err) {
  keel_array* y = power(l[0].array, (int)l[1].i);
  keel_rc rc = result(t, y, err);
  (void)arg, (void)n, ran++;
  keel_array_free(y);
  return rc;
}
/* x * x + 2, of an array or of a number */
static inline keel_rc square_program(void* arg, keel_trace* t, const keel_leaf* l, uint32_t n,
                                     keel_error** err) {
  int is_array = l[0].kind == KEEL_LEAF_ARRAY;
  keel_array *x = is_array ? keel_array_retain(l[0].array) : i32((int32_t)l[0].i), *two = i32(2);
  keel_array* square = apply("mul", x, x);
  keel_array* y = apply("add", square, two);
  keel_rc rc = result(t, y, err);
  (void)arg, (void)n, ran++;
  keel_array_free(x), keel_array_free(two), keel_array_free(square), keel_array_free(y);
  return rc;
}
static inline keel_rc unused_gather(void* arg, keel_trace* t, const keel_leaf* l, uint32_t n,
                                    keel_error** err) {
  keel_array *one = i32(1), *y = NULL;
  keel_rc rc = try_apply("gather", l[0].array, one, &y, err);
  (void)arg, (void)n;
  keel_array_free(one), keel_array_free(y);
  return rc == KEEL_OK ? result(t, l[0].array, err) : rc;
}

/* ---- main: ROW runs one example on each device found; exit 0, or 1 and a line that states the difference */
struct row {
  const char* row;
  void (*run)(void);
};
static inline int run_row(int argc, char** argv, const struct row* rows, size_t n) {
  size_t i;
  uint32_t d;
  check(keel_context_new(NULL, 0, &context, &error));
  check(keel_plugin_load(context, NULL, &error));
  EXPECT(argc == 2 && keel_device_name(context, 0));
  for (i = 0; i < n && strcmp(rows[i].row, argv[1]) != 0; i++) continue;
  EXPECT(i < n);
  for (d = 0; (device = keel_device_name(context, d)) != NULL; d++) rows[i].run();
  keel_context_free(context);
  return 0;
}
#endif
