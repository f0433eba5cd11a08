/* keel_plugin.h: all that a plugin needs. A plugin links nothing of ours and exports one symbol.
 *
 * How to read it: the host table (what Keel offers a plugin), the launch (what runs), the tables a
 * plugin fills in (impls, device, importers), the export macro. A whole plugin is sdk/examples/hello.c.
 *
 * Threads: host members marked [T] may be called from any thread, [C] only inside the call that
 * brought them. A plugin's run may be called for several launches at once; prepare likewise.
 * Never across the border: exceptions, longjmp, a changed locale or floating-point environment.
 */
#ifndef KEEL_PLUGIN_H
#define KEEL_PLUGIN_H
#include "keel_base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct keel_node keel_node;      /* Keel's: one op with known operands, read through the host */
typedef struct keel_edit keel_edit;      /* Keel's: a module under construction */
typedef struct keel_dev_s* keel_dev;     /* the plugin's: an opened device */
typedef struct keel_queue_s* keel_queue; /* the plugin's: NULL for a host-memory device */

enum { KEEL_LOG_DEBUG = 0, KEEL_LOG_INFO = 1, KEEL_LOG_WARNING = 2, KEEL_LOG_ERROR = 3 };
enum {
  KEEL_DIM_ADD = 0,
  KEEL_DIM_SUB = 1,
  KEEL_DIM_MUL = 2,
  KEEL_DIM_FLOORDIV = 3,
  KEEL_DIM_MAX = 4,
  KEEL_DIM_MIN = 5
};
enum {
  KEEL_READS = 1,
  KEEL_MUST_RUN = 2,
  KEEL_MAY_FAIL = 4
}; /* variables or random numbers; though nobody needs it;
       on its data, also if that is in a graph that it runs */
enum { KEEL_LESS = -1, KEEL_EQUAL = 0, KEEL_GREATER = 1, KEEL_UNCERTAIN = 2 };

/* A node to append: op by name, its operands, attributes by name. Borrowed for the call. */
typedef struct keel_node_spec {
  uint32_t struct_size, version; /* version 0: the newest */
  const char* op;
  const char* name; /* of the node, for messages and dumps; NULL: Keel makes one */
  const keel_value* in;
  const char* const* attr_names;
  const keel_attr* attrs;
  uint32_t n_in, n_attrs;
} keel_node_spec;
KEEL_SEALED(keel_node_spec, n_attrs);

/* The body of a `call`: nodes in program order. Values are numbered: the call's operands from 0, then the
 * results of each node. Constants are operands, so their data is found at the call. */
typedef struct keel_body_node {
  const keel_node* node;
  const uint32_t* in; /* value numbers; KEEL_NO_VALUE: left out */
  uint32_t n_in, n_out;
  uint32_t out; /* number of its first result */
  uint32_t reserved;
} keel_body_node;
KEEL_SEALED(keel_body_node, reserved);
typedef struct keel_body {
  uint32_t struct_size, n_nodes, n_values, n_results;
  const keel_body_node* nodes;
  const uint32_t* results; /* value numbers of the call's results */
} keel_body;
KEEL_SEALED(keel_body, results);

