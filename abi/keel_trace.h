/* keel_trace.h: traces: graphs that a program writes by running on symbolic arrays. Part of keel.h.
 *
 * A symbolic array has a dtype and dims (-1: not known) but no elements (data is NULL); keel_apply on it adds
 * a node. Concrete arrays that meet symbolic ones are captured: they become constants that share their
 * memory, which must not be written any more. A program that may be traced gets a trace; while it runs
 * eagerly that trace adds no nodes, and functions that need a graph return KEEL_PRECONDITION. */
#ifndef KEEL_TRACE_H
#define KEEL_TRACE_H
#include "keel_handle.h"
#ifdef __cplusplus
extern "C" {
#endif

/* An empty graph of that name. device: nodes of ops that are bound to it run on the session's device; nodes
 * of other ops keep the device of the op. */
KEEL_API keel_rc keel_trace_new(keel_context* context, const char* name, const char* device, keel_trace** out,
                                keel_error** err);
KEEL_API void keel_trace_free(keel_trace* trace); /* discards a graph or body that has not ended */
/* Gives a module whose only entry is the graph, under the trace's name. Symbolic arrays cannot be used any
 * more: each use is an error that names the value. The trace is freed by the caller. */
KEEL_API keel_rc keel_trace_end(keel_trace* trace, keel_module** out, keel_error** err);
/* The module under construction: sessions may run its nodes while others are added. One thread at a time adds
 * nodes or makes plans; plans run on any thread. */
KEEL_API keel_rc keel_trace_module(keel_trace* trace, keel_module** out, keel_error** err);

/* ---- parameters, ops and results. name NULL: Keel makes one */
/* Adds a parameter. dims: numbers, or dims of keel_trace_dim. */
KEEL_API keel_rc keel_trace_param(keel_trace* trace, KEEL_NULLABLE const char* name, keel_dt dtype,
                                  const keel_dim* dims KEEL_COUNT(ndim), int32_t ndim, keel_array** out,
                                  keel_error** err);
/* keel_apply. within: the trace that gets the node, even if no operand is symbolic; NULL: the trace of the
 * symbolic operands. tape: records an op that runs at once; NULL: the tape of `within`, if it has one. */
KEEL_API keel_rc keel_trace_apply(KEEL_NULLABLE keel_trace* within, KEEL_NULLABLE keel_tape* tape,
                                  keel_op* op, KEEL_HOLES keel_array* const* in KEEL_COUNT(n_in),
                                  uint32_t n_in, keel_array** out KEEL_COUNT(n_out), uint32_t n_out,
                                  keel_error** err);
/* A symbolic array for a constant with these elements, which are shared and must not be written any more. */
KEEL_API keel_rc keel_trace_constant(keel_trace* trace, KEEL_NULLABLE const char* name, keel_array* array,
                                     keel_array** out, keel_error** err);
/* Appends a result of the program, block, body or trace. */
KEEL_API keel_rc keel_trace_result(keel_trace* trace, KEEL_NULLABLE const char* name, keel_array* array,
                                   keel_error** err);
/* Inlines an entry of a module (NULL: its only one): gradients flow through it, and it uses the module's
 * variables. in: an array for each parameter. out: room for at most `room` results; n_out: their number; if
 * there are more, nothing is added. KEEL_INVALID: sizes do not fit; sizes that are unknown now are checked by
 * each run. tape: records reads of variables; NULL: the tape of `within`, if it has one. */
KEEL_API keel_rc keel_trace_entry(keel_trace* within, KEEL_NULLABLE keel_tape* tape, keel_module* module,
                                  KEEL_NULLABLE const char* entry, keel_array* const* in KEEL_COUNT(n),
                                  uint32_t n, keel_array** out KEEL_COUNT(room) KEEL_FILLED(n_out),
                                  uint32_t room, uint32_t* n_out, keel_error** err);

/* ---- sizes. An expression is text: "b", "2*b+1". */
/* known_only = 0: a symbol that does not exist is made. 1: it is KEEL_NOT_FOUND, and the message names it. */
KEEL_API keel_rc keel_trace_dim(keel_trace* trace, const char* expression, int32_t known_only, keel_dim* out,
                                keel_error** err);
/* The expression in canonical form: equal sizes have equal texts; "n-n" is "0". */
KEEL_API keel_rc keel_trace_dim_text(keel_trace* trace, const char* expression, keel_text** out,
                                     keel_error** err);
/* The value of a size in the call that a function is traced for. The function is then traced again with that
 * size as a number, and its report contains the reason. KEEL_PRECONDITION: not a number, and not traced for a
 * call. */
KEEL_API keel_rc keel_trace_dim_number(keel_trace* trace, const char* expression, int64_t* out,
                                       keel_error** err);
/* out: 1 if a rule ("n+1 == 2*m", "n <= 512") holds. If it holds for some sizes only, the answer is for the
 * call that the function is traced for, and the trace serves calls with the same answer (a guard). */
KEEL_API keel_rc keel_trace_dim_holds(keel_trace* trace, const char* rule, int32_t* out, keel_error** err);

/* ---- the program that writes the trace */
/* tape: the tape that records this program, which belongs to the caller of the program; NULL: none. writes:
 * 1: the program adds nodes; 0: it runs eagerly. */
KEEL_API void keel_trace_info(const keel_trace* trace, KEEL_NULLABLE KEEL_BORROWED keel_tape** tape,
                              KEEL_NULLABLE int32_t* writes);
/* Names of the nodes added from now on: `scope` ("", "layer1/"), then the name from the caller, which must be
 * free, or the name of the op, with _1, _2 ... if it is taken. */
KEEL_API keel_rc keel_trace_names(keel_trace* trace, const char* scope, keel_error** err);
/* Source line of the nodes added from now on; failed runs name it, also after loading from a file. file:
 * compared by address, so the text must live until the trace ends or another file is set; NULL: unknown.
 * Lines above 2^20 are unknown, too. */
KEEL_API void keel_trace_source(keel_trace* trace, KEEL_NULLABLE KEEL_KEPT const char* file, uint32_t line);
/* Renames a parameter or a node's result. unique = 1: a number is appended to a name that is taken; 0: such a
 * name is KEEL_EXISTS. */
KEEL_API keel_rc keel_trace_rename(keel_trace* trace, keel_array* array, const char* name, int32_t unique,
                                   keel_error** err);
/* The number of a symbolic array's value in the graph. */
KEEL_API keel_rc keel_trace_value(keel_trace* trace, keel_array* array, keel_value* out, keel_error** err);
/* The reverse: a symbolic array for a value. KEEL_NOT_FOUND: there is no such value. */
KEEL_API keel_rc keel_trace_array(keel_trace* trace, keel_value value, keel_array** out, keel_error** err);

#ifdef __cplusplus
}
#endif
#endif
