/* run.c: runs a Keel file on raw inputs and prints its only result, an f32 tensor.
 *   run MODEL DEVICE INPUT...    INPUT: f32:2x3:data.bin (dtype, dims, file), in the entry's order */
#include <keel/keel.h>
#include <stdio.h>
#include <stdlib.h>

static keel_error* e;
static void check(keel_rc rc, const char* what) {
  if (rc != KEEL_OK)
    exit(fprintf(stderr, "%s: %s\n", what, e ? keel_error_text(e, KEEL_ERROR_MESSAGE) : "bad input") > 0);
}
static keel_array* read_input(keel_context* context, char* spec) {
  char* at = spec + 1;
  uint32_t dtype = KEEL_DT(*spec == 'f' ? 2 : *spec == 'u', strtol(at, &at, 10));
  keel_tensor t = {0};
  int64_t shape[KEEL_MAX_RANK], count = 1;
  for (; *at && t.ndim < KEEL_MAX_RANK && (t.ndim == 0 || *at == 'x'); count *= shape[t.ndim++])
    shape[t.ndim] = strtoll(at + 1, &at, 10);
  keel_array* array;
  check(keel_array_new(context, dtype, shape, t.ndim, &array, &e), spec);
  keel_array_tensor(array, &t);
  FILE* file = *at ? fopen(at + 1, "rb") : NULL;
  if (!file || fread(t.data, t.dtype.bits / 8, count, file) != (size_t)count) check(KEEL_INVALID, spec);
  return fclose(file), array;
}
int main(int argc, char** argv) {
  keel_context* context;
  keel_module* module;
  keel_session* session;
  keel_array *in[8] = {0}, *out = NULL;
  if (argc < 3 || argc > 11) return fputs("usage: run MODEL DEVICE INPUT...\n", stderr), 2;
  check(keel_context_new(NULL, 0, &context, &e) || keel_plugin_load(context, NULL, &e), "keel");
  check(keel_module_load(context, argv[1], &module, &e), argv[1]);
  check(keel_session_new(module, argv[2], NULL, 0, &session, &e), argv[2]);
  for (int i = 3; i < argc; i++) in[i - 3] = read_input(context, argv[i]);
  check(keel_session_run(session, NULL, in, (uint32_t)argc - 3, NULL, &out, 1, NULL, 0, &e), "run");
  keel_tensor t;
  keel_array_tensor(out, &t);
  int64_t count = 1;
  for (int32_t d = 0; d < t.ndim; d++) count *= t.shape[d];
  for (int64_t i = 0; i < count; i++) printf("%.9g%c", ((float*)t.data)[i], i + 1 < count ? ' ' : '\n');
  for (int i = 0; i < 8; i++) keel_array_free(in[i]);
  keel_array_free(out), keel_session_free(session), keel_module_free(module), keel_context_free(context);
}
