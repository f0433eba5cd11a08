/* keel_context.h: contexts, their plugins and devices, reports, and the timeline. Part of keel.h.
 *
 * A context comes first: every array, module and trace is made in one. Contexts are independent of each
 * other; most programs need one, and load the installed plugins into it with keel_plugin_load. */
#ifndef KEEL_CONTEXT_H
#define KEEL_CONTEXT_H
#include "keel_handle.h"
#ifdef __cplusplus
extern "C" {
#endif
struct keel_plugin; /* keel_plugin.h */

/* Options:
 *   "threads"  of each run, 1 to 4096; default: the cores that this process may use
 *   "memory"   limit in bytes for the memory plan of a run, and for an array; default: none
 *   "plugins"  folder to scan in place of the folder next to libkeel
 * A new context has no plugins, and so no devices. */
KEEL_API keel_rc keel_context_new(const keel_kv* options KEEL_COUNT(n_options), uint32_t n_options,
                                  keel_context** out, keel_error** err);
KEEL_API void keel_context_free(keel_context* context);

/* on = 1: all runs and eager calls of the context, current and future, end with KEEL_CANCELLED after their
 * current launch; long loops of devices stop early. Results are dropped, everything stays usable. on = 0:
 * runs work again. May be called from a signal handler. */
KEEL_API void keel_context_cancel(keel_context* context, int32_t on);
/* Facts as JSON. what: "plugins" (each path tried, verdict, reason), "devices" (name, plugin, description,
 * memory, usable or the reason why not), "devices:DEVICE" (that one; loads no driver of other devices),
 * "ops" (the catalogue), "ops:DEVICE" (impl, body or missing for each op and dtype), "importers", "passes"
 * (in order of execution). */
KEEL_API keel_rc keel_context_report(keel_context* context, const char* what, keel_text** out,
                                     keel_error** err);

/* ---- plugins and devices */
/* path: a library or a .rules file; a name without a slash is a file of the working directory. KEEL_EXISTS:
 * the context has a plugin of that name. NULL: the plugins of the folders in KEEL_PLUGIN_PATH, of
 * keel/plugins next to libkeel and of /usr/lib/keel/plugins; a refused plugin is then no failure: the report
 * "plugins" gives the reason. */
KEEL_API keel_rc keel_plugin_load(keel_context* context, KEEL_NULLABLE const char* path, keel_error** err);
/* A plugin that is linked into the program. The table must live until the process ends. */
KEEL_API keel_rc keel_plugin_add(keel_context* context, KEEL_KEPT const struct keel_plugin* plugin,
                                 keel_error** err);
/* Of device i, from 0: "cpu:0"; valid as long as the context. NULL: there is no device i. Devices of later
 * plugins are not counted, so their drivers are not loaded. */
KEEL_API KEEL_NULLABLE const char* keel_device_name(keel_context* context, uint32_t i);

/* ---- output of the op `print` */
enum keel_stream { KEEL_STREAM_ERR = 0, KEEL_STREAM_OUT = 1 };
/* Gets one line, with its newline, per call; the text is valid during the call. Calls come from running
 * threads, one at a time. */
typedef void (*keel_print_fn)(void* arg, int32_t stream, const char* text KEEL_COUNT(size), uint64_t size);
/* fn NULL: the default, a write to stderr, or to stdout for prints with stream=out. fn and arg must live
 * until another hook is set; runs of objects that outlive the context call it, too. When this returns, the
 * previous hook is not running any more (unless it made this call). */
KEEL_API void keel_print_hook(keel_context* context, KEEL_NULLABLE KEEL_KEPT keel_print_fn fn,
                              KEEL_KEPT void* arg);

/* ---- timeline: a trace of the process in the format of Chrome's tracing and Perfetto: loading, tracing of
 * functions (and the reason for each), planning with each pass, and with runs = 1 each run, eager call and
 * launch on the track of its device and lane ("fallback" if that is not the requested device). A launch then
 * takes about a microsecond longer. One timeline at a time; it ends with the process. The variable
 * KEEL_TRACE=FILE starts one with runs when the first context is made; a failure goes to stderr. */
/* runs = 0: loading, tracing and planning only. KEEL_PRECONDITION: there is a timeline already. KEEL_INVALID:
 * the file cannot be written; keel_timeline_end returns later errors. Opening a fifo waits for its reader. */
KEEL_API keel_rc keel_timeline_begin(const char* path, int32_t runs, keel_error** err);
KEEL_API keel_rc keel_timeline_end(keel_error** err); /* KEEL_OK if there is no timeline */
KEEL_API int64_t keel_timeline_now(void);             /* nanoseconds of a steady clock */
/* A span of the caller's own, with times of keel_timeline_now. kind: viewers colour by it. args: a JSON
 * object; other texts are left out of the file. end_ns before begin_ns: the span has no length. */
KEEL_API void keel_timeline_span(const char* track, const char* name, const char* kind, int64_t begin_ns,
                                 int64_t end_ns, KEEL_NULLABLE const char* args);

#ifdef __cplusplus
}
#endif
#endif
