/* keel_impl.h: impls of ops, and the launches that they prepare. Part of keel_plugin.h.
 *
 * Hazards: work may run at once, or in another order, if its results are the same. keel_call.number counts
 * launches from 1, and begins again often: launch 1 comes after all work encoded on the queue before it, as
 * do copies and fills. Any other launch comes after launch keel_call.depends of the same count and all work
 * before that: the last launch with which it shares operands, results or scratch that one of the two writes;
 * 0: none. (Fault bytes are used atomically.) So a launch needs a barrier if its number is 1, or if depends
 * is not before the last barrier.
 *
 * Faults: at env->fault are 16 bytes: u32 code, u32 bound, i64 index. A launch that meets an index out of
 * range or a division by zero stores keel_call.fault | KEEL_RANGE in the code if that is still 0
 * (atomically), and goes on with any value. The thread that stored it may also store the index and, as bound,
 * the number of entries of the axis (0: unknown, or a division by zero), for the message. A run with
 * launches that may fail has bytes of its own, which Keel clears before and reads when the host looks at a
 * result of the run.
 *
 * Lifetimes: keel_call, its tensors, keel_env and *cancelled are valid during run only; encoded work keeps
 * copies of what it needs. The state of a launch lives until the work encoded with it is done. */
#ifndef KEEL_IMPL_H
#define KEEL_IMPL_H
#include "keel_host.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct keel_dev_s* keel_dev;             /* an opened device; the plugin's */
typedef struct keel_queue_s* keel_queue;         /* the plugin's; NULL for a host-memory device */
typedef struct keel_recording_s* keel_recording; /* the plugin's */

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
  KEEL_NULLABLE void* scratch; /* aligned as tensors are; shared with other launches of the queue */
  const keel_env* env;
  uint64_t scratch_bytes;   /* a host-memory device may receive a struct that ends here */
  uint32_t number, depends; /* see Hazards above */
  /* While recorded: entries of the table of record_begin, by operand, result, scratch, and last env->fault;
   * KEEL_NO_SLOT: its address is the same in each replay. Else NULL. */
  KEEL_NULLABLE const uint16_t* slots;
  /* keel_launch.param_bytes, 16-byte aligned: the launch writes them at params before it encodes its work,
   * which reads them at the device address param_address. Kept until the work is done, or the recording is
   * freed. */
  KEEL_NULLABLE void* params;
  uint64_t param_address;
} keel_call;
KEEL_SEALED(keel_call, param_address);
#define KEEL_NO_SLOT 0xffff

typedef struct keel_launch {   /* filled by prepare */
  uint32_t struct_size, flags; /* flags: 0 */
  KEEL_NULLABLE void* state;   /* for run; NULL: it needs none */
  uint64_t scratch_bytes;
  /* Computes; on a device with queues: encodes on env->queue. KEEL_UNIMPLEMENTED, with nothing encoded: not
   * for these shapes. See keel_impl.prepare. */
  keel_rc (*run)(const keel_call* call);
  KEEL_NULLABLE void (*release)(keel_dev dev, void* state);
  /* Of keel_call.params; 0: none. Devices with queues only. The node fails without KEEL_SEGMENT_SHARED. */
  uint64_t param_bytes;
  /* For people, if the impl chose among several ways: lines "node\top\tway: why", valid as long as state.
   * `keel plan` shows them. NULL: there is no more than the impl's name. */
  KEEL_NULLABLE const char* steps;
} keel_launch;
KEEL_SEALED(keel_launch, steps);

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
  /* KEEL_UNIMPLEMENTED from prepare or run: not for these dims. Keel then takes the next impl whose match
   * agrees, else the body of the op or call; only if there is none is it an error, or the session's fallback
   * runs the node. From run this holds in plans without effects. A node in a body of a control op is not
   * replaced: there it is an error, or the fallback runs the control op. */
  KEEL_NULLABLE keel_rc (*prepare)(keel_dev dev, const keel_host* host, const keel_node* node,
                                   keel_launch* launch);
  KEEL_NULLABLE keel_rc (*run)(const keel_call* call); /* used if prepare is NULL or leaves launch.run NULL */
} keel_impl;
KEEL_SEALED(keel_impl, run);

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
