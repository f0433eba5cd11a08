/* keel.h: for programs that run graphs, and for language bindings. Plain C functions of libkeel.
 *
 * How to read it, by families: context and plugins, arrays, ops applied eagerly, modules (files), sessions
 * and plans, reports, traces and functions; graphs by hand are in keel_graph.h, which comes with this. A
 * whole program is sdk/examples/run.c.
 *
 * Errors: a function that can fail returns a keel_rc and, where the caller gave `keel_error** err`, stores an
 * error object there that the caller frees; err may be NULL. Outputs are untouched then. Parameters: a
 * pointer is needed unless the text says what NULL means; a list may be NULL where its count is 0 and has at
 * most 2^20 entries. Anything else is KEEL_INVALID, and the message names the function and the parameter:
 * "keel_apply: 'in' is NULL, but 'n_in' is 2". A function that returns no keel_rc does nothing with NULL and
 * returns 0, NULL or "". Ownership: arguments are borrowed for the call; what comes back through an out
 * pointer is the caller's, to be freed by the function named with it. Freeing NULL does nothing. A call that
 * fails takes nothing: `release` is not called then, and what was passed is still the caller's. Lifetime: an
 * object keeps alive what it needs (a plan its session, an array its context), so handles may be freed in any
 * order, with three exceptions. A graph is part of its module and dies with it. The trace that a program or
 * block is given is borrowed until it returns: to free or end it there is an error, as it is to free a
 * function in its own program. A handle that was freed is not checked: build Keel and the program with
 * -fsanitize=address (preset "asan") to find its uses; arrays do not use free lists there. Callbacks:
 * programs, blocks and observers return a keel_rc, and store an error only with a code other than KEEL_OK. A
 * code that is none, an error with KEEL_OK, and a C++ exception become errors that say so; longjmp out of a
 * callback is undefined. Threads: any function may be called from any thread. Threads may share contexts,
 * modules, sessions, plans, bound ops, functions, variables, and arrays that nobody writes. One thread at a
 * time uses a graph, a trace, a tape, an error or a text. Whoever frees a handle knows that no other thread
 * uses it any more.
 */
