/* rows_sessions.c: examples about graphs, names, sessions and signatures in C99; see README.md and
 * rows_programs.h. rows_sessions_c ROW */
#include "rows_programs.h"

static const float kTwo[2] = {1, 2};

/* ---- sessions: text, the session of its only entry, one run */
static keel_module* parsed(const char* text) {
  keel_module* module = NULL;
  check(keel_module_parse(context, text, strlen(text), &module, &error));
  return module;
}
static keel_session* session_of(keel_module* module) {
  keel_session* session = NULL;
  check(keel_session_new(module, device, NULL, 0, &session, &error));
  return session;
}
static keel_rc run1(keel_session* s, const char* feed, keel_array* x, const char* fetch, keel_array** out,
                    keel_error** err) {
  return keel_session_run(s, &feed, &x, x ? 1 : 0, &fetch, out, 1, NULL, 0, err);
}
/* A graph of two constants and their sum, "c"; `there` (may be NULL): the device of the sum. */
static keel_graph* three_plus_five(keel_module** module, const char* there) {
  keel_graph* g = NULL;
  keel_value in[2], c;
  keel_array *a = i32(3), *b = i32(5);
  check(keel_module_new(context, module, &error));
  check(keel_graph_new(*module, "g", NULL, &g, &error));
  check(keel_graph_constant(g, "const", a, &in[0], &error));
  check(keel_graph_constant(g, "b", b, &in[1], &error));
  check(keel_graph_device(g, there, &error));
  check(keel_graph_node(g, "c", "add", 0, NULL, NULL, 0, in, 2, &c, 1, &error));
  keel_array_free(a), keel_array_free(b);
  return g;
}
static void K1(void) {
  keel_module* module = NULL;
  keel_array* c = NULL;
  keel_session* session;
  three_plus_five(&module, NULL);
  session = session_of(module);
  check(run1(session, NULL, NULL, "c", &c, &error));
  EXPECT(is_i32(c, 8));
  keel_session_free(session), keel_module_free(module);
}
static void Z2(void) { /* with an op on a device; InteractiveSession is part of the SDK, a cluster needs a
                        * plugin */
  keel_module* module = NULL;
  keel_array* c = NULL;
  keel_session* session;
  K1();
  three_plus_five(&module, "reference");
  session = session_of(module);
  check(run1(session, NULL, NULL, "c", &c, &error));
  EXPECT(is_i32(c, 8));
  keel_session_free(session), keel_module_free(module);
}
static void K4(void) {
  keel_module* module = NULL;
  keel_graph* g = three_plus_five(&module, NULL);
  keel_value by_name = 0, by_place = 1;
  uint32_t node = 0;
  check(keel_graph_find(g, "const", &by_name, NULL, &error));
  check(keel_graph_find(g, "const:0", &by_place, NULL, &error));
  EXPECT(by_name == by_place);
  check(keel_graph_find(g, "const", NULL, &node, &error));
  EXPECT(node == KEEL_NO_VALUE); /* a constant: no node computes it */
  check(keel_graph_find(g, "c:0", NULL, &node, &error));
  EXPECT(node == 0);
  keel_module_free(module);
}
static void V4(void) {
  keel_module* module = NULL;
  keel_graph* g = three_plus_five(&module, NULL);
  uint32_t nodes = 0, values = 0, n_in = 0, n_out = 0, of = 7;
  const keel_value *in = NULL, *out = NULL;
  const char* op = NULL;
  keel_text *node = NULL, *value = NULL;
  check(keel_graph_counts(g, &nodes, &values, NULL, NULL, &error));
  EXPECT(nodes == 1 && values == 3);
  check(keel_graph_node_at(g, 0, &node, &op, &in, &n_in, &out, &n_out, &error));
  EXPECT(strcmp(keel_text_data(node, NULL), "c") == 0 && strcmp(op, "add") == 0);
  EXPECT(n_in == 2 && in[0] == 0 && in[1] == 1 && n_out == 1 && out[0] == 2);
  check(keel_graph_value_at(g, 2, &value, &of, NULL, NULL, NULL, &error));
  EXPECT(strcmp(keel_text_data(value, NULL), "c") == 0 && of == 0);
  keel_text_free(node), keel_text_free(value), keel_module_free(module);
}
static const char* const kSquare =
    "keel 1\nfn @f(x: f32[2, 2]) {\n  y = matmul(x, x)\n  return y\n}\nentry f = @f (x) -> (y)\n";