typedef struct keel_host {
  uint32_t struct_size, abi_minor;
  /* [T] Stores the text of a failure for the call under way on this thread; returns code. */
  keel_rc (*fail)(keel_rc code, const char* message);
  void (*log)(int32_t level, const char* message); /* [T] */
  const void* (*ext)(const char* name);            /* [T] "vendor.thing/1" or NULL */

  /* [C] Reading a node in match and prepare. Tensors carry dtype and dims (-1: any), and data only
   * where the operand is a constant. Attributes have their defaults; every dim in them is a number. Of each
   * node there is "keel.exact_convolution", too, a bool: the option of the session or function. */
  const char* (*node_op)(const keel_node*);
  const char* (*node_name)(const keel_node*);
  void (*node_arity)(const keel_node*, uint32_t* n_in, uint32_t* n_out);
  keel_rc (*node_in)(const keel_node*, uint32_t i, keel_tensor* out);
  keel_rc (*node_out)(const keel_node*, uint32_t i, keel_tensor* out);
  keel_rc (*node_attr)(const keel_node*, const char* name, keel_attr* out);

  /* [C] Writing a module in import. Each node is checked and typed as it is added. */
  keel_rc (*dim_symbol)(keel_edit*, const char* name, keel_dim* out); /* 0 or more, found or made */
  keel_rc (*dim_op)(keel_edit*, int32_t op, keel_dim a, keel_dim b, keel_dim* out);
  int32_t (*dim_compare)(keel_edit*, keel_dim a,
                         keel_dim b); /* KEEL_LESS ... KEEL_UNCERTAIN, over all sizes */
  keel_rc (*param)(keel_edit*, const char* name, keel_dt, const keel_dim* dims, int32_t ndim,
                   keel_value* out);
  /* The bytes stay the importer's until release(arg) is called: once, maybe years
   * later, at once on failure. NULL: Keel copies now. */
  keel_rc (*constant)(keel_edit*, const char* name, const keel_tensor*, void (*release)(void*), void* arg,
                      keel_value* out);
  keel_rc (*add_node)(keel_edit*, const keel_node_spec*, keel_value* outs, uint32_t n_out);
  /* Type of a value; data where it is a constant. shape points to keel_dims, valid until the next edit. */
  keel_rc (*value_type)(keel_edit*, keel_value, keel_tensor* out);
  keel_rc (*result)(keel_edit*, const char* name, keel_value);
  keel_rc (*metadata)(keel_edit*, const char* key, const char* value);

  /* [C] The body of a `call` in match and prepare; KEEL_NOT_FOUND for any other op. */
  keel_rc (*node_body)(const keel_node*, keel_body* out);

  /* [C] Rewriting a graph in a pass. Nodes and values keep their numbers during one pass, and what is added
   * gets the next ones; what a list points to is valid until the next edit. Each edit is checked when it is
   * made; one that would change a type, a name that is asked for or the order of effects is refused and
   * changes nothing. What nobody needs any more goes by itself: there is no erase. Where a pass may edit no
   * more (option "fuel"), replace, outline, inline and splice give KEEL_PRECONDITION: it returns that, or
   * anything. */
  const char* (*edit_device)(keel_edit*);                     /* where the graph will run: "cpu:0" */
  uint32_t (*edit_nodes)(keel_edit*, const uint32_t** nodes); /* in program order; gives their number */
  const keel_node* (*edit_node)(keel_edit*, uint32_t node);   /* for node_op, node_attr, node_body ...;
                                                                 NULL: no such node (any more) */
  keel_rc (*edit_operands)(keel_edit*, uint32_t node, const keel_value** in, uint32_t* n_in,
                           const keel_value** out, uint32_t* n_out);
  uint32_t (*edit_producer)(keel_edit*, keel_value); /* the node, or KEEL_NO_VALUE: parameter, constant */
  uint32_t (*edit_users)(keel_edit*, keel_value, const uint32_t** nodes); /* a node once for each use; nodes
                                                                             NULL: only how many, at once */
  int32_t (*edit_fetched)(keel_edit*, keel_value); /* 1: a result of the graph: must stay computed */
  /* add_node puts what it adds before this node; KEEL_NO_VALUE: at the end. */
  keel_rc (*edit_before)(keel_edit*, uint32_t node);
  /* All uses of a value, and its name if it is fetched, pass to another of the same type. */
  keel_rc (*edit_replace)(keel_edit*, keel_value old_value, keel_value new_value);
  /* Makes the nodes the body of one `call`, which stands where the last of them stood. Its operands are
   * what they read from outside, in order of first use; its results what is read outside. */
  keel_rc (*edit_outline)(keel_edit*, const uint32_t* nodes, uint32_t n, const char* name, uint32_t* call);
  keel_rc (*edit_inline)(keel_edit*, uint32_t call); /* the reverse */
  /* 1: the device has an impl of its own for this node, else it would run its body or refuse. */
  int32_t (*edit_supported)(keel_edit*, uint32_t node);
  /* Runs a node whose operands are all constants on the device, and puts constants in place of its
   * results. KEEL_PRECONDITION: an operand is not constant, or the result is too large to keep. */
  keel_rc (*edit_eval)(keel_edit*, uint32_t node);
  /* Of a node's op, attributes and device scope, not of its operands; 0: it has no results, or an effect
   * other than reading a variable, so that another node cannot stand for it. */
  uint64_t (*edit_hash)(keel_edit*, uint32_t node);
  int32_t (*edit_same)(keel_edit*, uint32_t node, uint32_t other); /* 1: all of these are equal */
  /* Puts the nodes of a graph that this node runs, one of its attributes, in the node's place. The graph is
   * given the values in; its results are the node's. The node has no effect but reading variables. */
  keel_rc (*edit_splice)(keel_edit*, uint32_t node, int64_t graph, const keel_value* in, uint32_t n_in);

  /* [C] In match and prepare of an impl for `cond`, `switch`, `while` or `scan`, which runs it as one launch:
   * graph i of those that it runs, in the order of its attributes. Constants are values too, numbered before
   * the results of the node that reads them first; node_in of that node has their data. KEEL_NOT_FOUND: none.
   */
  keel_rc (*node_graph)(const keel_node*, uint32_t i, keel_body* out);

  /* [C] In a pass. What running a node does beside computing its results: a sum of KEEL_READS ...; 0:
   * nothing, or no such node. */
  uint32_t (*edit_effects)(keel_edit*, uint32_t node);
  /* A graph that a node runs, one of its attributes, for all members that only read; its parameters and
   * results are as many as the node gives and takes. Valid during the pass, whatever is edited. */
  keel_rc (*edit_body)(keel_edit*, int64_t graph, keel_edit** body, const keel_value** params,
                       const keel_value** results);
  /* Another graph, with those nodes of a graph that the results need from the params on, and with those that
   * must run; params and results are values of that graph. Where a param is KEEL_NO_VALUE the new graph has
   * one that it does not read, of the type of types[i], a value of the graph that is edited. out: for
   * add_node. */
  keel_rc (*edit_graph)(keel_edit*, int64_t graph, const keel_value* params, const keel_value* types,
                        uint32_t n_params, const keel_value* results, uint32_t n_results, int64_t* out);
} keel_host;
KEEL_SEALED(keel_host, edit_graph);

