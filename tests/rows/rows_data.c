/* rows_data.c: the examples of devices (Z13) and of files that stay readable (V14), in C. */
#include "rows_programs.h"

/* Data are created on the host; there is one kind of array, on any device. */
static void Z13(void) {
  const int32_t one[2] = {1, 2}, two[2] = {2, 4};
  keel_array *x = i32s(1, 2, 1, one), *there = NULL, *y, *back = NULL;
  const char* home = memory_of_device();
  check(keel_array_to(context, x, device, &there, &error));
  EXPECT(strcmp(keel_array_device(x), "") == 0 && strcmp(keel_array_device(there), home) == 0);
  y = apply("add", there, there);
  EXPECT(strcmp(keel_array_device(y), home) == 0);
  check(keel_array_to(context, y, NULL, &back, &error));
  EXPECT(strcmp(keel_array_device(back), "") == 0 && is(back, KEEL_I32, 2, two));
  keel_array_free(x), keel_array_free(there), keel_array_free(y);
}
/* tests/data keeps files in their original form. */
static void V14(void) {
  const char* newer = "keel 2\n";
  keel_module* module = NULL;
  keel_session* session = NULL;
  keel_kv entry = {"entry", "mlp"};
  check(keel_module_load(context, KEEL_TEST_DATA "/digits.keel", &module, &error));
  check(keel_session_new(module, device, &entry, 1, &session, &error));
  keel_session_free(session), keel_module_free(module);
  module = NULL;
  EXPECT(keel_module_parse(context, newer, strlen(newer), &module, &error) == KEEL_INVALID && !module);
  EXPECT(strstr(keel_error_text(error, KEEL_ERROR_MESSAGE),
                "version 2 of the text form; this reader supports version 1") != NULL);
  keel_error_free(error), error = NULL;
}

static const struct row kRows[] = {{"V14", V14}, {"Z13", Z13}};

int main(int argc, char** argv) { return run_row(argc, argv, kRows, sizeof kRows / sizeof kRows[0]); }
