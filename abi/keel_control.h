/* keel_control.h: branches and loops that depend on values, in programs of C that may be traced.
 *
 * How to read it: keel_trace_cond and its like take blocks, functions that are parts of the program; what is
 * written between keel_body_begin and keel_body_end is the same without functions. An example is
 * sdk/examples/loop.c. */
#ifndef KEEL_CONTROL_H
#define KEEL_CONTROL_H
#include "keel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A block is part of a program: it applies ops to `in` (borrowed) and to
 * whatever arrays it knows, and leaves its results by keel_trace_result, as a program does. Where what
 * decides has elements (and for loops: where nothing is traced) blocks run on numbers, as C's own if and
 * while would. Else each block is written once, as a body of the op of that name: symbolic arrays of the
 * traces around that it uses are captured, reads of variables that no body of the node writes come before it.
 * What it computes leaves it as a result only. Results must have the same types in all branches, those of
 * what is carried in loops; predicates are bool[], indices i32[] or i64[]: else KEEL_INVALID names them.
 * `within`: the trace that the program (or block) was given, or NULL where symbolic arrays among the operands
 * tell. Results belong to the caller. While a body is open one thread writes the program. */
typedef keel_rc (*keel_block)(void* arg, keel_trace* body, keel_array* const* in, uint32_t n,
                              keel_error** err);
KEEL_API keel_rc keel_trace_cond(keel_trace* within, keel_array* p, keel_block then, void* then_arg,
                                 keel_block otherwise, void* else_arg, keel_array** out, uint32_t room,
                                 uint32_t* n_out, keel_error** err);
/* args: NULL, or one for each branch. An index that is out of range: KEEL_RANGE. */
KEEL_API keel_rc keel_trace_switch(keel_trace* within, keel_array* i, const keel_block* branches,
                                   void* const* args, uint32_t n, keel_array** out, uint32_t room,
                                   uint32_t* n_out, keel_error** err);
/* test and body get what is carried; test gives one bool[], body n results. out: room for n. */
KEEL_API keel_rc keel_trace_while(keel_trace* within, keel_array* const* init, uint32_t n, keel_block test,
                                  void* test_arg, keel_block body, void* body_arg, keel_array** out,
                                  keel_error** err);
/* body gets what is carried and an entry of the first dim of each of xs; its first n_carry results are
 * carried on, the others are stacked. length: -1 for that of xs. Eagerly, on the host: tapes do not see
 * entries. Of no entries: what is carried, and results whose first dim is 0; what the body would give is
 * found by tracing it, eagerly too. */
KEEL_API keel_rc keel_trace_scan(keel_trace* within, keel_array* const* carry, uint32_t n_carry,
                                 keel_array* const* xs, uint32_t n_xs, keel_dim length, int32_t reverse,
                                 keel_block body, void* arg, keel_array** out, uint32_t room, uint32_t* n_out,
                                 keel_error** err);
/* The same without blocks: between begin and end all that is applied is part of the body, whose results are
 * left by keel_trace_result. label: "then", "else", "branches0", "test", "body"; of its name. like: what the
 * body's parameters are like (carried, then, from number entries_from on, what it gets entries of); params:
 * room for n. Free a body with keel_trace_free; one that was not ended is given up. tape: NULL, or the one at
 * work. Where nothing is traced: KEEL_PRECONDITION. */
#define KEEL_BODY_BRANCH 1u /* of a cond or switch */
KEEL_API keel_rc keel_body_begin(keel_trace* within, keel_tape* tape, const char* label,
                                 keel_array* const* like, uint32_t n, uint32_t entries_from, uint32_t flags,
                                 keel_trace** body, keel_array** params, keel_error** err);
KEEL_API keel_rc keel_body_end(keel_trace* body, keel_error** err);
/* The node: op "cond" (before: p; bodies: then, else), "switch" (i; the branches), "while" (what is carried;
 * test, body), "scan" (what is carried; body; entries). length (-1: by the entries) and reverse: of a scan.
 * A body serves one node. */
KEEL_API keel_rc keel_body_run(const char* op, keel_array* const* before, uint32_t n_before,
                               keel_array* const* entries, uint32_t n_entries, keel_trace* const* bodies,
                               uint32_t n_bodies, keel_dim length, int32_t reverse, keel_array** out,
                               uint32_t room, uint32_t* n_out, keel_error** err);
/* Gives the code, with an error of it in err: for programs that libkeel calls. */
KEEL_API keel_rc keel_fail(keel_rc code, const char* message, keel_error** err);
KEEL_API int32_t keel_trace_writes(const keel_trace* trace); /* 0: eager, or NULL: it adds no nodes */

#ifdef __cplusplus
}
#endif
#endif