/* ---- the launch: what a device made of one node */
typedef struct keel_env {        /* what all launches of a run share */
  uint32_t struct_size, threads; /* threads: how many this launch may use */
  const keel_host* host;
  keel_dev dev;
  keel_queue queue;
  const volatile int32_t* cancelled; /* non-zero: stop when convenient, return KEEL_CANCELLED */
  uint64_t fault; /* device address of this run's fault bytes (see keel_device); 0: host memory, none */
} keel_env;
KEEL_SEALED(keel_env, fault);

/* keel_call.flags: FLAT says that every operand and result is contiguous and has either `count`
 * elements or, where bit ONE(i) is set, a single one: an elementwise impl then reads no shape. */
enum { KEEL_CALL_FLAT = 1 };
#define KEEL_CALL_ONE(i) (2u << (i)) /* i: operand 0 to 15 */
typedef struct keel_call {
  uint32_t struct_size, flags;
  uint16_t n_in, n_out;
  uint32_t fault;               /* ORed with the code in the fault word: launch number << 8; 0: host memory */
  int64_t count;                /* elements of result 0 */
  const keel_tensor* const* in; /* NULL: an optional operand that was left out */
  keel_tensor* const* out;      /* memory is there already */
  void* state;                  /* of prepare; shared by concurrent runs, so read-only */
  void* scratch;                /* scratch_bytes, 64-byte aligned, private to this call */
  const keel_env* env;
} keel_call;
KEEL_SEALED(keel_call, env);

typedef struct keel_launch { /* filled by prepare */
  uint32_t struct_size, flags;
  void* state;
  uint64_t scratch_bytes;
  /* Computes; on a device with queues: encodes on env->queue. KEEL_UNIMPLEMENTED, with nothing encoded: not
   * for these shapes; a session with a fallback then runs the node there. */
  keel_rc (*run)(const keel_call*);
  void (*release)(keel_dev, void* state); /* NULL: nothing to free */
} keel_launch;
KEEL_SEALED(keel_launch, release);

