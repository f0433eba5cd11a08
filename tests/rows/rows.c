/* rows.c: the example programs in C99, named by their ids; see README.md.
 *   rows_c ROW    runs one example on each device found; exit 0, or 1 and a line that states the
 * difference
 * The examples come first; their helpers are in rows_programs.h.
 */
#include "rows_programs.h"

/* ---- the examples */
static const float kOneTwo[2] = {1, 2};
static const int32_t kTruth[5] = {1, 0, 4, 4, 7}, kGuess[5] = {3, 6, 3, 0, 6};

static void V1(void) {
  const float two = 2;
  keel_array* x = f32s(2, 1, 1, &two);
  char text[32];
  keel_tensor t;
  keel_array* m = apply("matmul", x, x);
  m = on_host(m);
  keel_array_tensor(m, &t);
  snprintf(text, sizeof text, "hello, [[%g.]]", ((float*)t.data)[0]);
  EXPECT(strcmp(text, "hello, [[4.]]") == 0 && t.ndim == 2);
  keel_array_free(m), keel_array_free(x);
}
static void V2(void) {
  keel_array *a = f32s(2, 1, 2, kOneTwo), *out = NULL;
  keel_error* e = NULL;
  EXPECT(try_apply("matmul", a, a, &out, &e) == KEEL_INVALID);
  EXPECT(strcmp(keel_error_text(e, KEEL_ERROR_OP), "matmul") == 0 &&
         strstr(keel_error_text(e, KEEL_ERROR_MESSAGE), "f32[1, 2]") != NULL);
  keel_error_free(e), keel_array_free(a);
}
/* The same code on other hardware, at once and as a graph. */
static void V3(void) {
  keel_function* f = function("outer_function", matmul_add, NULL);
  keel_array* x = f32s(2, 1, 2, kOneTwo);
  int eager;
  for (eager = 0; eager < 2; eager++) {
    keel_array* y;
    keel_run_eagerly(NULL, f, eager);
    y = call1(f, x);
    EXPECT(strcmp(keel_array_device(y), memory_of_device()) == 0);
    EXPECT(is_f32(y, 12));
  }
  keel_array_free(x), keel_function_free(f);
}
static void V5(void) {
  char line[4096];
  FILE* maps = fopen("/proc/self/maps", "r");
  EXPECT(maps != NULL);
  while (fgets(line, sizeof line, maps)) EXPECT(strstr(line, "libpython") == NULL);
  fclose(maps);
}
static void V6(void) {
  const char* text =
      "keel 1\nfn @f(x: f32[]) {\n  return x * (f32(1.0) + f32(1.0))\n}\nentry f = @f (x) -> (y)\n";
  keel_kv passes = {"passes", "fold"};
  keel_module* module = NULL;
  keel_text* after = NULL;
  check(keel_module_parse(context, text, strlen(text), &module, &error));
  check(keel_module_optimize(module, "f", device, &passes, 1, NULL, &error));
  check(keel_module_report(module, "text", &after, &error));
  EXPECT(strstr(keel_text_data(after, NULL), "mul(x, ") && !strstr(keel_text_data(after, NULL), "add("));
  keel_text_free(after), keel_module_free(module);
}
static void V8(void) {
  const char* text =
      "keel 1\nvar v: f32[] = 1.0\nfn @f(x: f32[]) {\n  a = read(v) + x\n  b = read(v) + x\n  assign_add(v, "
      "x)\n"
      "  c = read(v) + x\n  return a * b * c\n}\nentry f = @f (x) -> (y)\n";
  keel_kv passes = {"passes", "cse"};
  keel_module* module = NULL;
  keel_text* after = NULL;
  int adds = 0;
  check(keel_module_parse(context, text, strlen(text), &module, &error));
  check(keel_module_optimize(module, "f", device, &passes, 1, NULL, &error));
  check(keel_module_report(module, "text", &after, &error));
  for (const char* at = keel_text_data(after, NULL); (at = strstr(at, " = add(")) != NULL; at++) adds++;
  EXPECT(adds == 2); /* one before the write, one after it */
  keel_text_free(after), keel_module_free(module);
}
static void V9(void) {
  keel_function* f = function("f", relu, NULL);
  keel_array* x = f32(1);
  keel_array_free(call1(f, x));
  EXPECT(report_has(f, "\"trace_ms\":") && report_has(f, "\"plan_ms\":") && report_has(f, "first call"));
  keel_array_free(x), keel_function_free(f);
}
static void V10_V11_V15_T4_T5_K10(void) {
  keel_function* f = function("outer_function", matmul_add, NULL);
  keel_array* x = f32s(2, 1, 2, kOneTwo);
  EXPECT(is_f32(call1(f, x), 12) && ran == 1);
  keel_run_eagerly(NULL, f, 1);
  EXPECT(is_f32(call1(f, x), 12) && ran == 2);
  keel_array_free(x), keel_function_free(f);
}
static void V12(void) {
  keel_function* f = function("f", relu, NULL);
  keel_array* x = f32(3);
  keel_run_eagerly(context, NULL, 1);
  EXPECT(is_f32(call1(f, x), 3) && is_f32(call1(f, x), 3) && ran == 2);
  keel_run_eagerly(context, NULL, 0);
  EXPECT(is_f32(call1(f, x), 3) && is_f32(call1(f, x), 3) && ran == 3);
  keel_array_free(x), keel_function_free(f);
}
static void V13_K3(void) {
  keel_array *a = i32(3), *b = i32(5), *c = apply("add", a, b);
  EXPECT(!keel_array_symbolic(c));
  EXPECT(is_i32(c, 8));
  keel_array_free(a), keel_array_free(b);
}
static void Z6(void) {
  keel_array* x = i32(3);
  keel_tensor t;
  x = on_host(x);
  keel_array_tensor(x, &t);
  if (*(int32_t*)t.data <= 2) EXPECT(!"a value decides an if of C");
  keel_array_free(x);
}
static void Z1(void) {
  const char* text =
      "keel 1\nfn @g(x: i32[]) {\n  y = add(x, 1)\n  z = mul(y, 2)\n  return z\n}\nentry g = @g (x) -> (z)\n";
  const char *feeds[1] = {"x"}, *fetches[2] = {"z", "y"};
  keel_module* module = NULL;
  keel_session* session = NULL;
  keel_array *x = i32(3), *out[2];
  check(keel_module_parse(context, text, strlen(text), &module, &error));
  check(keel_session_new(module, device, NULL, 0, &session, &error));
  check(keel_session_run(session, feeds, &x, 1, fetches, out, 2, NULL, 0, &error));
  EXPECT(is_i32(out[0], 8) && is_i32(out[1], 4));
  keel_array_free(x), keel_session_free(session), keel_module_free(module);
}
static void Z12_T1(void) {
  char path[64];
  const float wanted = 12;
  keel_function* f = function("f", matmul_add, NULL);
  keel_array *x = f32s(2, 1, 2, kOneTwo), *out = NULL;
  keel_leaf l = leaf(x);
  keel_module* module = NULL;
  keel_session* session = NULL;
  snprintf(path, sizeof path, "rows_c_%s.keel", device);
  check(keel_function_module(f, "", &l, 1, &module, NULL, &error));
  check(keel_module_save(module, path, &error));
  keel_module_free(module), keel_function_free(f);
  check(keel_module_load(context, path, &module, &error));
  remove(path);
  check(keel_session_new(module, device, NULL, 0, &session, &error));
  check(keel_session_run(session, NULL, &x, 1, NULL, &out, 1, NULL, 0, &error));
  EXPECT(is(out, KEEL_F32, 1, &wanted));
  keel_array_free(x), keel_session_free(session), keel_module_free(module);
}
static void Z15(void) {
  const int32_t v[4] = {1, 2, 3, 4}, sum[4] = {2, 3, 4, 5}, product[4] = {2, 6, 12, 20};
  keel_array *a = i32s(2, 2, 2, v), *one = i32(1), *b = apply("add", a, one);
  EXPECT(is(apply("mul", a, b), KEEL_I32, 4, product));
  EXPECT(is(b, KEEL_I32, 4, sum));
  keel_array_free(a), keel_array_free(one);
}
static void relus(int more) {
  const float three[2] = {3, -3}, wanted[2] = {3, 0}, other[2] = {-1, 1}, none_one[2] = {0, 1},
              ints[2] = {1, -1};
  const float one_none[2] = {1, 0};
  keel_function* f = function("my_relu", relu, NULL);
  keel_array *x = f32(5.5f), *y = f32s(1, 2, 1, ints), *z = f32s(2, 1, 2, three), *minus = f32(-2.5f);
  keel_array* w = f32s(2, 1, 2, other);
  EXPECT(is_f32(call1(f, x), 5.5f) && is(call1(f, y), KEEL_F32, 2, one_none));
  EXPECT(is(call1(f, z), KEEL_F32, 2, wanted) && ran == 3);
  if (more) EXPECT(is_f32(call1(f, minus), 0) && is(call1(f, w), KEEL_F32, 2, none_one) && ran == 3);
  keel_array_free(x), keel_array_free(y), keel_array_free(z), keel_array_free(minus);
  keel_array_free(w), keel_function_free(f);
}
static void T9(void) { relus(0); }
static void T10(void) { relus(1); }
static void errors(int eagerly, int runs) {
  keel_function* f = function("get_MSE", mse_program, NULL);
  keel_array *a = i32s(1, 5, 1, kTruth), *b = i32s(1, 5, 1, kGuess);
  int i;
  keel_run_eagerly(context, NULL, eagerly);
  for (i = 0; i < 3; i++) EXPECT(is_i32(call2(f, leaf(a), leaf(b), 2), 11));
  keel_run_eagerly(context, NULL, 0);
  EXPECT(ran == runs);
  keel_array_free(a), keel_array_free(b), keel_function_free(f);
}
static void T12_T14(void) { errors(0, 1); }
static void T13(void) {
  errors(1, 3);
  errors(0, 1);
}
static void T15(void) { errors(1, 3); }
static void T17(void) {
  keel_array *x = f32s(1, 1, 1, kOneTwo), *one = i32(1), *out = NULL;
  keel_error* e = NULL;
  if (try_apply("gather", x, one, &out, &e) == KEEL_OK) { /* a device with memory of its own: found later */
    EXPECT(*memory_of_device() && keel_array_wait(out, &e) == KEEL_RANGE);
    keel_array_free(out);
  }
  EXPECT(strstr(keel_error_text(e, KEEL_ERROR_MESSAGE), "index 1 is not in [0, 1)") != NULL);
  keel_error_free(e), keel_array_free(x), keel_array_free(one);
}
static void T18(void) {
  const float zero = 0;
  keel_function* f = function("unused_return_graph", unused_gather, NULL);
  keel_array* x = f32s(1, 1, 1, &zero);
  EXPECT(is(call1(f, x), KEEL_F32, 1, &zero));
  keel_array_free(x), keel_function_free(f);
}
static void T20(void) {
  const int32_t v[4] = {1, 1, 1, 0}, wanted[4] = {764848393, 1820529360, 1820529360, -1055680967};
  keel_function* f = function("power", power_program, NULL);
  keel_array* x = i32s(2, 2, 2, v);
  EXPECT(is(power(x, 60), KEEL_I32, 4, wanted));
  EXPECT(is(call2(f, leaf(x), number(60), 2), KEEL_I32, 4, wanted));
  keel_array_free(x), keel_function_free(f);
}
static void T22(void) {
  keel_function* f = function("f", square_program, NULL);
  keel_array *two = i32(2), *three = i32(3);
  EXPECT(is_i32(call1(f, two), 6) && is_i32(call1(f, three), 11) && ran == 1);
  keel_array_free(two), keel_array_free(three), keel_function_free(f);
}
static void T23_T24(void) {
  keel_function* f = function("f", square_program, NULL);
  EXPECT(is_i32(call2(f, number(2), number(0), 1), 6) && ran == 1);
  EXPECT(is_i32(call2(f, number(3), number(0), 1), 11) && ran == 2);
  EXPECT(is_i32(call2(f, number(2), number(0), 1), 6) && ran == 2);
  keel_function_free(f);
}
static keel_array* bound(const char* op, keel_array** in, uint32_t n, const char* name,
                         const keel_attr* attr) {
  keel_op* made = NULL;
  keel_array* out = NULL;
  check(keel_op_new(context, device, op, 0, &name, attr, 1, &made, &error));
  check(keel_apply(made, in, n, &out, 1, &error));
  keel_op_free(made);
  return out;
}
static void T25(void) {
  const int64_t shape[2] = {10, 10};
  keel_attr dims = {0}, rows = {0};
  keel_array *in[3], *x, *again, *eye;
  keel_tensor t;
  int i;
  int32_t numbers[100];
  dims.kind = KEEL_ATTR_DIMS, dims.count = 2, dims.p = shape;
  rows.kind = KEEL_ATTR_DIM, rows.i = 10;
  check(keel_array_new(context, KEEL_U64, NULL, 0, &in[0], &error)); /* key 0 */
  in[1] = i32(-1), in[2] = i32(3);
  x = bound("random_uniform", in, 3, "dims", &dims);
  again = bound("random_uniform", in, 3, "dims", &dims);
  again = on_host(again);
  keel_array_tensor(again, &t);
  memcpy(numbers, (char*)t.data + t.byte_offset, sizeof numbers);
  for (i = 0; i < 100; i++) EXPECT(numbers[i] >= -1 && numbers[i] < 3);
  EXPECT(is(x, KEEL_I32, 100, numbers));
  eye = bound("eye", NULL, 0, "rows", &rows);
  EXPECT(is_f32(apply("reduce_sum", eye, NULL), 10));
  for (i = 0; i < 3; i++) keel_array_free(in[i]);
  keel_array_free(again), keel_array_free(eye);
}
static void K6(void) {
  const int64_t shape[3] = {60000, 28, 28}, rows[2] = {-1, 784};
  keel_attr to = {0}, flat = {0};
  keel_array *images, *floats, *flattened;
  keel_tensor t;
  to.kind = KEEL_ATTR_DTYPE, to.i = KEEL_F32;
  flat.kind = KEEL_ATTR_DIMS, flat.count = 2, flat.p = rows;
  check(keel_array_new(context, KEEL_U8, shape, 3, &images, &error));
  floats = bound("cast", &images, 1, "to", &to);
  flattened = bound("reshape", &floats, 1, "to", &flat);
  flattened = on_host(flattened);
  keel_array_tensor(flattened, &t);
  EXPECT(t.ndim == 2 && t.shape[0] == 60000 && t.shape[1] == 784 && t.dtype.code == 2 && t.dtype.bits == 32);
  keel_array_free(images), keel_array_free(floats), keel_array_free(flattened);
}
static void T26(void) {
  const float v[3] = {1, 2, 3};
  keel_function* f = function("f", relu, "x: f32[n]");
  int64_t n;
  for (n = 1; n < 4; n++) {
    keel_array* x = f32s(1, n, 1, v);
    EXPECT(is(call1(f, x), KEEL_F32, n, v) && ran == 1);
    keel_array_free(x);
  }
  keel_function_free(f);
}
static int32_t seen(void* arg, const keel_event* e) {
  int32_t value = *(int32_t*)((char*)e->out[0]->data + e->out[0]->byte_offset);
  if (strcmp(e->out_names[0], "y") == 0) *(int32_t*)arg = value;
  return 0;
}
static void K2(void) {
  const char* text =
      "keel 1\nfn @g(x: i32[]) {\n  y = add(x, 1)\n  z = mul(y, 2)\n  return z\n}\nentry g = @g (x) -> (z)\n";
  keel_kv observe = {"observe", "1"};
  keel_module* module = NULL;
  keel_session* session = NULL;
  keel_plan* plan = NULL;
  keel_array *x = i32(3), *out = NULL;
  int32_t between = 0;
  check(keel_module_parse(context, text, strlen(text), &module, &error));
  check(keel_session_new(module, device, &observe, 1, &session, &error));
  check(keel_plan_new(session, NULL, 0, NULL, 0, NULL, 0, &plan, &error));
  check(keel_plan_run_observed(plan, &x, 1, &out, 1, seen, &between, &error));
  EXPECT(is_i32(out, 8) && between == 4);
  keel_array_free(x), keel_plan_free(plan), keel_session_free(session), keel_module_free(module);
}

