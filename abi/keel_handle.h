/* keel_handle.h: the rules of all functions of libkeel; handles, versions, errors and texts. Part of keel.h.
 *
 * Errors: a function that can fail returns a keel_rc. On failure it stores an error in `*err` (NULL: the
 * caller wants none), which the caller frees, leaves all other outputs untouched, and takes nothing: what was
 * passed still belongs to the caller, and no release callback is called. A wrong argument is KEEL_INVALID,
 * and the message names the function and the parameter: "keel_apply: 'in' is NULL, but 'n_in' is 2". A
 * function that cannot fail does nothing with a NULL handle and returns 0, NULL or "".
 *
 * Parameters: the rules here hold where a declaration says nothing else. the generator of abi.json reads them
 * into abi.json, which is installed with the headers, and a test calls each function against them. NULL is an
 * error, except for `err` and for the `arg` of a callback const T*     input, borrowed for the call; const
 * char*: NUL-terminated UTF-8 keel_T*      input, a handle, borrowed for the call T*, keel_T** output; an
 * object belongs to the caller, who frees it with keel_T_free lists        have at most 2^20 entries, and may
 * be NULL if their count is 0; no entry is NULL
 *
 * Lifetime: an object keeps alive what it needs (a plan its session, an array its context), so handles may be
 * freed in any order, with three exceptions. A graph is part of its module and dies with it. The trace that a
 * program or a block is given is borrowed until it returns: to end or free it there is an error. A function
 * cannot be freed inside its own program. A freed handle is not detected: build Keel and the program with
 * -fsanitize=address (preset "asan") to find its uses.
 *
 * Callbacks return a keel_rc, and store an error exactly if that is not KEEL_OK. A code that does not exist,
 * an error with KEEL_OK and a C++ exception become errors that say so; longjmp out of a callback is
 * undefined.
 *
 * Threads: any function may be called from any thread. Handles marked KEEL_SHARED may be used by several
 * threads at once (arrays: as long as no thread writes their elements), handles marked KEEL_CONFINED by one
 * thread at a time. When a handle is freed, no other thread may be using it.
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
KEEL_SHARED typedef struct keel_module keel_module;     /* graphs, constants, variables: what a file holds */
KEEL_CONFINED typedef struct keel_graph keel_graph;     /* nodes of a module */
KEEL_SHARED typedef struct keel_session keel_session;   /* a graph on a device, with options */
KEEL_SHARED typedef struct keel_plan keel_plan;         /* an executable: what to feed and fetch is fixed */
KEEL_CONFINED typedef struct keel_trace keel_trace;     /* a graph that a running program writes */
KEEL_SHARED typedef struct keel_function keel_function; /* a program that is traced on demand */
KEEL_CONFINED typedef struct keel_tape keel_tape;       /* a record of ops, for gradients */
KEEL_CONFINED typedef struct keel_error keel_error;     /* a failure */
KEEL_CONFINED typedef struct keel_text keel_text;       /* a string that Keel made */

/* ---- versions */
KEEL_API uint32_t keel_abi_version(void); /* of the ABI: major << 16 | minor */
KEEL_API uint32_t keel_abi_draft(void);   /* KEEL_ABI_DRAFT of this library */
KEEL_API const char* keel_version(void);  /* of the library: "0.1.0" */

/* ---- errors. Texts are valid as long as the error, and "" where there is nothing to say. */
KEEL_API keel_rc keel_error_code(const keel_error* error);
KEEL_API const char* keel_error_message(const keel_error* error); /* what happened; expected and actual */
KEEL_API const char* keel_error_op(const keel_error* error);
KEEL_API const char* keel_error_node(const keel_error* error);
KEEL_API const char* keel_error_plugin(const keel_error* error);
KEEL_API const char* keel_error_hint(const keel_error* error); /* what to do about it */
KEEL_API void keel_error_free(keel_error* error);

/* ---- texts */
KEEL_API const char* keel_text_data(const keel_text* text); /* NUL-terminated, valid as long as the text */
KEEL_API uint64_t keel_text_size(const keel_text* text);    /* without the NUL */
KEEL_API void keel_text_free(keel_text* text);

#ifdef __cplusplus
}
#endif
#endif