/* ---- impls: device code for ops of the catalogue */
enum {
  KEEL_IMPL_ANY_DIMS =
      1,                 /* prepare and its state serve all dims (it sees -1); else prepared for each shape */
  KEEL_IMPL_INPLACE = 2, /* result 0 may share memory with an operand of the same type */
  KEEL_IMPL_THREAD_BITS = 4 /* another keel_env.threads may give other bits; `keel ops` says so */
};
typedef struct keel_impl {
  const char* op;
  uint32_t ver_min, ver_max; /* inclusive */
  const char* types;         /* by type variable of the catalogue: "T=f32|f64 I=i32"; NULL: all types */
  const char* name;          /* what a reader of `keel ops` sees: "oneDNN matmul" */
  int32_t priority;          /* higher is tried first */
  uint32_t flags;
  int32_t (*match)(keel_dev, const keel_host*, const keel_node*); /* optional; 0: not for this node */
  keel_rc (*prepare)(keel_dev, const keel_host*, const keel_node*, keel_launch*); /* optional */
  keel_rc (*run)(const keel_call*); /* used where prepare is NULL or left launch.run NULL */
} keel_impl;
KEEL_SEALED(keel_impl, run);

/* ---- device: a plugin with impls offers one kind of device, named after the plugin ("cpu", "cpu:0")
 *
 * Two sorts. A device with KEEL_DEVICE_HOST_MEMORY computes on ordinary memory and returns when it is done:
 * it needs no functions at all. Any other has memory of its own and works through queues: it needs every
 * function from segment_alloc to host_wait.
 *
 * Memory: the plugin gives out segments, few and large; Keel cuts them into tensors. A launch of such a
 * device sees device addresses in keel_tensor.data and keel_call.scratch, never a host pointer; what an
 * impl reads in match and prepare (data of constants) is host memory always. A segment is freed only after
 * all that was encoded on it is done.
 *
 * Order: a queue runs in order what copy, fill and launches put there ("encode"). It may begin at once, and
 * must when submit is called, which gives a ticket: a number above all that this queue gave before. A ticket
 * is done when all encoded before it is. Waits name tickets that exist already, so no wait is ever for
 * something that is not yet submitted. Queues do not order each other, but by queue_wait.
 *
 * Failing on data: at env->fault are 16 bytes: u32 word, u32 bound, i64 index. A launch that meets an index
 * out of range or a division by zero on the device stores keel_call.fault | KEEL_RANGE in the word if that is
 * still 0 (atomically), and goes on with any value. The thread whose word was stored may also store the index
 * and, as bound, the number of entries that the axis has (0, as Keel left it: not said, or a division by
 * zero); the message names both. Keel clears the bytes before a run and reads them where the host looks at
 * results.
 *
 * Threads: functions of the device may be called from any thread, several at once; those of one queue
 * (encoding and launches, too) are never called by two threads at once, but host_wait and query may be
 * called at any time. Errors: as everywhere, a code and a text by host->fail. After a failure what was
 * encoded may still run until a later ticket of the queue is done or the queue is closed. */
enum { KEEL_DEVICE_HOST_MEMORY = 1 };
typedef struct keel_device_info { /* zeroed by Keel before the call */
  uint32_t struct_size, flags;
  int32_t dl_type, dl_id; /* as in DLPack; 1: CPU, 2: CUDA, 7: Vulkan, 12: another */
  uint64_t memory;        /* bytes in all; 0: not known */
  char description[128];
  uint64_t memory_free; /* bytes; 0: not known */
  uint64_t max_segment; /* bytes that one segment can have; 0: no other limit than memory */
  uint64_t alignment;   /* of tensors in a segment, bytes: a power of two up to 4096; 0: 64 */
} keel_device_info;
KEEL_SEALED(keel_device_info, alignment);

