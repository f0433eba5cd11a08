/* apply.c: a C program outside the source tree. Applies an op with one or two operands to [1, 2, 3, 4] on
 * a device and prints the result.
 * Usage: apply DEVICE OP N_OPERANDS
 */
#include <keel/keel.h>
#include <stdio.h>
#include <stdlib.h>

static void check(keel_rc code, keel_error* error) {
  if (code == KEEL_OK) return;
  fprintf(stderr, "apply: %s (%s)\n", keel_error_text(error, KEEL_ERROR_MESSAGE),
          keel_error_text(error, KEEL_ERROR_HINT));
  exit(1);
}

int main(int argc, char** argv) {
  keel_error* error = NULL;
  keel_context* context = NULL;
  keel_op* op = NULL;
  float numbers[4] = {1, 2, 3, 4};
  int64_t shape[1] = {4};
  keel_tensor view = {0};
  keel_array *in[2], *out = NULL;
  int i;
  if (argc != 4) return 2;
  check(keel_context_new(NULL, 0, &context, &error), error);
  check(keel_plugin_load(context, NULL, &error), error);
  check(keel_op_new(context, argv[1], argv[2], 0, NULL, NULL, 0, &op, &error), error);
  view.data = numbers;
  view.device.type = 1;
  view.ndim = 1;
  view.dtype.code = 2;
  view.dtype.bits = 32;
  view.dtype.lanes = 1;
  view.shape = shape;
  for (i = 0; i < 2; i++) check(keel_array_from_tensor(context, &view, NULL, NULL, &in[i], &error), error);
  check(keel_apply(op, in, (uint32_t)atoi(argv[3]), &out, 1, &error), error);
  keel_array_tensor(out, &view);
  for (i = 0; i < 4; i++) printf("%g ", ((float*)((char*)view.data + view.byte_offset))[i]);
  printf("\n");
  for (i = 0; i < 2; i++) keel_array_free(in[i]);
  keel_array_free(out);
  keel_op_free(op);
  keel_context_free(context);
  return 0;
}
