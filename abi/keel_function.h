/* keel_function.h: functions: programs that are traced once for each signature and then run as graphs. Part
 * of keel.h.
 *
 * Arguments are the flattened leaves of any structure; the structure itself is a text of the caller's making,
 * which is only compared. A trace serves arrays of the same dtype and shape, and other leaves of the same
 * type and value. */
#ifndef KEEL_FUNCTION_H
#define KEEL_FUNCTION_H
#include "keel_handle.h"
#ifdef __cplusplus
extern "C" {
#endif

enum keel_leaf_kind {
  KEEL_LEAF_NONE = 0,
  KEEL_LEAF_BOOL = 1, /* i */
  KEEL_LEAF_I64 = 2,  /* i */
  KEEL_LEAF_F64 = 3,  /* f */
  KEEL_LEAF_STR = 4,  /* s */
  KEEL_LEAF_ARRAY = 5 /* array */
};
typedef struct keel_leaf { /* borrowed for the call; the member of its kind counts, others are not read */
  int32_t kind;            /* a keel_leaf_kind */
  uint32_t reserved;       /* 0 */
  KEEL_NULLABLE const char*
      name; /* of the parameter, for messages: "x", "layers[0].w"; NULL: Keel makes one */
  KEEL_NULLABLE keel_array* array; /* NULL: the leaf is of another kind */
  int64_t i;
  double f;
  KEEL_NULLABLE const char* s; /* NUL-terminated; NULL: the leaf is of another kind */
} keel_leaf;
KEEL_SEALED(keel_leaf, s);

/* The program: applies ops to the arrays among the leaves and passes its results to keel_trace_result. The
 * same code runs eagerly, with concrete arrays and a trace that adds no nodes. It runs on the thread that
 * called the function, and may run again for another signature. leaves and trace are borrowed for the call.
 */
typedef keel_rc (*keel_program)(void* arg, keel_trace* trace, const keel_leaf* leaves KEEL_COUNT(n),
                                uint32_t n, keel_error** err);
/* Options:
 *   "signature"       types of all arguments, and rules of their sizes: "x: f32[b, 784], y: i32[b] where
 *                     b in 2..65536, b % 8 == 0". There is then one trace; other calls are errors
 *   "any_after"       distinct sizes of a dim that get a trace each before it becomes a symbol; default 2;
 *                     "never"
 *   "max_traces"      default 64; the least recently used trace is dropped
 *   "check_captures"  "1": each call traces again, and is KEEL_PRECONDITION if the graph differs. A trace
 *                     keeps values that the program reads from outside its arguments; this finds such reads
 *   "threads", "memory", "timeout_ms", "level", "passes", "exact_convolution"  as in keel_session_new
 * device: runs the graphs. program and arg must live until the function is freed and no call of it runs; then
 * release(arg) is called once. */
KEEL_API keel_rc keel_function_new(keel_context* context, const char* name, const char* device,
                                   const keel_kv* options KEEL_COUNT(n_options), uint32_t n_options,
                                   KEEL_KEPT keel_program program, KEEL_KEPT void* arg,
                                   KEEL_NULLABLE KEEL_KEPT void (*release)(void* arg), keel_function** out,
                                   keel_error** err);
KEEL_API void keel_function_free(keel_function* function);
/* Writes at most `room` results, in the memory of the function's device, to out, and their number to n_out.
 * More results are KEEL_INVALID: the message contains their number, and nothing was run or written (except by
 * a program that runs eagerly or is written into a trace). If leaves are symbolic, or `within` is the
 * caller's own trace, the program is written into that trace. tape: records the call. structure NULL: "". */
KEEL_API keel_rc keel_function_call(keel_function* function, KEEL_NULLABLE keel_trace* within,
                                    KEEL_NULLABLE keel_tape* tape, KEEL_NULLABLE const char* structure,
                                    const keel_leaf* leaves KEEL_COUNT(n), uint32_t n,
                                    keel_array** out KEEL_COUNT(room) KEEL_FILLED(n_out), uint32_t room,
                                    uint32_t* n_out, keel_error** err);
/* on = 1: later calls of the function run the program itself, with concrete arrays and no trace; 0: they
 * trace again. function NULL: of all functions of the context. Else the context is not read and may be NULL.
 */
KEEL_API void keel_run_eagerly(KEEL_NULLABLE keel_context* context, KEEL_NULLABLE keel_function* function,
                               int32_t on);

/* ---- traces of a function */
/* The graph for these arguments, traced if necessary, as the only entry of a module of its own. n_results:
 * how many arrays a call with these arguments returns; nothing has run yet. */
KEEL_API keel_rc keel_function_module(keel_function* function, KEEL_NULLABLE const char* structure,
                                      const keel_leaf* leaves KEEL_COUNT(n), uint32_t n, keel_module** out,
                                      KEEL_NULLABLE uint32_t* n_results, keel_error** err);
/* The graph of an existing trace, by its place in the report, from 0. */
KEEL_API keel_rc keel_function_trace(keel_function* function, uint32_t number, keel_module** out,
                                     keel_error** err);
/* what: "report", JSON: name, traces (signature, reason, trace_ms, plan_ms, calls, guards, variables by name,
 * captures: types of the captured arrays that are not scalars), number of dropped traces; "signatures", for
 * readers: arguments and results of each trace, as in keel_module_report. */
KEEL_API keel_rc keel_function_report(keel_function* function, const char* what, keel_text** out,
                                      keel_error** err);

#ifdef __cplusplus
}
#endif
#endif