static void Z3(void) {
  keel_module* module = parsed(kSquare);
  keel_session* session = session_of(module);
  keel_array* y = NULL;
  keel_error* e = NULL;
  EXPECT(run1(session, NULL, NULL, "y", &y, &e) == KEEL_INVALID);
  EXPECT(strcmp(keel_error_text(e, KEEL_ERROR_MESSAGE),
                "You must feed a value for parameter \"x\", which is f32[2, 2]") == 0);
  keel_error_free(e), keel_session_free(session), keel_module_free(module);
}
static void Z4(void) {
  const int64_t two[2] = {2, 2};
  const double half[4] = {0.5, 0.5, 0.5, 0.5};
  const float wanted[4] = {0.5f, 0.5f, 0.5f, 0.5f}, nine[9] = {0};
  keel_module* module = parsed(kSquare);
  keel_session* session = session_of(module);
  keel_array *x = NULL, *wide = f32s(2, 3, 3, nine), *y = NULL;
  keel_error* e = NULL;
  keel_tensor t;
  check(keel_array_new(context, KEEL_F64, two, 2, &x, &error));
  keel_array_tensor(x, &t);
  memcpy(t.data, half, sizeof half);
  check(run1(session, "x", x, "y", &y, &error));
  EXPECT(is(y, KEEL_F32, 4, wanted));
  EXPECT(run1(session, "x", wide, "y", &y, &e) == KEEL_INVALID);
  EXPECT(strstr(keel_error_text(e, KEEL_ERROR_MESSAGE),
                "Cannot feed value of shape [3, 3] for \"x\", which is f32[2, 2]"));
  keel_error_free(e), keel_array_free(x), keel_array_free(wide);
  keel_session_free(session), keel_module_free(module);
}
static keel_rc asks_for_a_placeholder(void* arg, keel_trace* t, const keel_leaf* l, uint32_t n,
                                      keel_error** err) {
  keel_array* x = NULL;
  (void)arg, (void)l, (void)n;
  return keel_trace_param(t, "x", KEEL_F32, NULL, 0, &x, err);
}
static void Z16(void) {
  keel_function* f = function("f", asks_for_a_placeholder, NULL);
  keel_error* e = NULL;
  keel_array* out = NULL;
  uint32_t n = 0;
  keel_run_eagerly(NULL, f, 1);
  EXPECT(keel_function_call(f, NULL, NULL, "", NULL, 0, &out, 1, &n, &e) == KEEL_PRECONDITION);
  EXPECT(strcmp(keel_error_text(e, KEEL_ERROR_MESSAGE),
                "keel_trace_param() is not compatible with eager execution.") == 0);
  keel_error_free(e), keel_function_free(f);
}
static void Z17(void) {
  const char* text =
      "keel 1\nvar w: f32[2] = [0.0, 0.0]\nfn @f() {\n  y = read(w)\n  return y\n}\nentry f = @f () -> (y)\n";
  const char* name = "w";
  char path[64];
  keel_module* module = parsed(text);
  keel_session* session = session_of(module);
  keel_array *value = f32s(1, 2, 1, kTwo), *y = NULL;
  keel_variable *eager = NULL, *there = NULL;
  snprintf(path, sizeof path, "rows_c_Z17_%s.keel", device);
  check(keel_variable_new(context, NULL, value, NULL, 0, &eager, &error));
  check(keel_checkpoint_save(context, path, &name, &eager, 1, &error));
  check(keel_module_variable(module, name, NULL, NULL, &there, &error));
  check(keel_checkpoint_load(context, path, &name, &there, 1, &error));
  remove(path);
  check(run1(session, NULL, NULL, "y", &y, &error));
  EXPECT(is(y, KEEL_F32, 2, kTwo));
  keel_array_free(value), keel_variable_free(eager), keel_variable_free(there);
  keel_session_free(session), keel_module_free(module);
}
static int text_is(keel_text* text, const char* wanted) {
  int same = strcmp(keel_text_data(text, NULL), wanted) == 0;
  if (!same) fprintf(stderr, "got:\n%s", keel_text_data(text, NULL));
  keel_text_free(text);
  return same;
}
static keel_rc relu_of_list(void* arg, keel_trace* t, const keel_leaf* l, uint32_t n, keel_error** err) {
  float values[2];
  keel_leaf array;
  keel_rc rc;
  if (l[0].kind == KEEL_LEAF_ARRAY) return relu(arg, t, l, n, err);
  values[0] = (float)l[0].i, values[1] = (float)l[1].i;
  array = leaf(f32s(1, 2, 1, values));
  rc = relu(arg, t, &array, 1, err);
  keel_array_free(array.array);
  return rc;
}
static void T11(void) {
  const float three[2] = {3, -3};
  keel_function* f = function("my_relu", relu_of_list, NULL);
  keel_leaf l[2];
  keel_array *x = f32(5.5f), *z = f32s(1, 2, 1, three), *out = NULL;
  keel_text* text = NULL;
  uint32_t n = 0;
  l[0] = leaf(x), l[0].name = "x";
  check(keel_function_call(f, NULL, NULL, "", l, 1, &out, 1, &n, &error));
  keel_array_free(out);
  l[0] = number(1), l[0].name = "x[0]", l[1] = number(-1), l[1].name = "x[1]";
  check(keel_function_call(f, NULL, NULL, "v", l, 2, &out, 1, &n, &error));
  keel_array_free(out);
  l[0] = leaf(z), l[0].name = "x";
  check(keel_function_call(f, NULL, NULL, "", l, 1, &out, 1, &n, &error));
  keel_array_free(out);
  check(keel_function_report(f, "signatures", &text, &error));
  EXPECT(text_is(
      text,
      "my_relu(x)\n  Args:\n    x: float32 Tensor, shape=()\n  Returns:\n    float32 Tensor, shape=()\n\n"
      "my_relu(x=[1, -1])\n  Returns:\n    float32 Tensor, shape=(2,)\n\n"
      "my_relu(x)\n  Args:\n    x: float32 Tensor, shape=(2,)\n  Returns:\n"
      "    float32 Tensor, shape=(2,)\n"));
  keel_array_free(x), keel_array_free(z), keel_function_free(f);
}
static void T19(void) {
  keel_function* f = function("f", square_program, NULL);
  int i;
  for (i = 0; i < 2; i++) keel_array_free(call2(f, number(i), number(0), 1));
  EXPECT(report_has(f, "\"reason\":\"first call\""));
  EXPECT(report_has(f, "\"reason\":\"argument 0 was i64 0, now i64 1\""));
  keel_function_free(f);
}
/* Two independent loops; with foldable and duplicate nodes. */
static const char* const kLoops =
    "keel 1\nfn @f(x: f32[1000]) {\n  z = reduce_sum(x)\n  k = f32(2.0) * f32(3.0)\n"
    "  a = scan(z, x){carry=1}\n    body(s, v) { t = tanh(s + v)\n      yield t }\n"
    "  y = reduce_sum(x)\n  b = scan(y, x){carry=1, reverse=true}\n    body(s, v) { t = sin(s + v)\n      "
    "yield t }\n"
    "  return a * k, b\n}\nentry f = @f (x) -> (c, d)\n";
