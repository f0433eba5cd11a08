/* catalogue.c: prints the catalogue as JSON, the input of tools/gen_ops.py, which generates the SDKs' op
 * functions during the build. Uses the C ABI only, since the SDKs are compiled later, and loads no plugin. */
#include <stdio.h>

#include "abi/keel.h"

int main(void) {
  keel_context* context = NULL;
  keel_text* report = NULL;
  keel_error* error = NULL;
  if (keel_context_new(NULL, 0, &context, &error) == KEEL_OK)
    keel_context_report(context, "ops", &report, &error);
  if (!report) {
    fprintf(stderr, "catalogue: %s\n", error ? keel_error_text(error, KEEL_ERROR_MESSAGE) : "no report");
    return 1;
  }
  const int failed = puts(keel_text_data(report, NULL)) < 0 || fflush(stdout) != 0;
  keel_text_free(report);
  keel_context_free(context);
  return failed;
}
