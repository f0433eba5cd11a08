/* keel_device.h: devices: their memory and queues, the launches that run on them, and impls of ops. Part of
 * keel_plugin.h.
 *
 * There are two sorts. A device with KEEL_DEVICE_HOST_MEMORY computes on ordinary memory and returns when it
 * is done; it needs no functions at all. Any other has memory of its own and works through queues; it needs
 * every function from segment_alloc to host_wait.
 *
 * Memory: the plugin allocates segments, few and large; Keel places tensors in them. Launches get device
 * addresses in keel_tensor.data and keel_call.scratch, never host pointers; data of constants in match and
 * prepare is always host memory. A segment is freed only after all work encoded on it is done.
 *
 * Order: a queue executes copies, fills and launches in the order of their encoding. It may begin at once,
 * and must when submit is called, which returns a ticket: a number above all earlier tickets of the queue. A
 * ticket is done when all work encoded before it is done. Waits name existing tickets, so no wait is for work
 * that is not yet submitted. Queues are ordered by queue_wait, or by the host: work encoded after host_wait
 * or query has reported a ticket as done sees the results of its work.
 *
 * Faults: at env->fault are 16 bytes: u32 code, u32 bound, i64 index. A launch that meets an index out of
 * range or a division by zero stores keel_call.fault | KEEL_RANGE in the code if that is still 0
 * (atomically), and goes on with any value. The thread that stored it may also store the index and, as bound,
 * the number of entries of the axis (0: unknown, or a division by zero), for the message. A run with
 * launches that may fail has bytes of its own, which Keel clears before and reads when the host looks at a
 * result of the run.
 *
 * Lifetimes: keel_call, its tensors, keel_env and *cancelled are valid during run only; encoded work keeps
 * copies of what it needs. The state of a launch lives until the work encoded with it is done.
 *
 * Threads: functions of the device may be called from any thread, several at once. Functions of one queue
 * (encoding and launches, too) are called by one thread at a time, except host_wait and query. Errors: a
 * code, and a message by host->fail. After a failure encoded work may still run until a later ticket of the
 * queue is done or the queue is closed. */
#ifndef KEEL_DEVICE_H
#define KEEL_DEVICE_H
#include "keel_host.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct keel_dev_s* keel_dev;     /* an opened device; the plugin's */
typedef struct keel_queue_s* keel_queue; /* the plugin's; NULL for a host-memory device */

/* ---- the launch: a node prepared for a device */
typedef struct keel_env {        /* shared by all launches of a run */
  uint32_t struct_size, threads; /* threads: how many this launch may use */
  const keel_host* host;
  keel_dev dev;
  KEEL_NULLABLE keel_queue queue;    /* NULL: a host-memory device */
  const volatile int32_t* cancelled; /* non-zero: stop soon and return KEEL_CANCELLED */
  uint64_t fault;                    /* device address of this run's fault bytes; 0: host memory */
} keel_env;
KEEL_SEALED(keel_env, fault);

/* Flags of a call. FLAT: every operand and result is contiguous and has either `count` elements or, if bit
 * KEEL_CALL_ONE(i) is set for it, one: an elementwise impl then reads no shape. */
enum keel_call_flag { KEEL_CALL_FLAT = 1 };
#define KEEL_CALL_ONE(i) (2u << (i)) /* i: operand 0 to 15 */
typedef struct keel_call {
  uint32_t struct_size, flags;
  uint16_t n_in, n_out;
  uint32_t fault; /* value ORed with the error code in the fault bytes: launch number << 8 */
  int64_t count;  /* elements of result 0 */
  KEEL_HOLES const keel_tensor* const* in KEEL_COUNT(n_in); /* NULL: an omitted optional operand */
  keel_tensor* const* out KEEL_COUNT(n_out);                /* with memory */
  KEEL_NULLABLE void* state;   /* from prepare; read-only, as concurrent runs share it */
  KEEL_NULLABLE void* scratch; /* scratch_bytes, 64-byte aligned, private to this call; NULL: none */
  const keel_env* env;
} keel_call;
KEEL_SEALED(keel_call, env);

