/* keel_module.h: modules: files of graphs, their texts, test cases and passes. Part of keel.h.
 *
 * A module holds graphs, constants, variables and entries: graphs with a name for sessions. `entry` NULL is
 * the module's only entry. keel_graph.h writes modules node by node. */
#ifndef KEEL_MODULE_H
#define KEEL_MODULE_H
#include "keel_handle.h"
#ifdef __cplusplus
extern "C" {
#endif

/* The file is mapped: it must not change while the module lives (abi/FILE.md). */
KEEL_API keel_rc keel_module_load(keel_context* context, const char* path, keel_module** out,
                                  keel_error** err);
/* The content of a file in memory, which must live until release(arg) is called, once, by the thread that
 * frees the last object of the module; release NULL: the bytes are copied, and arg is ignored. */
KEEL_API keel_rc keel_module_load_bytes(keel_context* context, KEEL_KEPT const void* bytes KEEL_COUNT(size),
                                        uint64_t size, KEEL_NULLABLE KEEL_KEPT void (*release)(void* arg),
                                        KEEL_KEPT void* arg, keel_module** out, keel_error** err);
/* From text, as the report "text" prints it. */
KEEL_API keel_rc keel_module_parse(keel_context* context, const char* text KEEL_COUNT(size), uint64_t size,
                                   keel_module** out, keel_error** err);
/* With the importer plugin that recognises the file's content. options: of the importer. Parameters named in
 * fixed_names become constants with the elements of `fixed`; an import that needs the value of a parameter
 * fails with KEEL_PRECONDITION and names it. */
KEEL_API keel_rc keel_module_import(keel_context* context, const char* path,
                                    const keel_kv* options KEEL_COUNT(n_options), uint32_t n_options,
                                    const char* const* fixed_names KEEL_COUNT(n_fixed),
                                    keel_array* const* fixed KEEL_COUNT(n_fixed), uint32_t n_fixed,
                                    keel_module** out, keel_error** err);
/* Atomic: a file of that name is replaced by the whole new file, or stays. The ending of the path decides the
 * format: an importer plugin for it that can also save writes the module's only entry in that format
 * (".onnx"); otherwise it is a Keel file. KEEL_UNIMPLEMENTED: the format lacks ops of the graph, which the
 * message lists. KEEL_NOT_FOUND: no plugin for ".onnx". */
KEEL_API keel_rc keel_module_save(keel_module* module, const char* path, keel_error** err);
KEEL_API void keel_module_free(keel_module* module);

/* ---- reading */
/* what:
 *   "text"        the whole module; keel_module_parse reads it back exactly. KEEL_OOM: constants of more than
 *                 1 GiB
 *   "outline"     the same for readers: constants of more than 256 bytes are omitted (`...`), so it cannot be
 *                 parsed
 *   "info"        JSON: entries with parameters and results, graphs, op counts, bytes of constants, metadata,
 *                 cases (with their counts of arrays)
 *   "signatures"  for readers: the arguments and results of each entry, with dtypes and shapes in NumPy's
 *                 notation */
KEEL_API keel_rc keel_module_report(keel_module* module, const char* what, keel_text** out, keel_error** err);

/* ---- changes */
/* Adds an entry of another module under the name `as` (NULL: its own), with the graphs that it reaches and
 * its cases. Variables and constants that both modules share stay shared. KEEL_EXISTS: a different variable
 * has the same name, or `as` is taken. */
KEEL_API keel_rc keel_module_link(keel_module* module, keel_module* from, KEEL_NULLABLE const char* entry,
                                  KEEL_NULLABLE const char* as, keel_error** err);
/* Sets a text for readers of the file; the report "info" lists them. */
KEEL_API keel_rc keel_module_metadata(keel_module* module, const char* key, const char* value,
                                      keel_error** err);
/* Adds a test case to the file: copies of the inputs and expected results of an entry, in its order. A result
 * passes if it differs from the expected one by at most atol + rtol * |expected| in each element. */
KEEL_API keel_rc keel_module_add_case(keel_module* module, const char* name, KEEL_NULLABLE const char* entry,
                                      keel_array* const* in KEEL_COUNT(n_in), uint32_t n_in,
                                      keel_array* const* expected KEEL_COUNT(n_expected), uint32_t n_expected,
                                      double rtol, double atol, keel_error** err);
/* Case `index`, from 0; KEEL_NOT_FOUND: there are no more. n_in and n_expected must be its counts of arrays.
 */
KEEL_API keel_rc keel_module_case(keel_module* module, uint32_t index, keel_array** in KEEL_COUNT(n_in),
                                  uint32_t n_in, keel_array** expected KEEL_COUNT(n_expected),
                                  uint32_t n_expected, keel_error** err);
/* Runs the passes for a device on the graph of an entry, and on the graphs that it calls unless the device
 * runs the call as a whole. Existing sessions keep the old graph; values get other numbers. Options: "level",
 * "passes" (see keel_session_new), "threads", "memory", "fuel" (limit of edits), "dump_after" (a pass, or
 * "all"). report (NULL: none): JSON with "passes" ("ms", "edits") and "dumps". */
KEEL_API keel_rc keel_module_optimize(keel_module* module, KEEL_NULLABLE const char* entry,
                                      const char* device, const keel_kv* options KEEL_COUNT(n_options),
                                      uint32_t n_options, KEEL_NULLABLE keel_text** report, keel_error** err);

#ifdef __cplusplus
}
#endif
#endif
