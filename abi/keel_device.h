/* keel_device.h: devices, their memory and their queues. Part of keel_plugin.h.
 *
 * There are two sorts. A device with KEEL_DEVICE_HOST_MEMORY computes on ordinary memory and returns when it
 * is done; it needs no functions at all. Any other has memory of its own and works through queues; it needs
 * every function from segment_alloc to host_wait.
 *
 * Memory: the plugin allocates segments, few and large; Keel places tensors in them. Launches get device
 * addresses in keel_tensor.data and keel_call.scratch, never host pointers; data of constants in match and
 * prepare is always host memory. A segment is freed only after all work encoded on it is done.
 *
 * Ops without device code: where a device has no impl for them, Keel runs fill, broadcast_to, slice, split,
 * concat, pad and dim by at most 64 copies and fills of the compute queue. Shapes that need more need an
 * impl.
 *
 * Order: a queue executes copies, fills and launches in the order of their encoding. It may begin at once,
 * and must when submit is called, which returns a ticket: a number above all earlier tickets of the queue. A
 * ticket is done when all work encoded before it is done. Waits name existing tickets, so no wait is for work
 * that is not yet submitted. Queues are ordered by queue_wait, or by the host: work encoded after host_wait
 * or query has reported a ticket as done sees the results of its work.
 *
 * Threads: functions of the device may be called from any thread, several at once. Functions of one queue
 * (encoding and launches, too) are called by one thread at a time, except host_wait and query. Errors: a
 * code, and a message by host->fail. After a failure encoded work may still run until a later ticket of the
 * queue is done or the queue is closed. */
#ifndef KEEL_DEVICE_H
#define KEEL_DEVICE_H
#include "keel_impl.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- the device: a plugin with impls offers one kind, named after the plugin ("cpu", "cpu:0") */
enum keel_device_flag {
  KEEL_DEVICE_HOST_MEMORY = 1, /* of keel_device */
  /* Of keel_device_info: the host's processor imitates another device. Only a user who names it gets it. */
  KEEL_DEVICE_SOFTWARE = 2,
  KEEL_DEVICE_INTEGRATED = 4 /* of keel_device_info: part of the host's processor; "auto" passes it over */
};
typedef struct keel_device_info { /* zeroed by Keel before the call */
  uint32_t struct_size, flags;
  int32_t dl_type, dl_id; /* as in DLPack; 1: CPU, 2: CUDA, 7: Vulkan, 12: another */
  uint64_t memory;        /* total bytes; 0: not known */
  char description[128];
  uint64_t memory_free;   /* bytes; 0: not known */
  uint64_t max_segment;   /* largest segment in bytes; 0: limited by memory only */
  uint64_t alignment;     /* of tensors in a segment, in bytes: a power of two up to 4096; 0: 64 */
  uint8_t uuid[16];       /* of the hardware, as its driver reports it; zeros: not known */
  char capabilities[128]; /* for people: "vulkan 1.3, f16, subgroups of 32"; "": none stated */
} keel_device_info;
KEEL_SEALED(keel_device_info, capabilities);

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
  KEEL_QUEUE_COMPUTE = 0,  /* everything */
  KEEL_QUEUE_TRANSFER = 1, /* copies only */
  /* Optional (else KEEL_UNIMPLEMENTED from queue_open, and downloads use the transfer queue): copies to
   * READBACK segments, which then wait for no upload. */
  KEEL_QUEUE_DOWNLOAD = 2
};

typedef struct keel_device { /* all functions NULL: one host-memory device that needs no opening */
  uint32_t struct_size, flags;
  /* Number of devices; NULL: 1. 0: none here, and host->fail says why, for `keel doctor` and for the error
   * when such a device is named. Called once, when a device of the plugin is named or all devices are
   * listed: it may load a driver. */
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
  /* Finishes or drops encoded work; no memory is touched afterwards. Submitted work of all queues is done by
   * then, or has failed. */
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

  /* Recordings, all four or none. A run records its launches, which then do not execute, and later runs
   * replay them with other addresses. Between record_begin and record_end only launches are encoded on the
   * queue, a compute queue. table: n addresses; keel_call.slots specifies which entry an address is relative
   * to. KEEL_UNIMPLEMENTED from record_begin (nothing is begun), from a launch or from record_end: these
   * launches are encoded in each run. */
  KEEL_NULLABLE keel_rc (*record_begin)(keel_queue queue, const uint64_t* table KEEL_COUNT(n), uint32_t n);
  KEEL_NULLABLE keel_rc (*record_end)(keel_queue queue,
                                      KEEL_NULLABLE keel_recording* out); /* NULL: drops it */
  /* Encodes the recorded launches. An address with slot i becomes address + table[i] - the table[i] of
   * record_begin, modulo 2^64. The table is borrowed; earlier replays may still execute. */
  KEEL_NULLABLE keel_rc (*replay)(keel_queue queue, keel_recording recording,
                                  const uint64_t* table KEEL_COUNT(n), uint32_t n);
  /* After the work of its replays is done, before the states of its launches are released. */
  KEEL_NULLABLE void (*recording_free)(keel_dev dev, keel_recording recording);
  /* On a compute queue, after all work encoded before and before later work: writes the device's clock, u64
   * nanoseconds, to a KEEL_SEGMENT_READBACK; offset is a multiple of 8. NULL: profiles wait for each launch.
   */
  KEEL_NULLABLE keel_rc (*timestamp)(keel_queue queue, const keel_segment* to, uint64_t offset);
  /* Optional, both or neither: a segment for memory that Keel did not allocate, of any alignment.
   * DEVICE: memory that another library made on this device, by its device address; the segment begins there.
   * STAGING, READBACK: memory of the program, for the copies of one upload or download of 16 MiB or more,
   * which then need no staging memory; the call that moves the array waits for them. KEEL_UNIMPLEMENTED: not
   * this memory; a transfer then uses staging memory. segment_unwrap: after all work encoded on the segment
   * is done; the memory is valid until then. */
  KEEL_NULLABLE keel_rc (*segment_wrap)(keel_dev dev, uint32_t kind, void* memory, uint64_t bytes,
                                        keel_segment* out);
  KEEL_NULLABLE void (*segment_unwrap)(keel_dev dev, const keel_segment* segment);
  /* Why device i computes this op for no element of this dtype, such as "the driver has no shaderFloat64",
   * for `keel ops` and for errors; NULL: its impls decide. dtype is that of a type variable of the op. The
   * text is constant. Any thread may call it, also before the device is open. */
  KEEL_NULLABLE const char* (*lacks)(uint32_t i, const char* op, keel_dt dtype);
} keel_device;
KEEL_SEALED(keel_device, lacks);
/* The whole table of a host-memory device without lanes; each of the four functions may be NULL. */
#define KEEL_HOST_DEVICE(count, info, open, close)                                                      \
  {                                                                                                     \
    (uint32_t)sizeof(keel_device), KEEL_DEVICE_HOST_MEMORY, count, info, open, close, NULL, NULL, NULL, \
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
        NULL, NULL                                                                                      \
  }

#ifdef __cplusplus
}
#endif
#endif