static keel_array* thousand(void) {
  static float numbers[1000];
  int i;
  for (i = 0; i < 1000; i++) numbers[i] = (float)(i % 7) - 3;
  return f32s(1, 1000, 0, numbers);
}
static keel_plan* plan_with(keel_module* module, const char* name, const char* value) {
  const keel_kv options[] = {{"threads", "2"}, {name, value}};
  keel_session* session = NULL;
  keel_plan* plan = NULL;
  check(keel_session_new(module, device, options, 2, &session, &error));
  check(keel_plan_new(session, NULL, 0, NULL, 0, NULL, 0, &plan, &error));
  keel_session_free(session);
  return plan;
}
static int plan_has(keel_plan* plan, const char* part) {
  keel_text* text = NULL;
  int found;
  check(keel_plan_report(plan, NULL, 0, &text, &error));
  found = strstr(keel_text_data(text, NULL), part) != NULL;
  keel_text_free(text);
  return found;
}
static int32_t count_lanes(void* arg, const keel_event* e) {
  if (e->end_ns >= e->begin_ns && e->lane < 2) ++*(int*)arg;
  return 0;
}
/* A node names its device; the others are on the session's. */
static void Z11(void) {
  const char* text =
      "keel 1\nfn @f(x: f32[]) {\n  y = add(x, 1.0) @\"reference:0\"\n  return y * 2.0\n}\n"
      "entry f = @f (x) -> (z)\n";
  const char* nowhere = "keel 1\nfn @f(x: f32[]) {\n  return neg(x) @\"gpu:7\"\n}\nentry f = @f (x) -> (z)\n";
  keel_module* module = parsed(text);
  keel_plan* plan = plan_with(module, "level", "2");
  keel_array *x = f32(1), *y;
  keel_text* shown = NULL;
  keel_session* session = NULL;
  check(keel_module_report(module, "text", &shown, &error));
  EXPECT(strstr(keel_text_data(shown, NULL), "@\"reference:0\"") != NULL);
  check(keel_plan_run(plan, &x, 1, &y, 1, &error));
  EXPECT(is_f32(y, 4));
  keel_text_free(shown), keel_plan_free(plan), keel_module_free(module), keel_array_free(x);
  module = parsed(nowhere), plan = NULL;
  check(keel_session_new(module, device, NULL, 0, &session, &error));
  EXPECT(keel_plan_new(session, NULL, 0, NULL, 0, NULL, 0, &plan, &error) == KEEL_NOT_FOUND);
  EXPECT(strstr(keel_error_text(error, KEEL_ERROR_MESSAGE), "no device \"gpu:7\"") != NULL);
  keel_error_free(error), error = NULL;
  keel_session_free(session), keel_module_free(module);
}
static void V7(void) {
  keel_module* module = parsed(kLoops);
  keel_plan *plan = plan_with(module, "profile", "1"), *in_turn = plan_with(module, "lanes", "off");
  keel_array *x = thousand(), *out[2], *wanted[2];
  keel_tensor t;
  int launches = 0, i;
  EXPECT(plan_has(plan, "\"lanes\":[[") == (strncmp(device, "cpu", 3) == 0)); /* the reference device has
                                                                               * no lanes */
  EXPECT(plan_has(in_turn, "\"lanes\":[]"));
  check(keel_plan_run_observed(plan, &x, 1, out, 2, count_lanes, &launches, &error));
  check(keel_plan_run(in_turn, &x, 1, wanted, 2, &error));
  EXPECT(launches >= 4);
  for (i = 0; i < 2; i++) {
    wanted[i] = on_host(wanted[i]);
    keel_array_tensor(wanted[i], &t);
    EXPECT(is_f32(out[i], *(const float*)t.data));
    keel_array_free(wanted[i]);
  }
  keel_array_free(x), keel_plan_free(plan), keel_plan_free(in_turn), keel_module_free(module);
}
static void T3(void) { /* folded, deduplicated, and concurrent */
  keel_module* module = parsed(kLoops);
  keel_plan* plan = plan_with(module, "level", "2");
  EXPECT(!plan_has(plan, "\"node\":\"k\"") && !plan_has(plan, "\"node\":\"y\""));
  EXPECT(plan_has(plan, "\"lanes\":[[") == (strncmp(device, "cpu", 3) == 0));
  keel_plan_free(plan), keel_module_free(module);
}
static const struct row kRows[] = {{"K1", K1}, {"Z2", Z2},   {"K4", K4},   {"V4", V4},   {"Z3", Z3},
                                   {"Z4", Z4}, {"Z16", Z16}, {"Z17", Z17}, {"T11", T11}, {"T19", T19},
                                   {"V7", V7}, {"Z11", Z11}, {"T3", T3}};

int main(int argc, char** argv) { return run_row(argc, argv, kRows, sizeof kRows / sizeof kRows[0]); }
