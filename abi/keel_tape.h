/* keel_tape.h: tapes: gradients of the values that a program computed. Part of keel.h.
 *
 * A tape records ops and calls with a watched operand; their results are watched then. It keeps elements that
 * a gradient reads, and no others. Reads of trainable variables are watched automatically; a call
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
 *   "persistent"       "1": gradients may be taken more than once, and recording goes on; default: once, and
 *                      the record is freed
 *   "watch_variables"  "0": variables are watched on request only; default "1"
 * device: computes gradients of eager code. outer: a tape that also records the ops of this tape, and the
 * gradients that it takes (for gradients of gradients); it must live longer. NULL: none. */
KEEL_API keel_rc keel_tape_new(keel_context* context, const char* device,
                               const keel_kv* options KEEL_COUNT(n_options), uint32_t n_options,
                               KEEL_NULLABLE KEEL_KEPT keel_tape* outer, keel_tape** out, keel_error** err);
KEEL_API void keel_tape_free(keel_tape* tape);

/* ---- recording: keel_trace_apply, keel_function_call and keel_variable_read with the tape are recorded */
/* Exactly one of array and variable is not NULL. Of a variable, trainable or not: its reads from now on. */
KEEL_API keel_rc keel_tape_watch(keel_tape* tape, KEEL_NULLABLE keel_array* array,
                                 KEEL_NULLABLE keel_variable* variable, keel_error** err);
/* on = 1: nothing is recorded until as many calls with 0 have followed. In a program that is traced for a
 * call which the tape records as a whole this hides nothing, since its graph serves all calls: apply
 * stop_gradient there. In a body of control flow that was begun with the tape it hides from all tapes around
 * the body. */
KEEL_API void keel_tape_pause(keel_tape* tape, int32_t on);
KEEL_API void keel_tape_reset(keel_tape* tape); /* drops the record and all watches */

/* ---- gradients */
/* The gradient of the sum of all elements of ys with respect to each x, an array or a variable: xs[i], or
 * variables[i], with all reads while it was watched, if xs[i] (or xs) is NULL. out: an array for each x, NULL
 * if no y depends on the x (unless flags have KEEL_GRADIENT_ZEROS). seeds: a weight for each element of each
 * y, as an array of its type; NULL, or a NULL entry: ones. flags: a sum of keel_gradient_flag. If ys are
 * symbolic the gradient is written into their trace, for xs that are watched. With KEEL_GRADIENT_JACOBIAN,
 * one y and no seeds: the derivatives of each element of y with respect to each element of an x: dims of y,
 * then of x, at most 8; one use of the tape, at the cost of a gradient for each element of y. */
KEEL_API keel_rc keel_tape_gradient(keel_tape* tape, keel_array* const* ys KEEL_COUNT(n_ys), uint32_t n_ys,
                                    KEEL_NULLABLE KEEL_HOLES keel_array* const* seeds KEEL_COUNT(n_ys),
                                    KEEL_NULLABLE KEEL_HOLES keel_array* const* xs KEEL_COUNT(n_xs),
                                    KEEL_NULLABLE KEEL_HOLES keel_variable* const* variables KEEL_COUNT(n_xs),
                                    uint32_t n_xs, uint32_t flags,
                                    KEEL_HOLES keel_array** out KEEL_COUNT(n_xs), keel_error** err);
/* Results with a custom gradient. ys were computed from xs, in any way; out: the same values, whose only
 * gradient in tapes and graphs is this one. backward gets, as leaves, xs, ys and the cotangents of the floats
 * among ys, and returns one gradient, of its type, for each float among xs, in order. It runs within this
 * call and is traced: it becomes the vjp of a `call`; its prints and writes are dropped, and no gradient
 * flows to its captures. name: for messages and the graph. In eager code with a tape that watches an x,
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
