/* keel_handle.h: the rules of all functions of libkeel; handles, versions, errors and texts. Part of keel.h.
 *
 * Names: keel_T_new makes a handle of type keel_T and keel_T_free gives it up. Arrays and variables count
 * references: keel_T_retain adds a reference and keel_T_free drops it. The object of a call is its first
 * parameter (for `new`, the context); then come `within` (the trace of the calling program) and `tape`. A
 * function that writes into the calling program (keel_trace_apply, keel_trace_entry, keel_trace_custom, the
 * functions of keel_control.h) has no object and begins with them.
 *
 * Errors: a function that can fail returns a keel_rc. On failure it stores an error in `*err` (NULL: the
 * caller wants none), which the caller frees; an error that is there already is overwritten, not freed. All
 * other outputs are untouched, and nothing is taken: arguments still belong to the caller, and no release
 * callback is called. A wrong argument is KEEL_INVALID, and the message names the function and the parameter
 * ("keel_apply: 'in' is NULL, but 'n_in' is 2") or the option; a number or a name of nothing is
 * KEEL_NOT_FOUND. A function that cannot fail does nothing if a handle or a text that it needs is NULL: its
 * result and outputs are then 0, NULL or "".
 *
 * Parameters: a declaration states exceptions to these rules only; abi.json, which is installed with the
 * headers, contains the result for each parameter.
 *   NULL             is an error, except for `err` and for the `arg` of a callback
 *   const T*         input, borrowed for the call
 *   const char*      NUL-terminated UTF-8; with a count: that many bytes
 *   keel_T*          input: a handle, borrowed for the call
 *   T*, keel_T**     output; the caller owns the object and frees it with keel_T_free
 *   lists            have at most 2^20 entries, none NULL; may be NULL if their count is 0
 *   device           "cuda:1", or "cuda" for "cuda:0"; the report "devices" lists them
 *   options          names and values as text; each option at most once, in any order
 * A result `const char*` is borrowed; a result keel_T* belongs to the caller.
 *
 * Lifetime: an object keeps its dependencies alive (a plan its session, a session its module), so handles may
 * be freed in any order, with four exceptions. A graph is part of its module and dies with it. The trace that
 * a program or a block gets is borrowed until it returns: ending or freeing it there is an error. A function
 * cannot be freed inside its own program. A tape must outlive the tapes and bodies that were made with it. A
 * freed handle is not detected: build Keel and the program with -fsanitize=address (preset "asan") to find
 * its uses.
 *
 * Callbacks return a keel_rc, and store an error exactly if that is not KEEL_OK; the caller of the callback
 * frees it. An unknown code, an error with KEEL_OK and a C++ exception become errors that describe the
 * mistake; longjmp out of a callback is undefined. Programs, blocks and observers run on the thread of the
 * call that they belong to; release callbacks on the thread that drops the last reference.
 *
 * Threads: any function may be called from any thread. Handles marked KEEL_SHARED may be used by several
 * threads at once (arrays: as long as no thread writes their elements), handles marked KEEL_CONFINED by one
 * thread at a time; a symbolic array counts as its trace. When a handle is freed, no other thread may be
 * using it.
 */
#ifndef KEEL_HANDLE_H
#define KEEL_HANDLE_H
#include "keel_base.h"
#ifdef __cplusplus
extern "C" {
#endif
#define KEEL_API __attribute__((visibility("default")))

KEEL_SHARED typedef struct keel_context keel_context; /* plugins, devices and options of a program */
KEEL_SHARED typedef struct keel_array keel_array;     /* a tensor, concrete or symbolic; counts references */
KEEL_SHARED typedef struct keel_op keel_op;           /* an op with its attributes, bound to a device */
KEEL_SHARED typedef struct keel_variable keel_variable; /* state that outlives runs; counts references */
KEEL_SHARED typedef struct keel_module keel_module;     /* graphs, constants, variables: content of a file */
KEEL_CONFINED typedef struct keel_graph keel_graph;     /* nodes of a module */
KEEL_SHARED typedef struct keel_session keel_session;   /* a graph on a device, with options */
KEEL_SHARED typedef struct keel_plan keel_plan;         /* an executable with fixed feeds and fetches */
KEEL_CONFINED typedef struct keel_trace keel_trace;     /* a graph that a running program writes */
KEEL_SHARED typedef struct keel_function keel_function; /* a program that is traced on demand */
KEEL_CONFINED typedef struct keel_tape keel_tape;       /* a record of ops, for gradients */
KEEL_SHARED typedef struct keel_error keel_error;       /* a failure; never changes */
KEEL_SHARED typedef struct keel_text keel_text;         /* a string that Keel made; never changes */

/* ---- versions: texts are valid until the process ends */
KEEL_API uint32_t keel_abi_version(void); /* of the ABI: major << 16 | minor */
KEEL_API uint32_t keel_abi_draft(void);   /* KEEL_ABI_DRAFT of this library */
KEEL_API const char* keel_version(void);  /* of the library: "0.1.0" */

/* ---- errors */
enum keel_error_part {
  KEEL_ERROR_MESSAGE = 0, /* what happened; expected and actual */
  KEEL_ERROR_OP = 1,      /* name of the op that failed */
  KEEL_ERROR_NODE = 2,    /* name of its node */
  KEEL_ERROR_PLUGIN = 3,  /* name of the plugin that reported the failure */
  KEEL_ERROR_HINT = 4     /* how to fix it */
};
/* For callbacks: stores a new error in *out and returns its code, so a callback ends with
 * `return keel_error_new(KEEL_INVALID, "...", err);`. message NULL: "". out NULL: the code is returned only.
 * KEEL_OK and numbers that are no keel_status become KEEL_UNKNOWN. */
KEEL_API keel_rc keel_error_new(keel_rc code, KEEL_NULLABLE const char* message,
                                KEEL_NULLABLE keel_error** out);
KEEL_API keel_rc keel_error_code(const keel_error* error); /* NULL: KEEL_OK */
/* part: a keel_error_part. Valid as long as the error. "": the error has no such part. */
KEEL_API const char* keel_error_text(const keel_error* error, int32_t part);
KEEL_API void keel_error_free(keel_error* error);

/* ---- texts */
/* NUL-terminated, valid as long as the text. size: bytes without the NUL; NULL: not wanted. */
KEEL_API const char* keel_text_data(const keel_text* text, KEEL_NULLABLE uint64_t* size);
KEEL_API void keel_text_free(keel_text* text);

#ifdef __cplusplus
}
#endif
#endif