enum {
  KEEL_SEGMENT_DEVICE = 0,  /* memory that launches work on */
  KEEL_SEGMENT_STAGING = 1, /* host memory that the device reads: uploads are written there */
  KEEL_SEGMENT_READBACK = 2 /* host memory, cached, that the device writes: downloads are read there */
};
typedef struct keel_segment {
  void* handle;     /* the plugin's */
  uint64_t address; /* of the first byte on the device, aligned as the info says; DEVICE: not 0 */
  void* host;       /* the same bytes for the host; DEVICE: NULL */
  uint64_t bytes;   /* what was asked for, or more */
  uint32_t kind, reserved;
} keel_segment;
KEEL_SEALED(keel_segment, reserved);

enum { KEEL_QUEUE_COMPUTE = 0, KEEL_QUEUE_TRANSFER = 1 }; /* compute: everything; transfer: copies only */

typedef struct keel_device { /* every function may be NULL: one host-memory device that needs no opening */
  uint32_t struct_size, flags;
  uint32_t (*count)(const keel_host*); /* NULL: 1. 0: none here; host->fail says why, for `keel doctor` */
  keel_rc (*info)(const keel_host*, uint32_t i, keel_device_info* out);
  keel_rc (*open)(const keel_host*, uint32_t i, const keel_kv* options, uint32_t n_options, keel_dev* out);
  void (*close)(keel_dev); /* after its queues are closed and its segments freed */

  keel_rc (*segment_alloc)(keel_dev, uint32_t kind, uint64_t bytes, keel_segment* out); /* KEEL_OOM: full */
  void (*segment_free)(keel_dev, const keel_segment*);
  keel_rc (*queue_open)(keel_dev, uint32_t kind, keel_queue* out);
  void (*queue_close)(keel_queue); /* finishes or drops what is left; no memory is touched afterwards */
  /* Between segments of this device, of any kind. Offsets and sizes in bytes, any alignment. */
  keel_rc (*copy)(keel_queue, const keel_segment* to, uint64_t to_offset, const keel_segment* from,
                  uint64_t from_offset, uint64_t bytes);
  /* Repeats a u32; offset and bytes are multiples of 4. On a compute queue, DEVICE segments only. */
  keel_rc (*fill)(keel_queue, const keel_segment* to, uint64_t offset, uint64_t bytes, uint32_t value);
  keel_rc (*submit)(keel_queue, uint64_t* ticket); /* tickets begin at 1 */
  /* What is encoded on this queue from now on begins after that ticket of another queue of this device. */
  keel_rc (*queue_wait)(keel_queue, keel_queue other, uint64_t ticket);
  /* Blocks the caller until the ticket is done; KEEL_CANCELLED: not done within timeout (nanoseconds). An
   * error of the device that lies before the ticket comes back here. */
  keel_rc (*host_wait)(keel_queue, uint64_t ticket, uint64_t timeout);
  keel_rc (*query)(keel_queue, uint64_t* done); /* the last ticket that is done; NULL: Keel only waits */
  /* On a transfer queue: into a segment of its device, from one of another device of this plugin. Those bytes
   * are final, and stay until the copy is done. NULL, or KEEL_UNIMPLEMENTED and nothing encoded: not between
   * these two; Keel then copies by way of the host. */
  keel_rc (*copy_from)(keel_queue, const keel_segment* to, uint64_t to_offset, keel_dev other,
                       const keel_segment* from, uint64_t from_offset, uint64_t bytes);
  /* Of a host-memory device, both or neither: launches of one run side by side.
   * run_lanes: calls lane(arg) on up to n threads at once, at least once, and returns when all have come
   * back. What a lane launches has env->threads 1 and should use only the thread that it is on.
   * cost: [C] about how many nanoseconds this node takes with so many threads, all dims being numbers; 0: not
   * known. Steps run side by side where those times say that it pays. */
  void (*run_lanes)(keel_dev, uint32_t n, void (*lane)(void* arg), void* arg);
  uint64_t (*cost)(keel_dev, const keel_host*, const keel_node*, uint32_t threads);
} keel_device;
KEEL_SEALED(keel_device, cost);
/* The whole table of a host-memory device without lanes; each of the four functions may be NULL. */
#define KEEL_HOST_DEVICE(count, info, open, close)                                                      \
  {                                                                                                     \
    (uint32_t)sizeof(keel_device), KEEL_DEVICE_HOST_MEMORY, count, info, open, close, NULL, NULL, NULL, \
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL                                      \
  }

