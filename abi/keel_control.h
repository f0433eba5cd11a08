/* keel_control.h: branches and loops that depend on values, in programs of C that may be traced. Part of
 * keel.h.
 *
 * keel_trace_cond, _switch, _while and _scan take blocks: functions that are parts of the program.
 * keel_body_begin and keel_body_end do the same without functions. An example is
 * share/doc/keel/sdk/examples/loop.c. */
#ifndef KEEL_CONTROL_H
#define KEEL_CONTROL_H
#include "keel_handle.h"
#ifdef __cplusplus
extern "C" {
#endif

/* A block applies ops to `in` and to any other arrays, and passes its results to
 * keel_trace_result, as a program does. If the predicate, index or test has elements (and, for loops, if
 * nothing is traced), blocks run on numbers, as C's own if and while would. Otherwise each block is traced
 * once, as a body of the op of that name: symbolic arrays of the enclosing traces are captured, and reads of
 * variables that no body writes precede it. All branches must give results of the same types, and a loop's
 * body results of the types of the carried values; predicates are bool[], indices i32[] or i64[]; else
 * KEEL_INVALID names them. `within`: the trace of the program or block; NULL: the trace of the symbolic
 * operands. While a body is open, one thread writes the program. Blocks run within the call, on its thread.
 *
 * out: room for at most `room` results; n_out: their number. More results are KEEL_INVALID, and no node is
 * added to a trace (a block that ran on numbers has run, with its effects). */
typedef keel_rc (*keel_block)(void* arg, keel_trace* body, keel_array* const* in KEEL_COUNT(n), uint32_t n,
                              keel_error** err);
/* Runs `then` if the predicate is true, else `otherwise`; neither gets operands. */
KEEL_API keel_rc keel_trace_cond(KEEL_NULLABLE keel_trace* within, keel_array* predicate, keel_block then,
                                 void* then_arg, keel_block otherwise, void* otherwise_arg,
                                 keel_array** out KEEL_COUNT(room) KEEL_FILLED(n_out), uint32_t room,
                                 uint32_t* n_out, keel_error** err);
/* Runs the branch of that index, from 0. args: for each branch its `arg`; NULL: all are NULL. KEEL_RANGE: the
 * index is out of range. */
KEEL_API keel_rc keel_trace_switch(KEEL_NULLABLE keel_trace* within, keel_array* index,
                                   const keel_block* branches KEEL_COUNT(n),
                                   KEEL_NULLABLE KEEL_HOLES void* const* args KEEL_COUNT(n), uint32_t n,
                                   keel_array** out KEEL_COUNT(room) KEEL_FILLED(n_out), uint32_t room,
                                   uint32_t* n_out, keel_error** err);
/* Runs body while test gives true. Both get the carried values, at first init; test gives one bool[], body
 * the n next values. */
KEEL_API keel_rc keel_trace_while(KEEL_NULLABLE keel_trace* within, keel_array* const* init KEEL_COUNT(n),
                                  uint32_t n, keel_block test, void* test_arg, keel_block body,
                                  void* body_arg, keel_array** out KEEL_COUNT(n), keel_error** err);
/* body gets the carried values and an entry of the first dim of each of xs; its first n_carry results are
 * carried on, the others are stacked. length: the number of entries; -1: the first dim of xs. reverse = 1:
 * from the last entry to the first. Eagerly it runs on the host, and tapes do not record entries. A scan of
 * no entries returns the carried values, and results whose first dim is 0, with types found by tracing. */
KEEL_API keel_rc keel_trace_scan(KEEL_NULLABLE keel_trace* within,
                                 keel_array* const* carry KEEL_COUNT(n_carry), uint32_t n_carry,
                                 keel_array* const* xs KEEL_COUNT(n_xs), uint32_t n_xs, keel_dim length,
                                 int32_t reverse, keel_block body, void* arg,
                                 keel_array** out KEEL_COUNT(room) KEEL_FILLED(n_out), uint32_t room,
                                 uint32_t* n_out, keel_error** err);

/* ---- without blocks: ops applied between begin and end are part of the body, whose results go to
 * keel_trace_result */
enum keel_body_flag { KEEL_BODY_BRANCH = 1 }; /* flag: a branch of a cond or switch */
/* label: "then", "else", "branches0", "test", "body"; part of the body's name. like: arrays with the types of
 * the body's parameters (the carried values, then, from number entries_from on, arrays of which the body gets
 * entries); params: the parameters. tape: records the body, and must outlive it. flags: a sum of
 * keel_body_flag. A body that is freed before its end is given up. KEEL_PRECONDITION: nothing is traced. */
KEEL_API keel_rc keel_body_begin(KEEL_NULLABLE keel_trace* within, KEEL_NULLABLE KEEL_KEPT keel_tape* tape,
                                 const char* label, keel_array* const* like KEEL_COUNT(n), uint32_t n,
                                 uint32_t entries_from, uint32_t flags, keel_trace** body,
                                 keel_array** params KEEL_COUNT(n), keel_error** err);
/* Ops are added to the enclosing body or trace again. */
KEEL_API keel_rc keel_body_end(keel_trace* body, keel_error** err);
/* The node. op: "cond" (before: the predicate; bodies: then, else), "switch" (the index; the branches),
 * "while" (the carried values; test, body), "scan" (the carried values; body; entries). length (-1: by the
 * entries) and reverse: of a scan; other ops ignore them. A body serves one node, and is freed by the caller.
 */
KEEL_API keel_rc keel_body_run(const char* op, keel_array* const* before KEEL_COUNT(n_before),
                               uint32_t n_before, keel_array* const* entries KEEL_COUNT(n_entries),
                               uint32_t n_entries, keel_trace* const* bodies KEEL_COUNT(n_bodies),
                               uint32_t n_bodies, keel_dim length, int32_t reverse,
                               keel_array** out KEEL_COUNT(room) KEEL_FILLED(n_out), uint32_t room,
                               uint32_t* n_out, keel_error** err);

#ifdef __cplusplus
}
#endif
#endif
