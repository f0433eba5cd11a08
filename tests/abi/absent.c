/* absent.c: the missing library of the variant missing-library: built into a folder that the dynamic
 * linker does not search. */
__attribute__((visibility("default"))) int keel_absent(void);
int keel_absent(void) { return 1; }
