/* keel_variable.h: variables, and checkpoints of them. Part of keel.h.
 *
 * A variable is state of a fixed dtype and shape that outlives runs; eager code, functions, sessions and
 * threads share it. Its value is in host memory. In a program that may be traced, `within` is the trace that
 * the program was given: reads and writes become nodes of the graph, in program order, for a variable of the
 * module. NULL, or the trace of a program that runs eagerly: they happen at once. */
#ifndef KEEL_VARIABLE_H
#define KEEL_VARIABLE_H
#include "keel_handle.h"
#ifdef __cplusplus
extern "C" {
#endif

/* With a copy of the value of `initial`. */
KEEL_API keel_rc keel_variable_new(keel_context* context, keel_array* initial, keel_variable** out,
                                   keel_error** err);
/* For programs that may be traced. Options:
 *   "name"       in modules and files; a number is appended to a name that is taken; default: v0, v1 ...
 *   "trainable"  "1" (default), or "0": tapes do not watch it by themselves
 * While a function is traced, variables can be made in its first trace only. `initial` may be symbolic if it
 * depends on constants and shapes only; its value is computed at once. */
KEEL_API keel_rc keel_variable_make(KEEL_NULLABLE keel_trace* within, keel_context* context,
                                    keel_array* initial, const keel_kv* options KEEL_COUNT(n_options),
                                    uint32_t n_options, keel_variable** out, keel_error** err);
KEEL_API const char* keel_variable_name(const keel_variable* variable); /* "" if it has none */
KEEL_API int32_t keel_variable_trainable(const keel_variable* variable);
KEEL_API uint64_t keel_variable_id(const keel_variable* variable); /* equal for all handles of one variable */
KEEL_API keel_variable* keel_variable_retain(keel_variable* variable);
KEEL_API void keel_variable_release(keel_variable* variable);

/* The current value, without a copy: later writes do not change the array; do not write to it. */
KEEL_API keel_rc keel_variable_read(keel_variable* variable, keel_array** out, keel_error** err);
/* The value, of the variable's dtype and shape, is copied. Readers see the old value or the new one. */
KEEL_API keel_rc keel_variable_assign(keel_variable* variable, keel_array* value, keel_error** err);
/* sign 1: adds, -1: subtracts, atomically. */
KEEL_API keel_rc keel_variable_add(keel_variable* variable, keel_array* value, int32_t sign,
                                   keel_error** err);
/* In a program that may be traced. tape: records the read. how: "assign", "assign_add", "assign_sub". */
KEEL_API keel_rc keel_trace_read(KEEL_NULLABLE keel_trace* within, KEEL_NULLABLE keel_tape* tape,
                                 keel_variable* variable, keel_array** out, keel_error** err);
KEEL_API keel_rc keel_trace_write(KEEL_NULLABLE keel_trace* within, keel_variable* variable, const char* how,
                                  keel_array* value, keel_error** err);

/* A checkpoint is a file of variables by name, with a checksum for each. Saving is atomic. Loading gives each
 * variable its value in the file, or fails and changes none; other variables in the file are ignored. */
KEEL_API keel_rc keel_checkpoint_save(keel_context* context, const char* path,
                                      const char* const* names KEEL_COUNT(n),
                                      keel_variable* const* variables KEEL_COUNT(n), uint32_t n,
                                      keel_error** err);
KEEL_API keel_rc keel_checkpoint_load(keel_context* context, const char* path,
                                      const char* const* names KEEL_COUNT(n),
                                      keel_variable* const* variables KEEL_COUNT(n), uint32_t n,
                                      keel_error** err);

#ifdef __cplusplus
}
#endif
#endif
