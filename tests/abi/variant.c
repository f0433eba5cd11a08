/* variant.c: a plugin whose note may contain version numbers other than those of this tree's headers.
 *
 * Built once per variant (CMakeLists.txt). Its constructor writes a line to the file named by the
 * environment variable KEEL_TEST_TRACE, so that a test detects whether any of its code ran.
 */
#include "abi/keel_base.h"
#ifdef TEST_MAJOR
#undef KEEL_ABI_MAJOR
#define KEEL_ABI_MAJOR TEST_MAJOR
#endif
#ifdef TEST_MINOR
#undef KEEL_ABI_MINOR
#define KEEL_ABI_MINOR TEST_MINOR
#endif
#ifdef TEST_DRAFT
#undef KEEL_ABI_DRAFT
#define KEEL_ABI_DRAFT TEST_DRAFT
#endif
#include <stdio.h>
#include <stdlib.h>

#include "abi/keel_plugin.h"

#ifdef TEST_NEEDS
int keel_absent(void);
#else
static int keel_absent(void) { return 0; }
#endif

__attribute__((constructor)) static void leave_a_trace(void) {
  const char* path = getenv("KEEL_TEST_TRACE");
  FILE* file = path ? fopen(path, "a") : NULL;
  if (!file) return;
  fprintf(file, VARIANT " %d\n", keel_absent());
  fclose(file);
}

static const keel_plugin plugin = {KEEL_PLUGIN_HEADER, .name = VARIANT, .version = "1.0",
                                   .about = "a variant"};
#ifdef TEST_NO_NOTE
KEEL_EXPORT const keel_plugin* keel_plugin_v0(void);
const keel_plugin* keel_plugin_v0(void) { return &plugin; }
#else
KEEL_PLUGIN(plugin)
#endif