typedef struct keel_launch {   /* filled by prepare */
  uint32_t struct_size, flags; /* flags: 0 */
  KEEL_NULLABLE void* state;   /* for run; NULL: it needs none */
  uint64_t scratch_bytes;
  /* Computes; on a device with queues: encodes on env->queue. KEEL_UNIMPLEMENTED, with nothing encoded: not
   * for these shapes; a session with a fallback then runs the node there. */
  keel_rc (*run)(const keel_call* call);
  KEEL_NULLABLE void (*release)(keel_dev dev, void* state);
} keel_launch;
KEEL_SEALED(keel_launch, release);

/* ---- impls: device code for ops of the catalogue */
enum keel_impl_flag {
  KEEL_IMPL_ANY_DIMS = 1,   /* one prepared launch serves all dims (it sees -1); else one for each shape */
  KEEL_IMPL_INPLACE = 2,    /* result 0 may share memory with an operand of the same type */
  KEEL_IMPL_THREAD_BITS = 4 /* results may depend on keel_env.threads; `keel ops` says so */
};
typedef struct keel_impl {
  const char* op;
  uint32_t ver_min, ver_max;       /* inclusive */
  KEEL_NULLABLE const char* types; /* by type variable of the catalogue: "T=f32|f64 I=i32"; NULL: all types */
  KEEL_NULLABLE const char* name;  /* shown by `keel ops`: "oneDNN matmul"; NULL: the plugin's name */
  int32_t priority;                /* higher is tried first */
  uint32_t flags;
  /* 0: not for this node. NULL: for all. */
  KEEL_NULLABLE int32_t (*match)(keel_dev dev, const keel_host* host, const keel_node* node);
  KEEL_NULLABLE keel_rc (*prepare)(keel_dev dev, const keel_host* host, const keel_node* node,
                                   keel_launch* launch);
  KEEL_NULLABLE keel_rc (*run)(const keel_call* call); /* used if prepare is NULL or leaves launch.run NULL */
} keel_impl;
KEEL_SEALED(keel_impl, run);

/* ---- the device: a plugin with impls offers one kind, named after the plugin ("cpu", "cpu:0") */
enum keel_device_flag { KEEL_DEVICE_HOST_MEMORY = 1 };
typedef struct keel_device_info { /* zeroed by Keel before the call */
  uint32_t struct_size, flags;
  int32_t dl_type, dl_id; /* as in DLPack; 1: CPU, 2: CUDA, 7: Vulkan, 12: another */
  uint64_t memory;        /* total bytes; 0: not known */
  char description[128];
  uint64_t memory_free; /* bytes; 0: not known */
  uint64_t max_segment; /* largest segment in bytes; 0: limited by memory only */
  uint64_t alignment;   /* of tensors in a segment, in bytes: a power of two up to 4096; 0: 64 */
} keel_device_info;
KEEL_SEALED(keel_device_info, alignment);

enum keel_segment_kind {
  KEEL_SEGMENT_DEVICE = 0,   /* memory that launches work on */
  KEEL_SEGMENT_STAGING = 1,  /* host memory that the device reads: for uploads */
  KEEL_SEGMENT_READBACK = 2, /* cached host memory that the device writes: for downloads */
  /* Optional (else KEEL_UNIMPLEMENTED): small memory that launches and the host both use, without copies. The
   * host's writes are visible to work encoded afterwards, the device's to the host when the ticket is done.
   */
  KEEL_SEGMENT_SHARED = 3
};
typedef struct keel_segment {
  KEEL_NULLABLE void* handle; /* the plugin's */
  uint64_t address; /* of the first byte on the device, aligned as the info says; DEVICE, SHARED: not 0 */
  KEEL_NULLABLE void* host; /* the same bytes for the host; DEVICE: NULL */
  uint64_t bytes;           /* requested, or more */
  uint32_t kind, reserved;
} keel_segment;
KEEL_SEALED(keel_segment, reserved);

enum keel_queue_kind {
  KEEL_QUEUE_COMPUTE = 0, /* everything */
  KEEL_QUEUE_TRANSFER = 1 /* copies only */
};

