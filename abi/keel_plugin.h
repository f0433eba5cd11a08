/* keel_plugin.h: the interface of plugins: a plugin links nothing of ours and exports one symbol, by
 * KEEL_PLUGIN.
 *
 * Read keel_host.h (the functions that Keel offers a plugin) and, for devices, keel_impl.h and keel_device.h;
 * here are importers, passes and the table of the plugin itself. A whole plugin is
 * share/doc/keel/sdk/examples/hello.c.
 * Tables are constant data that live until the library is unloaded. Exceptions, longjmp, and changes of the
 * locale or the floating-point environment must not leave a plugin's function. */
#ifndef KEEL_PLUGIN_H
#define KEEL_PLUGIN_H
#include "keel_device.h"
#include "keel_host.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- importers: other formats into a Keel module, and back */
typedef struct keel_source { /* a file, mapped read-only for the call, and longer if it is retained */
  uint32_t struct_size, reserved;
  const char* path; /* for messages and for files next to it; "" if it came from memory */
  const uint8_t* data KEEL_COUNT(size);
  uint64_t size;
  /* Constants may point into data: for host->constant pass retain(source) as arg, and release. NULL: no
   * memory. */
  void* (*retain)(const struct keel_source* source);
  void (*release)(void* arg);
  /* Parameters with values from the caller: they become constants. */
  const char* const* fixed_names KEEL_COUNT(n_fixed);
  const keel_tensor* fixed_values KEEL_COUNT(n_fixed);
  uint64_t n_fixed;
} keel_source;
KEEL_SEALED(keel_source, n_fixed);
typedef struct keel_sink { /* a graph to save: its values in the order of the entry; and the new file */
  uint32_t struct_size, n_params, n_results, reserved;
  const char* path; /* of the finished file, for messages */
  const keel_value* params KEEL_COUNT(n_params);
  const char* const* param_names KEEL_COUNT(n_params);
  const keel_value* results KEEL_COUNT(n_results); /* a value may be listed more than once */
  const char* const* result_names KEEL_COUNT(n_results);
  /* Appends bytes, on the thread of save. A failure has its message; save passes its code on. */
  keel_rc (*write)(const struct keel_sink* sink, const void* bytes KEEL_COUNT(size), uint64_t size);
  /* The same for a second file, named `path` and ".data": it appears just before the first, or neither does.
   */
  keel_rc (*write_data)(const struct keel_sink* sink, const void* bytes KEEL_COUNT(size), uint64_t size);
} keel_sink;
KEEL_SEALED(keel_sink, write_data);
typedef struct keel_importer {
  const char* name;       /* "onnx" */
  const char* extensions; /* "onnx pb"; they decide if probe does not */
  /* 0: not this format ... 100: certainly this format */
  int32_t (*probe)(const uint8_t* data KEEL_COUNT(size), uint64_t size);
  keel_rc (*import)(const keel_host* host, const keel_source* source,
                    const keel_kv* options KEEL_COUNT(n_options), uint32_t n_options, keel_edit* edit);
  /* Ops with a body that save takes as they are, blanks between; NULL: none. It gets the bodies of others. */
  KEEL_NULLABLE const char* composites;
  /* Writes a graph as a file with one of the endings in `extensions`; NULL: cannot. edit: for members that
   * only read; it has no call, and variables that it never writes are constants. The file appears once save
   * has succeeded. */
  KEEL_NULLABLE keel_rc (*save)(const keel_host* host, keel_edit* edit, const keel_sink* sink);
  /* 1: save takes this node of an op in `composites` as it is; 0: it gets the body. NULL: it takes each. The
   * node is as in match, without the data of results. */
  KEEL_NULLABLE int32_t (*keeps)(const keel_host* host, const keel_node* node);
} keel_importer;
KEEL_SEALED(keel_importer, keeps);

