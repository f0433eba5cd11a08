/* plugin.c: the counting device "null": memory and queues of its own, in C against keel_plugin.h alone. */
#include <stdlib.h>
#include <string.h>

#include "null.h"

static keel_rc keep_quiet(keel_rc code, const char* message) {
  (void)message;
  return code;
}

static keel_rc info(const keel_host* host, uint32_t i, keel_device_info* out) {
  (void)host, (void)i;
  out->dl_type = 12;
  strcpy(out->description, "counts submits, waits and copies");
  return KEEL_OK;
}

static keel_rc device_open(const keel_host* host, uint32_t i, const keel_kv* options, uint32_t n,
                           keel_dev* out) {
  (void)i, (void)options, (void)n;
  uint32_t n_impls;
  if (!null_impls(&n_impls))
    return host->fail(KEEL_UNAVAILABLE, "the reference plugin is not where it was built");
  keel_dev d = malloc(sizeof *d);
  if (!d) return host->fail(KEEL_OOM, "no memory for a device");
  d->quiet = *host;
  d->quiet.fail = keep_quiet;
  *out = d;
  return KEEL_OK;
}

static void device_close(keel_dev d) { free(d); }

static keel_rc segment_alloc(keel_dev d, uint32_t kind, uint64_t bytes, keel_segment* out) {
  void* memory;
  if (posix_memalign(&memory, 4096, bytes ? bytes : 1))
    return d->quiet.fail(KEEL_OOM, "the host's memory is full");
  const keel_segment made = {memory, (uint64_t)(uintptr_t)memory, kind ? memory : NULL, bytes, kind, 0};
  *out = made;
  count_add(COUNT_SEGMENTS, 1);
  return KEEL_OK;
}

static void segment_free(keel_dev d, const keel_segment* segment) {
  (void)d;
  free(segment->handle);
  count_add(COUNT_SEGMENTS, -1);
}

static keel_rc copy(keel_queue q, const keel_segment* to, uint64_t to_offset, const keel_segment* from,
                    uint64_t from_offset, uint64_t bytes) {
  (void)q;
  count_copy(to, from, bytes);
  memmove((char*)to->handle + to_offset, (const char*)from->handle + from_offset, bytes);
  return KEEL_OK;
}

static keel_rc fill(keel_queue q, const keel_segment* to, uint64_t offset, uint64_t bytes, uint32_t value) {
  (void)q;
  count_add(COUNT_FILLS, 1);
  for (uint64_t at = 0; at < bytes; at += 4) memcpy((char*)to->handle + offset + at, &value, 4);
  return KEEL_OK;
}

static const keel_device device = {.struct_size = sizeof device,
                                   .info = info,
                                   .open = device_open,
                                   .close = device_close,
                                   .segment_alloc = segment_alloc,
                                   .segment_free = segment_free,
                                   .queue_open = null_queue_open,
                                   .queue_close = null_queue_close,
                                   .copy = copy,
                                   .fill = fill,
                                   .submit = null_submit,
                                   .queue_wait = null_queue_wait,
                                   .host_wait = null_host_wait,
                                   .query = null_query};

static const keel_plugin* describe(void) {
  static keel_plugin plugin = {
      KEEL_PLUGIN_HEADER, .name = "null",
      .version = "0.1.0", .about = "A device with queues that counts submits, waits and copies",
      .device = &device,  .impl_stride = sizeof(keel_impl)};
  plugin.impls = null_impls(&plugin.n_impls);
  return &plugin;
}

KEEL_PLUGIN(*describe())