/* ---- importers: other formats into a Keel module */
typedef struct keel_source { /* a file, mapped read-only for the call and as long as release is not called */
  uint32_t struct_size, reserved;
  const char* path; /* for messages and for files beside it; "" if it came from memory */
  const uint8_t* data;
  uint64_t size;
  /* Constants may point into data: pass keep(source) as arg and drop as release. NULL: no memory. */
  void* (*keep)(const struct keel_source*);
  void (*drop)(void*);
  /* Values of parameters that the caller fixes at import: they become constants. */
  const char* const* fixed_names;
  const keel_tensor* fixed_values;
  uint64_t n_fixed;
} keel_source;
KEEL_SEALED(keel_source, n_fixed);
typedef struct keel_importer {
  const char* name;       /* "onnx" */
  const char* extensions; /* "onnx pb", by which a file is recognised, after probe */
  int32_t (*probe)(const uint8_t* data, uint64_t size); /* 0: not mine ... 100: certainly mine */
  keel_rc (*import)(const keel_host*, const keel_source*, const keel_kv* options, uint32_t n_options,
                    keel_edit*);
} keel_importer;
KEEL_SEALED(keel_importer, import);

/* ---- passes: rewrite a graph into one that computes the same and runs faster or smaller */
enum { KEEL_PHASE_CANON = 100, KEEL_PHASE_PLACED = 200, KEEL_PHASE_LOWER = 300 };
enum {
  KEEL_EXACT = 0, /* same bits */
  KEEL_CLOSE = 1, /* rounding of a fused or reordered computation; error at most twice the original's */
  KEEL_FAST = 2   /* may change results more; only where asked for */
};
typedef struct keel_pass {
  const char* name;                /* "epilogue"; one word, unique in a context */
  const char* about;               /* one line for `keel passes` */
  int32_t phase, level, exactness; /* runs where the level asked for is at least this: 1 to 3 */
  uint32_t flags;                  /* 0 */
  const char* after;               /* passes of the same phase, blanks between; NULL: none */
  const char* before;
  /* Works on a private copy. After an error, or if the result does not verify, the copy is dropped and
   * the pass is named, and not used again in this context. */
  keel_rc (*run)(const keel_host*, keel_edit*);
} keel_pass;
KEEL_SEALED(keel_pass, run);

/* ---- the plugin: constant data, alive until the library is unloaded */
typedef struct keel_plugin {
  uint32_t struct_size, abi_minor, draft, build;
  const char* name; /* lower case, digits and '-'; the file is keel-NAME.so */
  const char* version;
  const char* about; /* one line */
  const keel_device* device;
  const keel_impl* impls;
  uint32_t n_impls, impl_stride;
  const char* ops; /* new ops ("vendor.name") in the language of the catalogue; NULL: none */
  const keel_importer* importers;
  uint32_t n_importers, importer_stride;
  const keel_pass* passes;
  uint32_t n_passes, pass_stride;
} keel_plugin;
KEEL_SEALED(keel_plugin, pass_stride);
#define KEEL_ARRAY(a) (a), (uint32_t)(sizeof(a) / sizeof((a)[0])), (uint32_t)sizeof((a)[0])

/* Sanitizer builds only meet plugins of the same build. */
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

/* What the host reads from the file before it loads it: an ELF note named "KEEL", type 1. */
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
#if defined(__clang__) /* its address sanitizer would pad the note */
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

static inline void* keel_ptr(const keel_tensor* t) { return (char*)t->data + t->byte_offset; }
static inline keel_dt keel_dt_of(const keel_tensor* t) {
  return (uint32_t)t->dtype.code | (uint32_t)t->dtype.bits << 8 | (uint32_t)t->dtype.lanes << 16;
}
static inline int64_t keel_count(const keel_tensor* t) {
  int64_t n = 1;
  int32_t d;
  for (d = 0; d < t->ndim; d++) n *= t->shape[d];
  return n;
}

#ifdef __cplusplus
}
#endif
#endif
