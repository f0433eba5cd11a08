/* loop.c: a loop with a data-dependent number of iterations, in C: 3n + 1 or n / 2 until n is 1.
 *   loop N    traces the program into one graph, runs it on N, prints the number of steps and the graph */
#include <keel/keel.h>
#include <stdio.h>
#include <stdlib.h>

static keel_context* context;
static const char* device;
static keel_error* e;
static void check(keel_rc rc) {
  if (rc != KEEL_OK)
    exit(fprintf(stderr, "%s\n", e ? keel_error_text(e, KEEL_ERROR_MESSAGE) : "bad input") > 0);
}
static keel_array* number(int32_t v) {
  keel_array* a;
  keel_tensor t;
  check(keel_array_new(context, KEEL_I32, NULL, 0, &a, &e));
  keel_array_tensor(a, &t);
  *(int32_t*)t.data = v;
  return a;
}
static keel_array* apply(const char* name, keel_array* a,
                         int32_t b) { /* arrays live until the process ends, for brevity */
  keel_op* op;
  keel_array *in[2] = {a, number(b)}, *out = NULL;
  check(keel_op_new(context, device, name, 0, NULL, NULL, 0, &op, &e));
  check(keel_apply(op, in, 2, &out, 1, &e));
  keel_op_free(op);
  return out;
}

/* Blocks: each is called once and written as a body of a node; in: the carried values, arg: its captures. */
static keel_rc more(void* arg, keel_trace* t, keel_array* const* in, uint32_t n, keel_error** err) {
  return (void)arg, (void)n, keel_trace_result(t, NULL, apply("greater", in[0], 1), err);
}
static keel_rc half(void* at, keel_trace* t, keel_array* const* in, uint32_t n, keel_error** err) {
  return (void)in, (void)n, keel_trace_result(t, NULL, apply("div", at, 2), err);
}
static keel_rc triple(void* at, keel_trace* t, keel_array* const* in, uint32_t n, keel_error** err) {
  return (void)in, (void)n, keel_trace_result(t, NULL, apply("add", apply("mul", at, 3), 1), err);
}
static keel_rc step(void* arg, keel_trace* t, keel_array* const* in, uint32_t n, keel_error** err) {
  keel_array *even = apply("equal", apply("mod", in[0], 2), 0), *next = NULL;
  keel_rc rc = keel_trace_cond(t, even, half, in[0], triple, in[0], &next, 1, &n, err);
  if (rc == KEEL_OK) rc = keel_trace_result(t, NULL, next, err);
  return (void)arg, rc == KEEL_OK ? keel_trace_result(t, NULL, apply("add", in[1], 1), err) : rc;
}
static keel_rc program(void* arg, keel_trace* t, const keel_leaf* x, uint32_t n, keel_error** err) {
  keel_array *carried[2] = {x[0].array, number(0)}, *out[2];
  keel_rc rc = keel_trace_while(t, carried, 2, more, NULL, step, NULL, out, err);
  return (void)arg, (void)n, rc == KEEL_OK ? keel_trace_result(t, "steps", out[1], err) : rc;
}

int main(int argc, char** argv) {
  keel_function* f;
  keel_module* module;
  keel_text* text;
  keel_array* out;
  keel_tensor t;
  uint32_t n;
  if (argc != 2) return fputs("usage: loop N\n", stderr), 2;
  check(keel_context_new(NULL, 0, &context, &e) || keel_plugin_load(context, NULL, &e));
  device = keel_device_name(context, 0);
  check(device ? KEEL_OK : KEEL_NOT_FOUND);
  check(keel_function_new(context, "collatz", device, NULL, 0, program, NULL, NULL, &f, &e));
  keel_leaf x = {KEEL_LEAF_ARRAY, 0, "n", number(atoi(argv[1])), 0, 0, NULL};
  check(keel_function_call(f, NULL, NULL, "", &x, 1, &out, 1, &n, &e));
  keel_array_tensor(out, &t);
  printf("%d\n", *(int32_t*)t.data);
  check(keel_function_module(f, "", &x, 1, &module, NULL, &e) ||
        keel_module_report(module, "text", &text, &e));
  return fputs(keel_text_data(text, NULL), stdout) < 0;
}
