/* rows_control.c: rows of the example programs about branches and effects, in C99; see README.md.
 *   rows_control_c ROW    runs one row on each device found; exit 0, or 1 and a line with the difference
 * How to read it: a program with its blocks, then the row that calls it. */
#include <keel/keel.h>
#include "rows_programs.h"

/* simple_relu: if (x > 0) return x; else return 0; */
static keel_rc give(void* x, keel_trace* t, keel_array* const* in, uint32_t n, keel_error** err) {
  (void)in, (void)n;
  return keel_trace_result(t, NULL, x, err);
}
static keel_rc simple_relu(void* arg, keel_trace* t, const keel_leaf* l, uint32_t n, keel_error** err) {
  keel_array *x = l[0].array, *zero = i32(0), *positive = NULL, *y = NULL;
  uint32_t made = 0;
  keel_rc rc = try_apply("greater", x, zero, &positive, err);
  (void)arg, (void)n, ran++;
  if (rc == KEEL_OK) rc = keel_trace_cond(t, positive, give, x, give, zero, &y, 1, &made, err);
  if (rc == KEEL_OK) rc = result(t, y, err);
  keel_array_free(zero), keel_array_free(positive), keel_array_free(y);
  return rc;
}
static int says(keel_function* f, keel_array* x, const char* branch, const char* wanted) {
  char text[64];
  keel_tensor t;
  keel_array* y = call1(f, x);
  y = on_host(y);
  keel_array_tensor(y, &t);
  snprintf(text, sizeof text, "%s, with graph: %d", branch, ((int32_t*)t.data)[0]);
  keel_array_free(y);
  return strcmp(text, wanted) == 0;
}
static void T6(void) {
  keel_function* f = function("simple_relu", simple_relu, NULL);
  keel_array *one = i32(1), *minus = i32(-1);
  int eagerly;
  for (eagerly = 0; eagerly < 2; eagerly++) {
    keel_run_eagerly(NULL, f, eagerly);
    EXPECT(says(f, one, "First branch", "First branch, with graph: 1"));
    EXPECT(says(f, minus, "Second branch", "Second branch, with graph: 0"));
    EXPECT(ran == (eagerly ? 3 : 1)); /* both branches are in one graph */
  }
  keel_array_free(one), keel_array_free(minus), keel_function_free(f);
}

static void T8(void) {
  const char* wanted =
      "keel 1\n\nfn @simple_relu(x: i32[]) -> i32[] {\n  v0 = greater(x, 0) : bool[]\n  v1 = cond(v0, x)\n"
      "    then(p0) {\n      yield p0\n    }\n    else(p0) {\n      yield i32(0)\n    } : i32[]\n  return "
      "v1\n}\n"
      "\nentry simple_relu = @simple_relu (x) -> (_)\n";
  keel_function* f = function("simple_relu", simple_relu, "x: i32[]");
  keel_array* one = i32(1);
  keel_leaf l = leaf(one);
  keel_module* module = NULL;
  keel_text* text = NULL;
  check(keel_function_module(f, "", &l, 1, &module, NULL, &error));
  check(keel_module_report(module, "text", &text, &error));
  EXPECT(strcmp(keel_text_data(text, NULL), wanted) == 0);
  keel_text_free(text), keel_module_free(module), keel_array_free(one), keel_function_free(f);
}

/* Only effects and results are observed: print, assert, a variable. The gather, which would fail, is
 * pruned. */
static char printed[64];
static void hook(void* arg, int32_t stream, const char* text, uint64_t size) {
  (void)arg, (void)stream;
  strncat(printed, text, size < sizeof printed - strlen(printed) ? size : 0);
}
static keel_rc effect(const char* op, const char* name, const char* text, keel_array* x, keel_error** err) {
  keel_attr attr = {0};
  keel_op* bound = NULL;
  keel_rc rc;
  attr.kind = KEEL_ATTR_STR, attr.count = (uint32_t)strlen(text), attr.p = text;
  rc = keel_op_new(context, device, op, 0, &name, &attr, 1, &bound, err);
  if (rc == KEEL_OK) rc = keel_apply(bound, &x, 1, NULL, 0, err);
  keel_op_free(bound);
  return rc;
}
static keel_rc observable(void* v, keel_trace* t, const keel_leaf* l, uint32_t n, keel_error** err) {
  keel_array *x = l[0].array, *one = i32(1), *nine = i32(9), *unused = NULL, *small = NULL, *y = NULL;
  keel_rc rc = try_apply("gather", x, one, &unused, err);
  keel_array* top = apply("reduce_max", x, NULL);
  (void)n;
  if (rc == KEEL_OK) rc = effect("print", "format", "x is {}", x, err);
  if (rc == KEEL_OK) rc = try_apply("less", top, nine, &small, err);
  if (rc == KEEL_OK) rc = effect("assert", "message", "too large", small, err);
  if (rc == KEEL_OK) rc = keel_variable_write(v, t, "assign_add", one, err);
  if (rc == KEEL_OK) rc = try_apply("add", x, x, &y, err);
  if (rc == KEEL_OK) rc = result(t, y, err);
  keel_array_free(one), keel_array_free(nine), keel_array_free(unused), keel_array_free(top);
  keel_array_free(small), keel_array_free(y);
  return rc;
}
static void T16(void) {
  const int32_t three = 3, nine = 9, six = 6;
  keel_array *a = i32s(1, 1, 1, &three), *b = i32s(1, 1, 1, &nine), *zero = i32(0), *out = NULL, *now = NULL;
  keel_leaf l = leaf(b);
  keel_variable* v = NULL;
  keel_function* f = NULL;
  uint32_t n = 0;
  keel_error* e = NULL;
  printed[0] = 0;
  keel_print_hook(context, hook, NULL);
  check(keel_variable_new(context, NULL, zero, NULL, 0, &v, &error));
  check(keel_function_new(context, "f", device, NULL, 0, observable, v, NULL, &f, &error));
  EXPECT(is(call1(f, a), KEEL_I32, 1, &six));
  EXPECT(keel_function_call(f, NULL, NULL, "", &l, 1, &out, 1, &n, &e) != KEEL_OK);
  EXPECT(strstr(keel_error_text(e, KEEL_ERROR_MESSAGE), "too large") != NULL);
  check(keel_variable_read(v, NULL, NULL, &now, &error));
  EXPECT(is_i32(now, 1)); /* the failed call stopped before */
  EXPECT(strcmp(printed, "x is [3]\nx is [9]\n") == 0);
  keel_print_hook(context, NULL, NULL);
  keel_error_free(e), keel_array_free(a), keel_array_free(b), keel_array_free(zero);
  keel_variable_free(v), keel_function_free(f);
}

static const struct row kRows[] = {{"T6", T6}, {"T8", T8}, {"T16", T16}};

int main(int argc, char** argv) { return run_row(argc, argv, kRows, sizeof kRows / sizeof kRows[0]); }