/* ---- variables and tapes */
static keel_variable* variable(keel_array* initial) {
  keel_variable* out = NULL;
  check(keel_variable_new(context, NULL, initial, NULL, 0, &out, &error));
  keel_array_free(initial);
  return out;
}
static keel_array* read(keel_tape* tape, keel_variable* v) {
  keel_array* out = NULL;
  check(keel_variable_read(v, NULL, tape, &out, &error));
  return out;
}
static keel_array* square(keel_tape* tape, keel_array* x) {
  keel_op* mul = NULL;
  keel_array *in[2], *out = NULL;
  in[0] = in[1] = x;
  check(keel_op_new(context, device, "mul", 0, NULL, NULL, 0, &mul, &error));
  check(keel_trace_apply(NULL, tape, mul, in, 2, &out, 1, &error));
  keel_op_free(mul);
  return out;
}
static keel_array* gradient(keel_tape* tape, keel_array* y, keel_variable* v) {
  keel_array* out = NULL;
  check(keel_tape_gradient(tape, &y, 1, NULL, NULL, &v, 1, 0, &out, &error));
  return out;
}
static void Z7(void) {
  const float one = 1, two = 2;
  keel_variable* w = variable(f32s(2, 1, 1, &one));
  keel_tape* tape = NULL;
  keel_array *value, *loss, *d;
  keel_tensor t;
  check(keel_tape_new(context, device, NULL, 0, NULL, &tape, &error));
  value = read(tape, w), loss = square(tape, value), d = gradient(tape, loss, w);
  d = on_host(d);
  keel_array_tensor(d, &t);
  EXPECT(t.ndim == 2 && t.shape[0] == 1 && t.shape[1] == 1 && is(d, KEEL_F32, 1, &two));
  keel_array_free(value), keel_array_free(loss);
  keel_tape_free(tape), keel_variable_free(w);
}
static void Z9(void) {
  const int32_t v[2] = {1, 2}, ten[2] = {10, 10}, wanted[2] = {11, 12}, more[2] = {12, 13};
  keel_variable* w = variable(i32s(1, 2, 1, v));
  keel_array *tens = i32s(1, 2, 1, ten), *one = i32(1), *now;
  check(keel_variable_write(w, NULL, "assign_add", tens, &error));
  now = read(NULL, w);
  EXPECT(is(apply("add", now, one), KEEL_I32, 2, more));
  EXPECT(is(now, KEEL_I32, 2, wanted));
  keel_array_free(tens), keel_array_free(one), keel_variable_free(w);
}
static void Z18(void) {
  const float one = 1, two = 2;
  keel_kv persistent = {"persistent", "1"};
  keel_variable* w = variable(f32s(2, 1, 1, &one));
  keel_tape* tape = NULL;
  keel_array *value, *seen, *hidden;
  check(keel_tape_new(context, device, &persistent, 1, NULL, &tape, &error));
  value = read(tape, w), seen = square(tape, value);
  keel_tape_pause(tape, 1);
  hidden = square(tape, value);
  keel_tape_pause(tape, 0);
  EXPECT(gradient(tape, hidden, w) == NULL);
  EXPECT(is(gradient(tape, seen, w), KEEL_F32, 1, &two));
  keel_array_free(value), keel_array_free(seen), keel_array_free(hidden);
  keel_tape_free(tape), keel_variable_free(w);
}
static void K7(void) {
  const int64_t shape[2] = {784, 128};
  keel_attr attrs[2] = {{0}, {0}};
  const char* names[2] = {"dims", "kind"};
  keel_op* random = NULL;
  keel_array *key, *normal = NULL, *zeros = NULL, *now, *mean;
  keel_variable *w, *b;
  keel_tensor t;
  attrs[0].kind = KEEL_ATTR_DIMS, attrs[0].count = 2, attrs[0].p = shape;
  attrs[1].kind = KEEL_ATTR_STR, attrs[1].count = 6, attrs[1].p = "normal";
  check(keel_array_new(context, KEEL_U64, NULL, 0, &key, &error));
  check(keel_op_new(context, device, "random", 0, names, attrs, 2, &random, &error));
  check(keel_apply(random, &key, 1, &normal, 1, &error));
  check(keel_array_new(context, KEEL_F32, shape + 1, 1, &zeros, &error));
  w = variable(normal), b = variable(zeros);
  now = read(NULL, w), mean = apply("reduce_mean", now, NULL);
  now = on_host(now);
  keel_array_tensor(now, &t);
  EXPECT(t.ndim == 2 && t.shape[0] == 784 && t.shape[1] == 128);
  mean = on_host(mean);
  keel_array_tensor(mean, &t);
  EXPECT(*(float*)t.data < 0.016f && *(float*)t.data > -0.016f); /* 5 / sqrt(784 * 128) */
  keel_array_free(mean), keel_array_free(now);
  now = read(NULL, b), mean = apply("reduce_max", now, NULL);
  EXPECT(is_f32(mean, 0));
  keel_array_free(now), keel_array_free(key), keel_op_free(random);
  keel_variable_free(w), keel_variable_free(b);
}

static const struct row kRows[] = {
    {"V1", V1},           {"V2", V2},         {"V3", V3},   {"V5", V5},
    {"V6", V6},           {"V8", V8},         {"V9", V9},   {"V10_V11_V15_T4_T5_K10", V10_V11_V15_T4_T5_K10},
    {"V12", V12},         {"V13_K3", V13_K3}, {"Z6", Z6},   {"Z1", Z1},
    {"Z12_T1", Z12_T1},   {"Z15", Z15},       {"T9", T9},   {"T10", T10},
    {"T12_T14", T12_T14}, {"T13", T13},       {"T15", T15}, {"T17", T17},
    {"T18", T18},         {"T20", T20},       {"T22", T22}, {"T23_T24", T23_T24},
    {"T25", T25},         {"K6", K6},         {"T26", T26}, {"K2", K2},
    {"Z7", Z7},           {"Z9", Z9},         {"Z18", Z18}, {"K7", K7}};

int main(int argc, char** argv) { return run_row(argc, argv, kRows, sizeof kRows / sizeof kRows[0]); }
