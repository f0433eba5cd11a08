/* absent.c: the library that the variant missing-library needs and nobody finds. */
__attribute__((visibility("default"))) int keel_absent(void);
int keel_absent(void) { return 1; }
