/* keel_variable.h: variables, and checkpoints of them. Part of keel.h.
 *
 * A variable is state of a fixed dtype and shape that outlives runs; eager code, functions, sessions and
 * threads share it. Its value is in the memory where it was computed last: of the host, or of a device with
 * memory of its own. In a program that may be traced, `within` is the trace of the program: reads and writes
 * become nodes of the graph, in program order, and the variable becomes one of the module's. NULL, or the
 * trace of a program that runs eagerly: they happen at once. */
#ifndef KEEL_VARIABLE_H
#define KEEL_VARIABLE_H
#include "keel_handle.h"
#ifdef __cplusplus
extern "C" {
#endif

/* With a copy of the value of `initial`, in the same memory. Options:
 *   "name"       in modules and files; a number is appended to a name that is taken; default: none, and
 *                v0, v1 ... in modules
 *   "trainable"  "1" (default), or "0": tapes do not watch it automatically
 * While a function is traced, variables can be made in its first trace only. `initial` may be symbolic if it
 * depends on constants and shapes only; its value is computed at once. */
KEEL_API keel_rc keel_variable_new(keel_context* context, KEEL_NULLABLE keel_trace* within,
                                   keel_array* initial, const keel_kv* options KEEL_COUNT(n_options),
                                   uint32_t n_options, keel_variable** out, keel_error** err);
/* The current value, without a copy: later writes do not change the array; do not write to it. tape: records
 * the read. A write of a run that fails later is taken back once its error was returned to the program: the
 * next read gives the value before that write. */
KEEL_API keel_rc keel_variable_read(keel_variable* variable, KEEL_NULLABLE keel_trace* within,
                                    KEEL_NULLABLE keel_tape* tape, keel_array** out, keel_error** err);
/* how: "assign", "assign_add", "assign_sub", each atomic: readers see the old value or the new one. The
 * value, of the variable's dtype and shape, is copied. */
KEEL_API keel_rc keel_variable_write(keel_variable* variable, KEEL_NULLABLE keel_trace* within,
                                     const char* how, keel_array* value, keel_error** err);
/* Moves the value, at once, also while a function is traced. device: as of keel_array_to. Writes of other
 * threads are kept. */
KEEL_API keel_rc keel_variable_to(keel_variable* variable, KEEL_NULLABLE const char* device,
                                  keel_error** err);
/* name: "" if it has none; valid as long as the variable. id: equal for all handles of one variable. */
KEEL_API void keel_variable_info(const keel_variable* variable, KEEL_NULLABLE KEEL_BORROWED const char** name,
                                 KEEL_NULLABLE int32_t* trainable, KEEL_NULLABLE uint64_t* id);
/* Adds a reference; returns the same variable. */
KEEL_API keel_variable* keel_variable_retain(keel_variable* variable);
KEEL_API void keel_variable_free(keel_variable* variable); /* drops a reference */

/* ---- checkpoints: files of variables by name, with a checksum for each */
/* Atomic: a file of that name is replaced by the whole new file, or stays. KEEL_EXISTS: a name is there
 * twice. */
KEEL_API keel_rc keel_checkpoint_save(keel_context* context, const char* path,
                                      const char* const* names KEEL_COUNT(n),
                                      keel_variable* const* variables KEEL_COUNT(n), uint32_t n,
                                      keel_error** err);
/* Assigns each variable its value in the file, or fails and changes none; other variables in the file are
 * ignored. */
KEEL_API keel_rc keel_checkpoint_load(keel_context* context, const char* path,
                                      const char* const* names KEEL_COUNT(n),
                                      keel_variable* const* variables KEEL_COUNT(n), uint32_t n,
                                      keel_error** err);

#ifdef __cplusplus
}
#endif
#endif