/* ---- passes: rewrite a graph into an equivalent graph that is faster or smaller */
enum keel_phase { KEEL_PHASE_CANON = 100, KEEL_PHASE_PLACED = 200, KEEL_PHASE_LOWER = 300 };
enum keel_exactness {
  KEEL_EXACT = 0, /* same bits */
  KEEL_CLOSE = 1, /* rounding of a fused or reordered computation; error at most twice the original's */
  KEEL_FAST = 2   /* may change results more; only on request */
};
typedef struct keel_pass {
  const char* name;                /* "epilogue"; one word, unique in a context */
  const char* about;               /* one line for `keel passes` */
  int32_t phase, level, exactness; /* level, 1 to 3: runs if the session's level is at least this */
  uint32_t flags;                  /* 0 */
  KEEL_NULLABLE const char* after; /* passes of the same phase, blanks between; NULL: none */
  KEEL_NULLABLE const char* before;
  /* Works on a private copy. If it fails or its result does not verify, the copy is dropped, and the pass is
   * reported and not used again in this context. */
  keel_rc (*run)(const keel_host* host, keel_edit* edit);
} keel_pass;
KEEL_SEALED(keel_pass, run);

/* ---- the plugin */
typedef struct keel_plugin {
  uint32_t struct_size, abi_minor, draft, build;
  const char* name; /* lower case, digits, '-' and '_'; the file is keel-NAME.so */
  const char* version;
  const char* about;                       /* one line */
  KEEL_NULLABLE const keel_device* device; /* NULL: none */
  const keel_impl* impls KEEL_COUNT(n_impls);
  uint32_t n_impls, impl_stride;
  KEEL_NULLABLE const char* ops; /* new ops ("vendor.name") in the language of the catalogue; NULL: none */
  const keel_importer* importers KEEL_COUNT(n_importers);
  uint32_t n_importers, importer_stride;
  const keel_pass* passes KEEL_COUNT(n_passes);
  uint32_t n_passes, pass_stride;
} keel_plugin;
KEEL_SEALED(keel_plugin, pass_stride);
#define KEEL_ARRAY(a) (a), (uint32_t)(sizeof(a) / sizeof((a)[0])), (uint32_t)sizeof((a)[0])

/* A sanitizer build loads plugins of the same build only. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEEL_BUILD 1u
#elif __has_feature(thread_sanitizer)
#define KEEL_BUILD 2u
#endif
#endif
#ifndef KEEL_BUILD
#if defined(__SANITIZE_ADDRESS__)
#define KEEL_BUILD 1u
#elif defined(__SANITIZE_THREAD__)
#define KEEL_BUILD 2u
#else
#define KEEL_BUILD 0u
#endif
#endif

/* An ELF note named "KEEL", type 1: Keel reads it before it loads the file. */
typedef struct keel_note {
  uint32_t namesz, descsz, type;
  char name[8];
  uint32_t major, minor, draft, build;
} keel_note;
KEEL_SEALED(keel_note, build);

#ifdef __cplusplus
#define KEEL_C extern "C"
#else
#define KEEL_C
#endif
#define KEEL_EXPORT __attribute__((visibility("default")))
#ifndef KEEL_ENTRY /* -DKEEL_ENTRY=name to link a plugin into a program */
#define KEEL_ENTRY keel_plugin_v0
#endif
#define KEEL_PLUGIN_HEADER (uint32_t)sizeof(keel_plugin), KEEL_ABI_MINOR, KEEL_ABI_DRAFT, KEEL_BUILD
#if defined(__clang__) /* its address sanitizer pads globals */
#define KEEL_NOTE_AS_IT_IS , no_sanitize("address")
#else
#define KEEL_NOTE_AS_IT_IS
#endif
#define KEEL_PLUGIN(desc)                                                                                  \
  KEEL_C __attribute__((used, section(".note.keel"), aligned(4), visibility("hidden") KEEL_NOTE_AS_IT_IS)) \
  const keel_note keel_plugin_note = {                                                                     \
      5, 16, 1, "KEEL\0\0\0", KEEL_ABI_MAJOR, KEEL_ABI_MINOR, KEEL_ABI_DRAFT, KEEL_BUILD};                 \
  KEEL_C KEEL_EXPORT const keel_plugin* KEEL_ENTRY(void);                                                  \
  KEEL_C KEEL_EXPORT const keel_plugin* KEEL_ENTRY(void) { return &(desc); }

#ifdef __cplusplus
}
#endif
#endif
