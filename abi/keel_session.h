/* keel_session.h: sessions and plans, which run a graph of a module on a device. Part of keel.h.
 *
 * A session is a graph with a device and options. A plan is an executable for given feeds and fetches, which
 * runs often, on any number of threads. */
#ifndef KEEL_SESSION_H
#define KEEL_SESSION_H
#include "keel_handle.h"
#ifdef __cplusplus
extern "C" {
#endif

/* device: a name as keel_device_name gives it, without ":0" if it is the first of its plugin; or "auto": the
 * first of the devices of cuda, the discrete devices of vulkan and cpu that has all ops of the graph. With
 * none the error (KEEL_NOT_FOUND) says what each lacks. Options:
 *   "entry", "graph"     name of an entry (default: the only one), or of any graph, to run
 *   "threads", "memory"  as in keel_context_new
 *   "timeout_ms"  a run that takes longer ends with KEEL_CANCELLED; default: none
 *   "level"       passes: 0 none, 1, 2 (default), 3 also passes that may change results; 0 if observed
 *   "passes"      by name: "fold,map" only these; "+fast,-map" with and without, relative to the level
 *   "results"     "host" (default) or "device": memory of the results
 *   "lanes"       launches in parallel: "auto" (default, by cost estimates of the device), "off", "all"
 *   "strict"      "1": nodes whose results are unused run too
 *   "feeds"       "cast" (default) or "exact": see keel_session_run
 *   "place"       "PATTERN=DEVICE", may be repeated: nodes whose name or result matches PATTERN (* and ?)
 *                 run there. The first match counts, then device scopes of the graph, then `device`
 *   "fallback"    "DEVICE,DEVICE...", tried in this order for nodes that their own device cannot run;
 *                 default: such a node is an error
 *   "observe"     "1": plans keep every value in memory of its own and call observers
 *   "profile"     "1": plans are unchanged and call observers, which may read types and shapes only
 *   "exact_convolution"  "1": no Winograd convolution */
KEEL_API keel_rc keel_session_new(keel_module* module, const char* device,
                                  const keel_kv* options KEEL_COUNT(n_options), uint32_t n_options,
                                  keel_session** out, keel_error** err);
KEEL_API void keel_session_free(keel_session* session);
/* Makes a plan, as keel_plan_new does, and runs it, as keel_plan_run does; the session keeps the plan. A feed
 * of another dtype is cast if its kind comes no later in bool, unsigned, signed, float; with the option
 * "feeds" = "exact" it is an error, as for plans. */
KEEL_API keel_rc keel_session_run(keel_session* session,
                                  KEEL_NULLABLE const char* const* feeds KEEL_COUNT(n_in),
                                  keel_array* const* in KEEL_COUNT(n_in), uint32_t n_in,
                                  KEEL_NULLABLE const char* const* fetches KEEL_COUNT(n_out),
                                  keel_array** out KEEL_COUNT(n_out), uint32_t n_out,
                                  const char* const* targets KEEL_COUNT(n_targets), uint32_t n_targets,
                                  keel_error** err);

/* ---- plans */
/* Equal calls share a plan. feeds: names of values; feeding a value cuts the graph there. fetches: values to
 * return. targets: values to compute, and nodes without results to run. NULL feeds: the parameters; NULL
 * fetches: the results, and all nodes that write variables, print or assert run too. Otherwise only nodes
 * that fetches and targets need run. Effects happen in the order of the graph. A failed run has done the
 * effects before the node that failed, and no others. */
KEEL_API keel_rc keel_plan_new(keel_session* session,
                               KEEL_NULLABLE const char* const* feeds KEEL_COUNT(n_feeds), uint32_t n_feeds,
                               KEEL_NULLABLE const char* const* fetches KEEL_COUNT(n_fetches),
                               uint32_t n_fetches, const char* const* targets KEEL_COUNT(n_targets),
                               uint32_t n_targets, keel_plan** out, keel_error** err);
KEEL_API void keel_plan_free(keel_plan* plan);
/* Of inputs (feeds) and outputs (fetches): n_in and n_out of a run. */
KEEL_API void keel_plan_counts(const keel_plan* plan, KEEL_NULLABLE uint32_t* inputs,
                               KEEL_NULLABLE uint32_t* outputs);
/* Input i, or with output = 1 output i: name and type. shape: ndim numbers; -1: a symbolic dim.
 * KEEL_NOT_FOUND: there is no port i. */
KEEL_API keel_rc keel_plan_port(const keel_plan* plan, int32_t output, uint32_t i,
                                KEEL_NULLABLE keel_text** name, KEEL_NULLABLE keel_dt* dtype,
                                KEEL_NULLABLE int64_t* shape KEEL_COUNT(KEEL_MAX_RANK) KEEL_FILLED(ndim),
                                KEEL_NULLABLE int32_t* ndim, keel_error** err);
/* in: an array for each input, of its dtype, with sizes that fit; out: an array for each output.
 * KEEL_CANCELLED: keel_context_cancel, or the session's time limit. Several threads may run one plan at once.
 */
KEEL_API keel_rc keel_plan_run(keel_plan* plan, keel_array* const* in KEEL_COUNT(n_in), uint32_t n_in,
                               keel_array** out KEEL_COUNT(n_out), uint32_t n_out, keel_error** err);
/* JSON: passes (ms, edits), launches in order (node, op, impl, device), constant part, values with their
 * place in the arena, "lanes" (names of launches that run in parallel), bytes planned, "nodes" of the graph
 * and "needed_nodes"; with several devices "placement" (device and reason for each node) and "copies". `in`
 * gives the sizes of symbolic dims; NULL: they stay symbolic. */
KEEL_API keel_rc keel_plan_report(keel_plan* plan, KEEL_NULLABLE keel_array* const* in KEEL_COUNT(n_in),
                                  uint32_t n_in, keel_text** out, keel_error** err);

/* One launch of an observed or profiled plan. Pointers are valid during the call of the observer. With
 * "profile", tensors have no data (NULL) and times are the device's if that can measure them itself. */
typedef struct keel_event {
  uint32_t struct_size, n_in, n_out;
  uint32_t index;   /* of the launch in the plan, from 0 */
  const char* node; /* name of the node, as in messages; it can be fetched by it */
  const char* op;
  const char* impl;                                         /* "": it has no name */
  KEEL_HOLES const keel_tensor* const* in KEEL_COUNT(n_in); /* NULL: an omitted optional operand */
  const keel_tensor* const* out KEEL_COUNT(n_out);
  const char* const* out_names KEEL_COUNT(n_out);
  int64_t begin_ns, end_ns; /* of a steady clock */
  uint32_t lane, reserved;  /* lane: launches with different lanes ran in parallel */
} keel_event;
KEEL_SEALED(keel_event, reserved);
/* Called after each launch, on the thread of the run. Non-zero: the run stops and returns KEEL_CANCELLED. */
typedef int32_t (*keel_observer)(void* arg, const keel_event* event);
/* keel_plan_run with an observer. KEEL_PRECONDITION: the session has neither "observe" nor "profile". */
KEEL_API keel_rc keel_plan_run_observed(keel_plan* plan, keel_array* const* in KEEL_COUNT(n_in),
                                        uint32_t n_in, keel_array** out KEEL_COUNT(n_out), uint32_t n_out,
                                        keel_observer observer, void* arg, keel_error** err);

#ifdef __cplusplus
}
#endif
#endif
