/* rows_mlp.c: the example programs about the MLP 784-128-128-128-10, in C99; see README.md.
 *   rows_mlp_c ROW    runs one example on each device found; exit 0, or 1 and a line that states the
 * difference
 * Each weight is 1/1024 or 1/128, each bias 1 and each input 1, so every logit is exactly 784/1024 + 4.
 */
#include "rows_programs.h"

enum { kImages = 3, kLayers = 4, kInputs = 1 + 2 * kLayers };
static const int64_t kWidths[kLayers + 1] = {784, 128, 128, 128, 10};
static const float kLogit = 4.765625f;

static keel_array* filled(int32_t ndim, int64_t rows, int64_t columns, float value) {
  int64_t shape[2], i;
  keel_array* out = NULL;
  keel_tensor t;
  shape[0] = ndim == 1 ? columns : rows, shape[1] = columns;
  check(keel_array_new(context, KEEL_F32, shape, ndim, &out, &error));
  keel_array_tensor(out, &t);
  for (i = 0; i < (ndim == 1 ? 1 : rows) * columns; i++) ((float*)t.data)[i] = value;
  return out;
}
static void make_inputs(keel_array** in) {
  int k;
  in[0] = filled(2, kImages, kWidths[0], 1);
  for (k = 0; k < kLayers; k++) {
    in[1 + 2 * k] = filled(2, kWidths[k], kWidths[k + 1], k ? 1.0f / 128 : 1.0f / 1024);
    in[2 + 2 * k] = filled(1, 1, kWidths[k + 1], 1);
  }
}
static void release(keel_array** arrays, int n) {
  while (n-- > 0) keel_array_free(arrays[n]);
}

/* 4 matmul, 4 add, 3 relu; eager or traced, depending on its arrays */
static keel_array* model(keel_array* const* in) {
  keel_array *x = keel_array_retain(in[0]), *next;
  int k;
  for (k = 0; k < kLayers; k++) {
    next = apply("matmul", x, in[1 + 2 * k]), keel_array_free(x), x = next;
    next = apply("add", x, in[2 + 2 * k]), keel_array_free(x), x = next;
    if (k + 1 == kLayers) break;
    next = apply("relu", x, NULL), keel_array_free(x), x = next;
  }
  return x;
}
static keel_rc mlp_program(void* returns, keel_trace* t, const keel_leaf* l, uint32_t n, keel_error** err) {
  keel_array *in[kInputs], *y;
  keel_rc rc = KEEL_OK;
  uint32_t i;
  for (i = 0; i < n; i++) in[i] = l[i].array;
  y = model(in);
  if (returns) rc = keel_trace_result(t, "y", y, err);
  keel_array_free(y), ran++;
  return rc;
}

static keel_function* mlp_function(const char* name, int returns) {
  keel_function* out = NULL;
  static int yes;
  ran = 0;
  check(keel_function_new(context, name, device, NULL, 0, mlp_program, returns ? &yes : NULL, NULL, &out,
                          &error));
  return out;
}
static void leaves_of(keel_array** in, keel_leaf* leaves) {
  int i;
  memset(leaves, 0, kInputs * sizeof *leaves);
  for (i = 0; i < kInputs; i++) leaves[i].kind = KEEL_LEAF_ARRAY, leaves[i].array = in[i];
}
static uint32_t call(keel_function* f, keel_array** in, keel_array** out) {
  keel_leaf leaves[kInputs];
  uint32_t n = 0;
  leaves_of(in, leaves);
  check(keel_function_call(f, NULL, NULL, "", leaves, kInputs, out, 1, &n, &error));
  return n;
}
static int text_has(keel_text* text, const char* part) {
  int has = strstr(keel_text_data(text, NULL), part) != NULL;
  if (!has) fprintf(stderr, "%s\n", keel_text_data(text, NULL));
  keel_text_free(text);
  return has;
}
static int plan_has(keel_function* f, keel_array** in, const char* part) {
  keel_leaf leaves[kInputs];
  keel_module* module = NULL;
  keel_session* session = NULL;
  keel_plan* plan = NULL;
  keel_text* text = NULL;
  leaves_of(in, leaves);
  check(keel_function_module(f, "", leaves, kInputs, &module, NULL, &error));
  check(keel_session_new(module, device, NULL, 0, &session, &error));
  check(keel_plan_new(session, NULL, 0, NULL, 0, NULL, 0, &plan, &error));
  check(keel_plan_report(plan, NULL, 0, &text, &error));
  keel_plan_free(plan), keel_session_free(session), keel_module_free(module);
  return text_has(text, part);
}
static int is_right(keel_array* y) {
  keel_tensor t;
  int64_t i;
  int right;
  y = on_host(keel_array_retain(y));
  keel_array_tensor(y, &t);
  right = t.ndim == 2 && t.shape[0] == kImages && t.shape[1] == 10;
  for (i = 0; right && i < kImages * 10; i++) right = ((float*)t.data)[i] == kLogit;
  keel_array_free(y);
  return right;
}

/* ---- the examples */
/* mlp_eager: every op is computed when it is applied */
static void K8(void) {
  keel_array *in[kInputs], *y;
  make_inputs(in);
  y = model(in);
  EXPECT(is_right(y));
  keel_array_free(y), release(in, kInputs);
}
/* mlp_pruned returns nothing, so nothing is computed; mlp_returned returns the result */
static void K9(void) {
  keel_function *pruned = mlp_function("mlp_pruned", 0), *returned = mlp_function("mlp_returned", 1);
  keel_array *in[kInputs], *y = NULL;
  make_inputs(in);
  EXPECT(call(pruned, in, &y) == 0 && y == NULL);
  EXPECT(plan_has(pruned, in, "\"nodes\":11,\"needed_nodes\":0"));
  EXPECT(call(returned, in, &y) == 1 && is_right(y));
  EXPECT(plan_has(returned, in, "\"nodes\":11,\"needed_nodes\":11"));
  keel_array_free(y), release(in, kInputs);
  keel_function_free(pruned), keel_function_free(returned);
}
/* reported build cost; later calls do not build */
static void T21(void) {
  keel_function* f = mlp_function("mlp", 1);
  keel_array *in[kInputs], *y = NULL;
  keel_text* text = NULL;
  int i;
  make_inputs(in);
  for (i = 0; i < 3; i++) {
    EXPECT(call(f, in, &y) == 1 && is_right(y) && ran == 1);
    keel_array_free(y);
  }
  check(keel_function_report(f, "report", &text, &error));
  EXPECT(strstr(keel_text_data(text, NULL), "\"trace_ms\":") &&
         strstr(keel_text_data(text, NULL), "\"plan_ms\":"));
  EXPECT(text_has(text, "\"calls\":3"));
  release(in, kInputs), keel_function_free(f);
}

static const struct row kRows[] = {{"K8", K8}, {"K9", K9}, {"T21", T21}};

int main(int argc, char** argv) { return run_row(argc, argv, kRows, sizeof kRows / sizeof kRows[0]); }