typedef struct keel_device { /* all functions NULL: one host-memory device that needs no opening */
  uint32_t struct_size, flags;
  /* Number of devices; NULL: 1. 0: none here, and host->fail says why, for `keel doctor`. */
  KEEL_NULLABLE uint32_t (*count)(const keel_host* host);
  KEEL_NULLABLE keel_rc (*info)(const keel_host* host, uint32_t i, keel_device_info* out);
  KEEL_NULLABLE keel_rc (*open)(const keel_host* host, uint32_t i,
                                const keel_kv* options KEEL_COUNT(n_options), uint32_t n_options,
                                keel_dev* out);
  KEEL_NULLABLE void (*close)(keel_dev dev); /* after its queues are closed and its segments freed */

  KEEL_NULLABLE keel_rc (*segment_alloc)(keel_dev dev, uint32_t kind, uint64_t bytes,
                                         keel_segment* out); /* KEEL_OOM: full */
  KEEL_NULLABLE void (*segment_free)(keel_dev dev, const keel_segment* segment);
  KEEL_NULLABLE keel_rc (*queue_open)(keel_dev dev, uint32_t kind, keel_queue* out);
  /* Finishes or drops encoded work; no memory is touched afterwards. */
  KEEL_NULLABLE void (*queue_close)(keel_queue queue);
  /* Between segments of this device, of any kind. Offsets and sizes in bytes, any alignment. */
  KEEL_NULLABLE keel_rc (*copy)(keel_queue queue, const keel_segment* to, uint64_t to_offset,
                                const keel_segment* from, uint64_t from_offset, uint64_t bytes);
  /* Repeats a u32; offset and bytes are multiples of 4. On a compute queue, DEVICE segments only. */
  KEEL_NULLABLE keel_rc (*fill)(keel_queue queue, const keel_segment* to, uint64_t offset, uint64_t bytes,
                                uint32_t value);
  KEEL_NULLABLE keel_rc (*submit)(keel_queue queue, uint64_t* ticket); /* tickets begin at 1 */
  /* Work encoded on this queue from now on begins after that ticket of another queue of this device. */
  KEEL_NULLABLE keel_rc (*queue_wait)(keel_queue queue, keel_queue other, uint64_t ticket);
  /* Blocks until the ticket is done; KEEL_CANCELLED: not done within timeout (nanoseconds). Returns an error
   * of the device that occurred before the ticket. */
  KEEL_NULLABLE keel_rc (*host_wait)(keel_queue queue, uint64_t ticket, uint64_t timeout);
  /* The last ticket that is done; NULL: Keel only waits. */
  KEEL_NULLABLE keel_rc (*query)(keel_queue queue, uint64_t* done);
  /* On a transfer queue: into a segment of its device, from one of another device of this plugin, whose bytes
   * stay unchanged until the copy is done. NULL, or KEEL_UNIMPLEMENTED with nothing encoded: not between
   * these two; Keel then copies through host memory. */
  KEEL_NULLABLE keel_rc (*copy_from)(keel_queue queue, const keel_segment* to, uint64_t to_offset,
                                     keel_dev other, const keel_segment* from, uint64_t from_offset,
                                     uint64_t bytes);
  /* Host-memory devices, both or neither: independent launches of a run in parallel. run_lanes calls
   * lane(arg) on up to n threads at once, at least once, and returns when all calls have returned; launches
   * of a lane have env->threads 1 and should use its thread only. cost: nanoseconds of a node with so many
   * threads, all dims being numbers; 0: not known. Launches run in parallel where it is faster by these
   * estimates. */
  KEEL_NULLABLE void (*run_lanes)(keel_dev dev, uint32_t n, void (*lane)(void* arg), void* arg);
  KEEL_NULLABLE uint64_t (*cost)(keel_dev dev, const keel_host* host, const keel_node* node,
                                 uint32_t threads);
} keel_device;
KEEL_SEALED(keel_device, cost);
/* The whole table of a host-memory device without lanes; each of the four functions may be NULL. */
#define KEEL_HOST_DEVICE(count, info, open, close)                                                      \
  {                                                                                                     \
    (uint32_t)sizeof(keel_device), KEEL_DEVICE_HOST_MEMORY, count, info, open, close, NULL, NULL, NULL, \
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL                                      \
  }

/* ---- for impls */
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
