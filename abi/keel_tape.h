/* keel_tape.h: tapes: gradients of what a program computed. Part of keel.h.
 *
 * A tape records ops and calls with a watched operand; their results are watched then. It keeps elements that
 * a gradient reads, and no others. Reads of trainable variables are watched without being asked for; a call
 * that reads variables passes gradients on to them. In a trace the same values are watched, and gradients are
 * nodes of the trace. */
#ifndef KEEL_TAPE_H
#define KEEL_TAPE_H
#include "keel_function.h"
#include "keel_graph.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Options:
 *   "persistent"       "1": gradients may be taken more than once, and recording goes on; default: once,
 * which frees the record "watch_variables"  "0": variables are watched on request only; default "1" outer: a
 * tape that records what this one records, and the gradients that it takes (for gradients of gradients); it
 * must live longer. NULL: none. */
KEEL_API keel_rc keel_tape_new(keel_context* context, const char* device,
                               const keel_kv* options KEEL_COUNT(n_options), uint32_t n_options,
                               KEEL_NULLABLE keel_tape* outer, keel_tape** out, keel_error** err);
KEEL_API void keel_tape_free(keel_tape* tape);

/* ---- recording */
KEEL_API keel_rc keel_tape_watch(keel_tape* tape, keel_array* array, keel_error** err);
/* Reads from now on, whether the variable is trainable or not. */
KEEL_API keel_rc keel_tape_watch_variable(keel_tape* tape, keel_variable* variable, keel_error** err);
/* keel_apply and keel_function_call, recorded; within: the trace of a calling program. */
KEEL_API keel_rc keel_tape_apply(keel_tape* tape, keel_op* op,
                                 KEEL_HOLES keel_array* const* in KEEL_COUNT(n_in), uint32_t n_in,
                                 keel_array** out KEEL_COUNT(n_out), uint32_t n_out, keel_error** err);
KEEL_API keel_rc keel_tape_call(keel_tape* tape, keel_function* function, KEEL_NULLABLE const char* structure,
                                const keel_leaf* leaves KEEL_COUNT(n), uint32_t n,
                                keel_array** out KEEL_COUNT(room), uint32_t room, uint32_t* n_out,
                                keel_error** err);
KEEL_API keel_rc keel_tape_call_within(keel_tape* tape, keel_function* function,
                                       KEEL_NULLABLE keel_trace* within, KEEL_NULLABLE const char* structure,
                                       const keel_leaf* leaves KEEL_COUNT(n), uint32_t n,
                                       keel_array** out KEEL_COUNT(room), uint32_t room, uint32_t* n_out,
                                       keel_error** err);
/* on = 1: nothing is recorded until as many calls with 0 have followed. In a program that is traced for a
 * call which the tape records as a whole this hides nothing, for its graph serves all calls: apply
 * stop_gradient there. In a body of control flow that was begun with the tape it hides from all tapes around
 * the body. */
KEEL_API void keel_tape_pause(keel_tape* tape, int32_t on);
KEEL_API void keel_tape_reset(keel_tape* tape); /* drops the record and all watches */

/* ---- gradients */
/* The gradient of the sum of all elements of ys with respect to each x: an array in out, NULL where no y
 * depends on the x (unless flags have KEEL_GRADIENT_ZEROS). seeds: a weight for each element of each y, as an
 * array of its type; NULL: ones. If ys are symbolic the gradient is written into their trace, and xs that are
 * watched count. */
KEEL_API keel_rc keel_tape_gradient(keel_tape* tape, keel_array* const* ys KEEL_COUNT(n_ys), uint32_t n_ys,
                                    KEEL_NULLABLE KEEL_HOLES keel_array* const* seeds KEEL_COUNT(n_ys),
                                    keel_array* const* xs KEEL_COUNT(n_xs), uint32_t n_xs, uint32_t flags,
                                    keel_array** out KEEL_COUNT(n_xs), keel_error** err);
/* With respect to arrays or variables: where xs[i] is NULL (or xs is), variables[i] counts, with all reads
 * while it was watched. */
KEEL_API keel_rc
keel_tape_gradient_of(keel_tape* tape, keel_array* const* ys KEEL_COUNT(n_ys), uint32_t n_ys,
                      KEEL_NULLABLE KEEL_HOLES keel_array* const* seeds KEEL_COUNT(n_ys),
                      KEEL_NULLABLE KEEL_HOLES keel_array* const* xs KEEL_COUNT(n_xs),
                      KEEL_NULLABLE KEEL_HOLES keel_variable* const* variables KEEL_COUNT(n_xs),
                      uint32_t n_xs, uint32_t flags, keel_array** out KEEL_COUNT(n_xs), keel_error** err);
/* The derivatives of each element of y, a float, with respect to each element of an x: dims of y, then of x,
 * at most 8. Otherwise as keel_tape_gradient_of; it counts as one use of the tape and costs a gradient for
 * each element of y. */
KEEL_API keel_rc keel_tape_jacobian(keel_tape* tape, keel_array* y,
                                    KEEL_NULLABLE KEEL_HOLES keel_array* const* xs KEEL_COUNT(n_xs),
                                    KEEL_NULLABLE KEEL_HOLES keel_variable* const* variables KEEL_COUNT(n_xs),
                                    uint32_t n_xs, uint32_t flags, keel_array** out KEEL_COUNT(n_xs),
                                    keel_error** err);
/* Results with a gradient of the caller's making. ys were computed from xs, in any way; out: the same values,
 * of which tapes and graphs know this gradient only. backward gets, as leaves, xs, ys and the cotangents of
 * the floats among ys, and gives one gradient, of its type, for each float among xs, in order. It runs within
 * this call and is traced: it becomes the vjp of a `call`; its prints and writes are dropped, and no gradient
 * flows to what it captures. name: for messages and the graph. In eager code with a tape that watches an x,
 * arrays must be in host memory. */
KEEL_API keel_rc keel_trace_custom(KEEL_NULLABLE keel_trace* within, KEEL_NULLABLE keel_tape* tape,
                                   const char* name, keel_array* const* xs KEEL_COUNT(n_xs), uint32_t n_xs,
                                   keel_array* const* ys KEEL_COUNT(n_ys), uint32_t n_ys,
                                   keel_program backward, void* arg, keel_array** out KEEL_COUNT(n_ys),
                                   keel_error** err);

#ifdef __cplusplus
}
#endif
#endif