#ifndef KEEL_H
#define KEEL_H
#include "keel_base.h"
#ifdef __cplusplus
extern "C" {
#endif
#define KEEL_API __attribute__((visibility("default")))

typedef struct keel_context keel_context;
typedef struct keel_error keel_error;
typedef struct keel_text keel_text;
typedef struct keel_array keel_array;
typedef struct keel_op keel_op;
typedef struct keel_module keel_module;
typedef struct keel_graph keel_graph;
typedef struct keel_session keel_session;
typedef struct keel_plan keel_plan;
typedef struct keel_trace keel_trace;
typedef struct keel_function keel_function;
typedef struct keel_tape keel_tape;
typedef struct keel_variable keel_variable;
struct DLManagedTensor; /* of dlpack.h, which is not needed to include this */
struct DLManagedTensorVersioned;
struct keel_plugin; /* of keel_plugin.h */

/* ---- versions, errors, texts */
KEEL_API uint32_t keel_abi_version(void); /* major << 16 | minor */
KEEL_API const char* keel_version(void);  /* of the library: "0.1.0" */
KEEL_API keel_rc keel_error_code(const keel_error* error);
KEEL_API const char* keel_error_message(const keel_error* error); /* what was got, what was wanted */
KEEL_API const char* keel_error_op(const keel_error* error); /* "" if no op is concerned; likewise below */
KEEL_API const char* keel_error_node(const keel_error* error);
KEEL_API const char* keel_error_plugin(const keel_error* error);
KEEL_API const char* keel_error_hint(const keel_error* error); /* how to mend it */
KEEL_API void keel_error_free(keel_error* error);
KEEL_API const char* keel_text_data(const keel_text* text); /* NUL-terminated */
KEEL_API uint64_t keel_text_size(const keel_text* text);    /* without the NUL */
KEEL_API void keel_text_free(keel_text* text);

/* ---- context and plugins Options: "threads" (per run; default: the cores this process may use), "memory"
 * (limit in bytes for what one run plans and one array holds; default: none), "plugins" (folder in place of
 * the one beside libkeel). A new context has no plugins: scan or load them. */
KEEL_API keel_rc keel_open(const keel_kv* options, uint32_t n_options, keel_context** out, keel_error** err);
KEEL_API void keel_close(keel_context* context);
/* on = 1: every run and eager call of this context, under way or begun later, ends with KEEL_CANCELLED:
 * after the launch that it is in, which long loops of devices cut short. Its results are dropped and
 * everything stays usable. on = 0: runs work again. Any thread; async-signal-safe. */
KEEL_API void keel_cancel(keel_context* context, int32_t on);
/* Looks in the folders of KEEL_PLUGIN_PATH, the plugins folder beside libkeel and the system folder.
 * A plugin that is refused is no failure: report "plugins" says why. load: a library or a .rules file. */
KEEL_API keel_rc keel_plugin_scan(keel_context* context, keel_error** err);
KEEL_API keel_rc keel_plugin_load(keel_context* context, const char* path, keel_error** err);
KEEL_API keel_rc keel_plugin_add(keel_context* context, const struct keel_plugin* plugin,
                                 keel_error** err); /* static linking */
/* Where `print` of this context goes: fn gets each line, which ends with a newline, in one call; it must not
 * keep the text. Calls come one after the other, from the threads that run. Back to the default with NULL:
 * one write to stderr, or stdout where a print says stream=out. When this returns, the hook before is not
 * running any more (unless it made this call). */
enum { KEEL_STREAM_ERR = 0, KEEL_STREAM_OUT = 1 };
typedef void (*keel_print_fn)(void* arg, int32_t stream, const char* text, uint64_t size);
KEEL_API void keel_print_hook(keel_context* context, keel_print_fn fn, void* arg);
KEEL_API uint32_t keel_device_count(keel_context* context);
KEEL_API keel_rc keel_device_name(keel_context* context, uint32_t i, const char** out,
                                  keel_error** err); /* "cpu:0"; the context owns it */

/* Facts as JSON. what: "plugins" (each path tried, verdict, reason), "devices", "ops" (the catalogue),
 * "ops:DEVICE" (impl, body or missing for each op and dtype), "importers", "passes" (in the order in which
 * they run). Free with keel_text_free. */
KEEL_API keel_rc keel_report(keel_context* context, const char* what, keel_text** out, keel_error** err);

/* ---- timeline: what the process does when, in a file that Chrome's tracing and Perfetto show: loading,
 * functions as they are traced (and why again), plans with each pass, and with `runs` = 1 each run, eager
 * call and launch on the track of its device and lane ("fallback" where it is another than was asked for).
 * The variable KEEL_TRACE=FILE begins one with runs when the first context is opened (else stderr says why
 * not); it ends with the process. One at a time: KEEL_PRECONDITION. A file that cannot be written:
 * KEEL_INVALID or what the system says, from begin, or from end if it came later. A fifo needs a reader. Runs
 * take about a microsecond longer for each launch. */
KEEL_API keel_rc keel_timeline_begin(const char* path, int32_t runs, keel_error** err);
KEEL_API keel_rc keel_timeline_end(keel_error** err); /* KEEL_OK where there is none */
KEEL_API int64_t keel_timeline_now(void);             /* nanoseconds of a steady clock */
/* A span of the caller's own; nothing where no timeline is. track, name: UTF-8; kind: what viewers colour by;
 * args: a JSON object, or NULL. */
KEEL_API void keel_timeline_span(const char* track, const char* name, const char* kind, int64_t begin_ns,
                                 int64_t end_ns, const char* args);

/* ---- arrays: reference-counted tensors, in host memory or in that of a device. Free with
 * keel_array_release. The host cannot read an array on a device: what needs host memory answers
 * KEEL_PRECONDITION and names the device. An array on a device keeps the device open. */
KEEL_API keel_rc keel_array_new(keel_context* context, keel_dt dtype, const int64_t* shape, int32_t ndim,
                                keel_array** out, keel_error** err); /* zeroed, contiguous, 64-byte aligned */
KEEL_API keel_rc keel_array_copy_from(keel_context* context, const keel_tensor* tensor, keel_array** out,
                                      keel_error** err);
/* No copy: the memory must live until release(arg) is called, once, by whichever thread drops the last use.
 * On failure release is not called. Elements must lie within 2^40 bytes of data. */
KEEL_API keel_rc keel_array_wrap(keel_context* context, const keel_tensor* tensor, void (*release)(void*),
                                 void* arg, keel_array** out, keel_error** err);
/* DLPack, both forms, zero copy. From: on success Keel owns `take` and calls its deleter when done; on
 * failure it stays the caller's. To: the consumer calls the deleter. */
KEEL_API keel_rc keel_array_from_dlpack(keel_context* context, struct DLManagedTensorVersioned* take,
                                        keel_array** out, keel_error** err);
KEEL_API keel_rc keel_array_from_dlpack_legacy(keel_context* context, struct DLManagedTensor* take,
                                               keel_array** out, keel_error** err);
KEEL_API keel_rc keel_array_to_dlpack(keel_array* array, struct DLManagedTensorVersioned** out,
                                      keel_error** err);
KEEL_API keel_rc keel_array_to_dlpack_legacy(keel_array* array, struct DLManagedTensor** out,
                                             keel_error** err);
KEEL_API void keel_array_tensor(const keel_array* array, keel_tensor* out); /* valid as long as the array */
/* To a device by name ("cuda", "cpu"), or to host memory (NULL; devices that compute there mean the same).
 * The same array, retained, where it is there already; else a copy. A copy to a device may be under way when
 * this returns (plans wait for it by themselves), a copy to the host is done. */
KEEL_API keel_rc keel_array_to(keel_context* context, keel_array* array, const char* device, keel_array** out,
                               keel_error** err);
KEEL_API keel_rc keel_array_wait(keel_array* array, keel_error** err); /* until its bytes are where it is */
KEEL_API const char* keel_array_device(const keel_array* array);       /* "cuda:0"; "" for host memory */
KEEL_API keel_array* keel_array_retain(keel_array* array);
KEEL_API void keel_array_release(keel_array* array);

/* ---- ops: bind once (device, op, attributes), apply often */
KEEL_API keel_rc keel_op_bind(keel_context* context, const char* device, const char* op,
                              uint32_t version /* 0: newest */, const char* const* attr_names,
                              const keel_attr* attrs, uint32_t n_attrs, keel_op** out, keel_error** err);
KEEL_API void keel_op_free(keel_op* op);
/* in: NULL where an optional operand is left out. n_out must be the op's number of results. Results are in
 * the device's memory. Where an operand is symbolic, nothing runs: a node is added to its trace, and results
 * are symbolic. */
KEEL_API keel_rc keel_apply(keel_op* op, keel_array* const* in, uint32_t n_in, keel_array** out,
                            uint32_t n_out, keel_error** err);

/* ---- variables: state that outlives runs, of a fixed type; eager code, sessions and runs on any thread
 * share one. Its value is in host memory. Free with keel_variable_release. */
/* With the value of `initial`, which is copied. */
KEEL_API keel_rc keel_variable_new(keel_context* context, keel_array* initial, keel_variable** out,
                                   keel_error** err);
/* What it is now, without a copy: later writes do not change the array, and nobody may write into it. */
KEEL_API keel_rc keel_variable_read(keel_variable* variable, keel_array** out, keel_error** err);
/* Of the variable's dtype and shape; the value is copied. Readers see the old value or the new one. */
KEEL_API keel_rc keel_variable_assign(keel_variable* variable, keel_array* value, keel_error** err);
/* sign 1: adds, -1: subtracts, as one step: what many threads add is all there in the end. */
KEEL_API keel_rc keel_variable_add(keel_variable* variable, keel_array* value, int32_t sign,
                                   keel_error** err);
/* A file of variables by name, written all or nothing, with a checksum of each. Loading gives each variable
 * its value in the file, or fails and changes none; what else the file has is left out. */
KEEL_API keel_rc keel_checkpoint_save(keel_context* context, const char* path, const char* const* names,
                                      keel_variable* const* variables, uint32_t n, keel_error** err);
KEEL_API keel_rc keel_checkpoint_load(keel_context* context, const char* path, const char* const* names,
                                      keel_variable* const* variables, uint32_t n, keel_error** err);
/* For programs that may be traced: `within` is the trace that the program was given (NULL or an eager one: it
 * runs now, as keel_variable_new does). Options: "name" (in modules and files; others of the same name get a
 * number behind it; default: v0, v1 ...), "trainable" ("1", or "0": tapes do not watch it by themselves).
 * While a function is traced variables can be made on its first trace only. `initial` may be symbolic if it
 * depends on constants and shapes only; it is computed at once. */
KEEL_API keel_rc keel_variable_make(keel_trace* within, keel_context* context, keel_array* initial,
                                    const keel_kv* options, uint32_t n_options, keel_variable** out,
                                    keel_error** err);
KEEL_API const char* keel_variable_name(
    const keel_variable* variable); /* "" if it has none; as long as the variable */
KEEL_API int32_t keel_variable_trainable(const keel_variable* variable);
KEEL_API uint64_t
keel_variable_id(const keel_variable* variable); /* the same for all handles of one variable, for no other */
/* Reads and writes where the program is: in a trace nodes in the order of the program, for a variable that
 * becomes the module's; else now. tape: NULL, or the one that is told what was read. how: "assign",
 * "assign_add", "assign_sub". */
KEEL_API keel_rc keel_trace_read(keel_trace* within, keel_tape* tape, keel_variable* variable,
                                 keel_array** out, keel_error** err);
KEEL_API keel_rc keel_trace_write(keel_trace* within, keel_variable* variable, const char* how,
                                  keel_array* value, keel_error** err);
KEEL_API keel_variable* keel_variable_retain(keel_variable* variable);
KEEL_API void keel_variable_release(keel_variable* variable);

/* ---- modules: files. Free with keel_module_free. */
KEEL_API keel_rc keel_module_load(keel_context* context, const char* path, keel_module** out,
                                  keel_error** err);
/* From memory; the bytes must live until release(arg) is called (NULL: Keel copies now), which never happens
 * if this fails. */
KEEL_API keel_rc keel_module_load_bytes(keel_context* context, const void* bytes, uint64_t size,
                                        void (*release)(void*), void* arg, keel_module** out,
                                        keel_error** err);
KEEL_API keel_rc keel_module_parse(keel_context* context, const char* text, uint64_t size, keel_module** out,
                                   keel_error** err);
/* By an importer plugin, chosen by what the file holds. Parameters named in `fixed` become constants; an
 * import that needs a parameter's value answers KEEL_PRECONDITION and names it. */
KEEL_API keel_rc keel_module_import(keel_context* context, const char* path, const keel_kv* options,
                                    uint32_t n_options, const char* const* fixed_names,
                                    keel_array* const* fixed, uint32_t n_fixed, keel_module** out,
                                    keel_error** err);
KEEL_API keel_rc keel_module_save(keel_module* module, const char* path, keel_error** err); /* atomic */
KEEL_API keel_rc keel_module_text(keel_module* module, keel_text** out,
                                  keel_error** err); /* parse gives it back exactly; constants to 1 GiB */
/* For people, of modules of any size: constants of more than 256 bytes are left out (`...`), so it cannot be
 * parsed. */
KEEL_API keel_rc keel_module_outline(keel_module* module, keel_text** out, keel_error** err);
/* JSON: entries with parameters and results, graphs, op counts, bytes of constants, metadata, cases. */
KEEL_API keel_rc keel_module_info(keel_module* module, keel_text** out, keel_error** err);
/* For people: a block for each entry with its arguments and results, dtypes and shapes as NumPy spells them.
 */
KEEL_API keel_rc keel_module_signatures(keel_module* module, keel_text** out, keel_error** err);
/* Adds an entry of another module (NULL: its only one) under the name `as` (NULL: its own), with all graphs
 * that it reaches and its cases: several functions in one file. Variables that are the same are one,
 * so is a constant's memory; another variable of a name that is taken is an error. */
KEEL_API keel_rc keel_module_link(keel_module* module, keel_module* from, const char* entry, const char* as,
                                  keel_error** err);
KEEL_API keel_rc keel_module_metadata(keel_module* module, const char* key, const char* value,
                                      keel_error** err);
/* A test vector kept in the file: inputs and expected results of an entry, in the entry's order. */
KEEL_API keel_rc keel_module_add_case(keel_module* module, const char* name, const char* entry,
                                      keel_array* const* in, uint32_t n_in, keel_array* const* expected,
                                      uint32_t n_expected, double rtol, double atol, keel_error** err);
KEEL_API keel_rc keel_module_case(keel_module* module, uint32_t index, keel_array** in, uint32_t n_in,
                                  keel_array** expected, uint32_t n_expected, keel_error** err);
/* Lets passes rewrite the graph of an entry (NULL: the only one) for a device, and the graphs that it calls
 * where the device does not take such a call whole; device scopes stay. Options: "level", "passes" as for
 * sessions; "threads", "memory"; "fuel": most edits; "dump_after": a pass or "all". Older sessions keep the
 * graph; values change numbers. report (may be NULL): JSON, "passes" with "ms" and "edits", "dumps". */
KEEL_API keel_rc keel_module_optimize(keel_module* module, const char* entry, const char* device,
                                      const keel_kv* options, uint32_t n_options, keel_text** report,
                                      keel_error** err);
KEEL_API void keel_module_free(keel_module* module);

/* ---- sessions and plans: run one graph of a module on a device. Options: "threads", "memory" as in
 * keel_open; "timeout_ms" (a run that takes longer ends with KEEL_CANCELLED, as by keel_cancel; default:
 * none); "entry" (name; default: the only one); "graph" (name, in place of an entry); "observe" ("1": plans
 * of this session keep every value apart and call observers); "profile" ("1": plans stay as they are and call
 * observers, which may look at types and shapes only, for memory is used again); "level" (which passes run: 0
 * none, 1, 2: default, 3: also those that may change results; 0 if observed); "passes" ("fold,map": only
 * these; "+fast,-map": beside those of the level); "results" ("host", the default, or "device": where results
 * of a device with memory of its own are left); "lanes" ("auto", the default: launches of one run that do not
 * need each other run side by side where the device's estimates say that it pays and memory stays about the
 * same; "off": never; "all": wherever they may); "strict" ("1": all nodes run, so that one whose result
 * nobody needs can fail); "feeds" ("cast", the default, or "exact": see keel_session_run); "place"
 * ("PATTERN=DEVICE", may be given often: nodes whose name, or that of a result, matches PATTERN, with * and
 * ?, run there; the first that matches counts, then the graph's own scopes, then `device`; passes work on
 * each device's parts alone); "fallback" (a device for nodes that theirs cannot run, with copies between;
 * without it that is an error); "exact_convolution" ("1": sums as they are written, not Winograd's). */
KEEL_API keel_rc keel_session_new(keel_module* module, const char* device, const keel_kv* options,
                                  uint32_t n_options, keel_session** out, keel_error** err);
KEEL_API void keel_session_free(keel_session* session);
/* Feeds: names of any values (a fed value cuts the graph there); fetches: values wanted back; targets:
 * values to compute but not return, and nodes without results (a print) to run. NULL feeds/fetches with 0:
 * the entry's parameters/results, in order. With NULL fetches all that writes variables, prints or asserts
 * runs too; else only what fetches and targets need, and the targets. Effects happen in the order of the
 * graph. A run that fails has done the effects that stand before the node that failed, and no others. */
KEEL_API keel_rc keel_session_prepare(keel_session* session, const char* const* feeds, uint32_t n_feeds,
                                      const char* const* fetches, uint32_t n_fetches,
                                      const char* const* targets, uint32_t n_targets, keel_plan** out,
                                      keel_error** err);
/* prepare (kept by the session) and run in one call. Feeds of another dtype are cast where that keeps their
 * kind or goes to one that holds it, in the order bool, unsigned, signed, float; option "feeds" = "exact":
 * another dtype is an error, as it is for plans. */
KEEL_API keel_rc keel_session_run(keel_session* session, const char* const* feeds, keel_array* const* in,
                                  uint32_t n_in, const char* const* fetches, keel_array** out, uint32_t n_out,
                                  const char* const* targets, uint32_t n_targets, keel_error** err);
KEEL_API void keel_plan_free(keel_plan* plan);
KEEL_API uint32_t keel_plan_inputs(const keel_plan* plan);
KEEL_API uint32_t keel_plan_outputs(const keel_plan* plan);
/* Many threads may run one plan at once. */
KEEL_API keel_rc keel_plan_run(keel_plan* plan, keel_array* const* in, uint32_t n_in, keel_array** out,
                               uint32_t n_out, keel_error** err);
/* JSON: passes (ms, edits), launches in order (node, op, impl, device), constant part, values with their
 * place in the arena, "lanes" (names of launches that run side by side), bytes planned, "nodes" of the graph
 * and the "needed_nodes" among them; with several devices "placement" (which node runs where, why) and
 * "copies". `in` (may be NULL) sets the sizes of symbolic dims. */
KEEL_API keel_rc keel_plan_report(keel_plan* plan, keel_array* const* in, uint32_t n_in, keel_text** out,
                                  keel_error** err);
/* Called after each launch of an observed or profiled plan with what it computed; non-zero stops the run,
 * which then returns KEEL_CANCELLED. Tensors are valid during the call only. */
typedef struct keel_event {
  uint32_t struct_size, n_in, n_out, index;
  const char* node; /* the node's name, by which it can be fetched and which messages use */
  const char* op;
  const char* impl;
  const keel_tensor* const* in;
  const keel_tensor* const* out;
  const char* const* out_names;
  int64_t begin_ns, end_ns; /* by a steady clock: when it ran */
  uint32_t lane, reserved;  /* lane: of launches that ran side by side, each has its own; else 0 */
} keel_event;
KEEL_SEALED(keel_event, reserved);
typedef int32_t (*keel_observer)(void* arg, const keel_event* event);
KEEL_API keel_rc keel_plan_run_observed(keel_plan* plan, keel_array* const* in, uint32_t n_in,
                                        keel_array** out, uint32_t n_out, keel_observer observer, void* arg,
                                        keel_error** err);

/* ---- traces: a graph written by running a program on symbolic arrays. A symbolic array has a dtype and dims
 * (-1: not known) but no elements (data is NULL); keel_apply on it adds a node. Concrete arrays that meet
 * symbolic ones are captured: they become constants, which share their memory and must not be written any
 * more. One thread at a time may use a trace. Free with keel_trace_free. */
KEEL_API keel_rc keel_trace_new(keel_context* context, const char* name, const char* device, keel_trace** out,
                                keel_error** err);
KEEL_API keel_rc keel_trace_dim(keel_trace* trace, const char* expression, keel_dim* out, keel_error** err);
/* Of names that are there, else KEEL_NOT_FOUND says which. */
KEEL_API keel_rc keel_trace_known_dim(keel_trace* trace, const char* expression, keel_dim* out,
                                      keel_error** err);
/* The expression in canonical form: equal sizes have equal texts, a number is one ("n-n": "0"). */
KEEL_API keel_rc keel_trace_dim_text(keel_trace* trace, const char* expression, keel_text** out,
                                     keel_error** err);
/* While a function is traced for a call: the size's number in this call, and whether a rule ("n+1 == 2*m",
 * "n <= 512", "n < m") holds. A rule is answered for all sizes where that can be told; else the answer is
 * that of this call, and the trace serves calls with the same answer only ("guards" of keel_function_report).
 * Where a number was taken, the function is traced once more with that size as a number, and the report says
 * so. Elsewhere, where all sizes do not have the answer: KEEL_PRECONDITION. */
KEEL_API keel_rc keel_trace_dim_number(keel_trace* trace, const char* expression, int64_t* out,
                                       keel_error** err);
KEEL_API keel_rc keel_trace_dim_holds(keel_trace* trace, const char* rule, int32_t* out, keel_error** err);
/* An array's dim (axis -1: the last) as text. */
KEEL_API keel_rc keel_array_dim(const keel_array* array, int64_t axis, keel_text** out, keel_error** err);
KEEL_API keel_rc keel_trace_param(keel_trace* trace, const char* name, keel_dt dtype, const keel_dim* dims,
                                  int32_t ndim, keel_array** out, keel_error** err);
/* As keel_apply, for ops that belong to the trace though no operand is symbolic. */
KEEL_API keel_rc keel_trace_apply(keel_trace* trace, keel_op* op, keel_array* const* in, uint32_t n_in,
                                  keel_array** out, uint32_t n_out, keel_error** err);
KEEL_API keel_rc keel_trace_result(keel_trace* trace, const char* name, keel_array* array, keel_error** err);
/* Gives a module whose only entry is the graph, under the trace's name. Symbolic arrays are of no use then:
 * each use is an error that names the value. */
KEEL_API keel_rc keel_trace_end(keel_trace* trace, keel_module** out, keel_error** err);
KEEL_API void keel_trace_free(keel_trace* trace);
/* The tape that records what this program does: of the caller, where it is run eagerly or written into the
 * caller's trace. NULL: none. Borrowed. */
KEEL_API keel_tape* keel_trace_tape(const keel_trace* trace);
/* Graphs as programs build them: all that is added from now on gets a name, `scope` ("", "layer1/") and the
 * one that the caller gives, which must be free, or that of the op, with _1, _2 ... behind it where it is
 * taken. */
KEEL_API keel_rc keel_trace_names(keel_trace* trace, const char* scope, keel_error** err);
/* The line of the program that writes what is added from now on: failed runs of the graph name it, also
 * from a file. file: as messages show it; compared by address, so its text stays until the trace has ended
 * or another one is given. NULL: unknown, as lines from 2^20 on are. Nothing happens where the program runs
 * eagerly, which writes nothing, and where the trace is NULL. */
KEEL_API void keel_trace_source(keel_trace* trace, const char* file, uint32_t line);
/* A symbolic array for a constant with these elements (shared: nobody may write them any more). */
KEEL_API keel_rc keel_trace_constant(keel_trace* trace, const char* name, keel_array* array, keel_array** out,
                                     keel_error** err);
/* Another name for a parameter or a result of a node. unique = 1: with a number behind it if it is taken. */
KEEL_API keel_rc keel_trace_rename(keel_trace* trace, keel_array* array, const char* name, int32_t unique,
                                   keel_error** err);
/* Between symbolic arrays and the numbers of their values in the graph. */
KEEL_API keel_rc keel_trace_value(keel_trace* trace, keel_array* array, keel_value* out, keel_error** err);
KEEL_API keel_rc keel_trace_array(keel_trace* trace, keel_value value, keel_array** out, keel_error** err);
/* The module that is being written, whose only entry is the graph: sessions may run what is there while more
 * is added. One thread at a time adds, prepares or looks; plans run on any. */
KEEL_API keel_rc keel_trace_module(keel_trace* trace, keel_module** out, keel_error** err);
KEEL_API int32_t keel_array_symbolic(const keel_array* array); /* 1: a value of a trace */
/* Writes an entry of a module (NULL: the only one) into the trace, node by node, as if its program were
 * called there: gradients go through it, and its variables stay those of the module. in: an array for each
 * parameter. tape: NULL, or the one at work, which is told what is read. Sizes that do not fit are
 * KEEL_INVALID; where only a run can tell it checks them. Eager: KEEL_PRECONDITION. */
KEEL_API keel_rc keel_trace_entry(keel_trace* within, keel_tape* tape, keel_module* module, const char* entry,
                                  keel_array* const* in, uint32_t n, keel_array** out, uint32_t room,
                                  uint32_t* n_out, keel_error** err);

/* ---- functions: a program that is traced once for each signature of its arguments and then runs as a graph.
 * Arguments are the flattened leaves of any structure; the structure itself travels as a text of the caller's
 * making, which is only compared. Arrays count by dtype and shape, all other leaves by type and value. */
enum {
  KEEL_LEAF_NONE = 0,
  KEEL_LEAF_BOOL = 1, /* i */
  KEEL_LEAF_I64 = 2,  /* i */
  KEEL_LEAF_F64 = 3,  /* f */
  KEEL_LEAF_STR = 4,  /* s */
  KEEL_LEAF_ARRAY = 5 /* array */
};
typedef struct keel_leaf { /* borrowed for the call */
  int32_t kind;
  uint32_t reserved;
  const char* name; /* of the parameter, and for messages: "x", "layers[0].w"; NULL: Keel makes one */
  keel_array* array;
  int64_t i;
  double f;
  const char* s; /* NUL-terminated */
} keel_leaf;
KEEL_SEALED(keel_leaf, s);
/* The program: applies ops to the arrays among the leaves and leaves its results by keel_trace_result. The
 * same code runs eagerly, with concrete arrays and a trace that adds no nodes. A failure is returned with
 * its error in err. Called by the thread that called the function; may run again for another signature. */
typedef keel_rc (*keel_program)(void* arg, keel_trace* trace, const keel_leaf* leaves, uint32_t n,
                                keel_error** err);
/* Options: "signature" ("x: f32[b, 784], y: i32[b] where b in 2..65536, b % 8 == 0": the types of all
 * arguments and rules of their sizes; there is one trace then, and calls that do not fit are errors),
 * "any_after" (how many distinct sizes of a dim get a trace each before it becomes a symbol; default 2;
 * "never"), "max_traces" (default 64; the one used least recently is dropped); "check_captures" ("1", to look
 * for mistakes: each call traces the program again and is KEEL_PRECONDITION, with what changed, if its
 * graph is another one now, for a trace keeps what the program took from outside of its arguments);
 * "threads", "memory", "timeout_ms", "level", "passes", "exact_convolution" as for sessions. release(arg), if
 * not NULL, is called once nothing uses the function any more; not on failure. */
KEEL_API keel_rc keel_function_new(keel_context* context, const char* name, const char* device,
                                   const keel_kv* options, uint32_t n_options, keel_program program,
                                   void* arg, void (*release)(void*), keel_function** out, keel_error** err);
/* Up to `room` results go to out and their number to n_out; more than room: KEEL_INVALID says how many, and
 * nothing was run or written (but where the program runs eagerly or is written into a trace, which is done by
 * then). Where leaves are symbolic, or `within` is the caller's own trace, the program is written into that
 * trace. */
KEEL_API keel_rc keel_function_call(keel_function* function, keel_trace* within, const char* structure,
                                    const keel_leaf* leaves, uint32_t n, keel_array** out, uint32_t room,
                                    uint32_t* n_out, keel_error** err);
/* The graph for these arguments, traced if need be, as the only entry of a module of its own. */
KEEL_API keel_rc keel_function_module(keel_function* function, const char* structure, const keel_leaf* leaves,
                                      uint32_t n, keel_module** out, keel_error** err);
/* So for a trace that is there: number counts from 0, in the order of keel_function_report. Nothing is
 * traced, and no call is counted. KEEL_NOT_FOUND: there is none of that number. */
KEEL_API keel_rc keel_function_trace(keel_function* function, uint32_t number, keel_module** out,
                                     keel_error** err);
/* JSON: name, traces (signature, reason, trace_ms, plan_ms, calls, guards: what holds of the sizes it serves,
 * variables by name, captures: types of the captured arrays that are no scalars), how many were dropped. */
KEEL_API keel_rc keel_function_report(keel_function* function, keel_text** out, keel_error** err);
/* For people: a block for each trace with its arguments and results, as keel_module_signatures. */
KEEL_API keel_rc keel_function_signatures(keel_function* function, keel_text** out, keel_error** err);
/* on = 1: calls run the program itself, with concrete arrays and no trace; for one function, or for all of a
 * context. */
KEEL_API void keel_function_run_eagerly(keel_function* function, int32_t on);
KEEL_API void keel_run_eagerly(keel_context* context, int32_t on);
KEEL_API void keel_function_free(keel_function* function);

/* ---- tapes: gradients of what a program computed. A tape records ops and calls of which an operand is
 * watched; their results are watched then. It keeps only elements that some gradient reads. What is read of
 * trainable variables is watched by itself; a call that reads some passes gradients on to them. In a trace
 * the same values are watched, and gradients are nodes of the trace. One thread at a time. Options:
 * "persistent" ("1": gradients may be asked for more than once, and recording goes on; default: once, and
 * what was recorded is freed), "watch_variables" ("0": none by itself; default "1"). outer: NULL, or a tape
 * that records all that this one records, and the gradients that are taken by it: for gradients of gradients.
 * It must live longer. Free with keel_tape_free. */
KEEL_API keel_rc keel_tape_new(keel_context* context, const char* device, const keel_kv* options,
                               uint32_t n_options, keel_tape* outer, keel_tape** out, keel_error** err);
KEEL_API keel_rc keel_tape_watch(keel_tape* tape, keel_array* array, keel_error** err);
/* What is read of it from now on, trainable or not. */
KEEL_API keel_rc keel_tape_watch_variable(keel_tape* tape, keel_variable* variable, keel_error** err);
/* As keel_apply and keel_function_call; what they did is recorded. */
KEEL_API keel_rc keel_tape_apply(keel_tape* tape, keel_op* op, keel_array* const* in, uint32_t n_in,
                                 keel_array** out, uint32_t n_out, keel_error** err);
KEEL_API keel_rc keel_tape_call(keel_tape* tape, keel_function* function, const char* structure,
                                const keel_leaf* leaves, uint32_t n, keel_array** out, uint32_t room,
                                uint32_t* n_out, keel_error** err);
/* The same from within a program. */
KEEL_API keel_rc keel_tape_call_within(keel_tape* tape, keel_function* function, keel_trace* within,
                                       const char* structure, const keel_leaf* leaves, uint32_t n,
                                       keel_array** out, uint32_t room, uint32_t* n_out, keel_error** err);
/* 1: nothing is recorded, until 0 was said as often. In a program that is being traced for a call that the
 * tape records as a whole, this hides nothing, for its graph serves all calls: apply stop_gradient there. In
 * a body of control flow that was begun with the tape it hides from all tapes around the body. */
KEEL_API void keel_tape_pause(keel_tape* tape, int32_t on);
KEEL_API void keel_tape_reset(keel_tape* tape); /* forgets everything, watched arrays too */
/* The gradient of the sum of all elements of ys with respect to each x: out has n_xs arrays, NULL where no y
 * depends on the x (never, with KEEL_GRADIENT_ZEROS). seeds: NULL, or for each y an array of its type that
 * says what its elements count (NULL: ones). Where ys are symbolic the gradient is written into their trace:
 * xs count there, too, only if they are watched. */
KEEL_API keel_rc keel_tape_gradient(keel_tape* tape, keel_array* const* ys, uint32_t n_ys,
                                    keel_array* const* seeds, keel_array* const* xs, uint32_t n_xs,
                                    uint32_t flags, keel_array** out, keel_error** err);
/* With respect to arrays or variables: where xs[i] is NULL (or xs is) variables[i] counts, by all that was
 * read of it while it was watched. */
KEEL_API keel_rc keel_tape_gradient_of(keel_tape* tape, keel_array* const* ys, uint32_t n_ys,
                                       keel_array* const* seeds, keel_array* const* xs,
                                       keel_variable* const* variables, uint32_t n_xs, uint32_t flags,
                                       keel_array** out, keel_error** err);
KEEL_API void keel_tape_free(keel_tape* tape);
/* The derivatives of each element of y, a float, with respect to each element of an x: the dims of y, then
 * those of the x, at most 8. Otherwise as keel_tape_gradient_of, and counts as one use of the tape. Costs a
 * gradient for each element of y. */
KEEL_API keel_rc keel_tape_jacobian(keel_tape* tape, keel_array* y, keel_array* const* xs,
                                    keel_variable* const* variables, uint32_t n_xs, uint32_t flags,
                                    keel_array** out, keel_error** err);
/* Results with a gradient of the caller's making. ys were computed from xs, by whatever; out: room for n_ys,
 * the same values again, of which tapes, and gradients of the graph once it is saved, know nothing but this:
 * backward is a program that is given, as leaves, xs, ys and the cotangents of those ys that are floats, and
 * leaves one gradient for each x that is a float, in order and of its type. It runs within this call, is
 * traced and becomes the vjp of a `call`; what it prints or writes is left out. No gradient flows to what
 * else it uses. within: the trace of the program, NULL or eager: with elements (in host memory, if tape or
 * that of the trace watches an x). name: for messages and the graph. */
KEEL_API keel_rc keel_trace_custom(keel_trace* within, keel_tape* tape, const char* name,
                                   keel_array* const* xs, uint32_t n_xs, keel_array* const* ys, uint32_t n_ys,
                                   keel_program backward, void* arg, keel_array** out, keel_error** err);

#ifdef __cplusplus
}
#endif
#include "keel_graph.h"
#endif
