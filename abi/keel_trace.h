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

KEEL_API keel_rc keel_trace_new(keel_context* context, const char* name, const char* device, keel_trace** out,
                                keel_error** err);
KEEL_API void keel_trace_free(keel_trace* trace);
/* Gives a module whose only entry is the graph, under the trace's name. Symbolic arrays cannot be used any
 * more: each use is an error that names the value. */
KEEL_API keel_rc keel_trace_end(keel_trace* trace, keel_module** out, keel_error** err);
/* The module while it is being written: sessions may run what is there while nodes are added. One thread at a
 * time adds nodes or prepares plans; plans run on any. */
KEEL_API keel_rc keel_trace_module(keel_trace* trace, keel_module** out, keel_error** err);

/* ---- parameters, ops and results */
KEEL_API keel_rc keel_trace_param(keel_trace* trace, KEEL_NULLABLE const char* name, keel_dt dtype,
                                  const keel_dim* dims KEEL_COUNT(ndim), int32_t ndim, keel_array** out,
                                  keel_error** err);
/* keel_apply for an op that belongs to the trace though none of its operands is symbolic. */
KEEL_API keel_rc keel_trace_apply(keel_trace* trace, keel_op* op,
                                  KEEL_HOLES keel_array* const* in KEEL_COUNT(n_in), uint32_t n_in,
                                  keel_array** out KEEL_COUNT(n_out), uint32_t n_out, keel_error** err);
/* A symbolic array for a constant with these elements, which are shared and must not be written any more. */
KEEL_API keel_rc keel_trace_constant(keel_trace* trace, KEEL_NULLABLE const char* name, keel_array* array,
                                     keel_array** out, keel_error** err);
KEEL_API keel_rc keel_trace_result(keel_trace* trace, KEEL_NULLABLE const char* name, keel_array* array,
                                   keel_error** err);
/* Inlines an entry of a module (NULL: its only one): gradients flow through it, and its variables stay those
 * of the module. in: an array for each parameter; out: room for at most `room` results. KEEL_INVALID: sizes
 * do not fit; where only a run can tell, the run checks them. tape: records reads of variables. */
KEEL_API keel_rc keel_trace_entry(keel_trace* within, KEEL_NULLABLE keel_tape* tape, keel_module* module,
                                  KEEL_NULLABLE const char* entry, keel_array* const* in KEEL_COUNT(n),
                                  uint32_t n, keel_array** out KEEL_COUNT(room), uint32_t room,
                                  uint32_t* n_out, keel_error** err);

/* ---- sizes. An expression is text: "b", "2*b+1". */
KEEL_API keel_rc keel_trace_dim(keel_trace* trace, const char* expression, keel_dim* out, keel_error** err);
/* Of symbols that exist; else KEEL_NOT_FOUND names one that does not. */
KEEL_API keel_rc keel_trace_known_dim(keel_trace* trace, const char* expression, keel_dim* out,
                                      keel_error** err);
/* The expression in canonical form: equal sizes have equal texts, a number is one ("n-n": "0"). */
KEEL_API keel_rc keel_trace_dim_text(keel_trace* trace, const char* expression, keel_text** out,
                                     keel_error** err);
/* The value of a size in the call that a function is traced for. The function is then traced again with that
 * size as a number, and its report says so. KEEL_PRECONDITION: not a number, and not traced for a call. */
KEEL_API keel_rc keel_trace_dim_number(keel_trace* trace, const char* expression, int64_t* out,
                                       keel_error** err);
/* Does a rule ("n+1 == 2*m", "n <= 512") hold? If it holds for some sizes only, the answer is that of the
 * call that the function is traced for, and the trace serves calls with the same answer (a guard). */
KEEL_API keel_rc keel_trace_dim_holds(keel_trace* trace, const char* rule, int32_t* out, keel_error** err);

/* ---- the program that writes the trace */
/* The tape that records this program; NULL: none. It belongs to the caller of the program. */
KEEL_API keel_tape* keel_trace_tape(const keel_trace* trace);
KEEL_API int32_t keel_trace_writes(const keel_trace* trace); /* 1: it adds nodes; 0: it runs eagerly */
/* Nodes added from now on are named: `scope` ("", "layer1/"), then the name that the caller gives, which must
 * be free, or that of the op, with _1, _2 ... if it is taken. */
KEEL_API keel_rc keel_trace_names(keel_trace* trace, const char* scope, keel_error** err);
/* Source line of the nodes added from now on; failed runs name it, after loading from a file too. file:
 * compared by address, so the text must live until the trace ends or another file is given; NULL: unknown, as
 * are lines above 2^20. */
KEEL_API void keel_trace_source(keel_trace* trace, KEEL_NULLABLE const char* file, uint32_t line);
/* Renames a parameter or a node's result. unique = 1: a number is appended to a name that is taken. */
KEEL_API keel_rc keel_trace_rename(keel_trace* trace, keel_array* array, const char* name, int32_t unique,
                                   keel_error** err);
/* From a symbolic array to the number of its value in the graph, and back. */
KEEL_API keel_rc keel_trace_value(keel_trace* trace, keel_array* array, keel_value* out, keel_error** err);
KEEL_API keel_rc keel_trace_array(keel_trace* trace, keel_value value, keel_array** out, keel_error** err);

#ifdef __cplusplus
}
#endif
#endif
