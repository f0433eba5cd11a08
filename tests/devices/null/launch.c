/* launch.c: launches compute with the reference plugin's impls as they are encoded, for the device's memory
 * is the host's. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "null.h"

static const keel_plugin* reference;
static keel_impl* impls;
static int32_t computes = 1, declines_in_run, watches;
static char declined[32];
static uint64_t hashes[256][2];
static uint32_t n_hashes;
static const keel_host* opened;
static uint64_t param_bytes, scratch_bytes;

void null_compute(int32_t on) { computes = on; }
int32_t null_computes(void) { return computes; }
void null_params(uint64_t bytes) { param_bytes = bytes; }
void null_scratch(uint64_t bytes) { scratch_bytes = bytes; }

void null_decline(const char* op, int32_t in_run) {
  strncpy(declined, op, sizeof declined - 1);
  declines_in_run = in_run;
}

void null_watch_calls(int32_t on) {
  watches = on;
  n_hashes = 0;
}

uint64_t null_hash(uint32_t i, int32_t with_dims) { return i < n_hashes ? hashes[i][with_dims] : 0; }

int32_t null_merge_dims(const keel_tensor* const* tensors, uint32_t n, int64_t* sizes, int64_t* strides,
                        int32_t* ndim) {
  return opened ? opened->merge_dims(tensors, n, sizes, strides, ndim) : KEEL_UNAVAILABLE;
}

void null_opened(const keel_host* host) { opened = host; }

static keel_rc decline(const keel_host* host) {
  return host->fail(KEEL_UNIMPLEMENTED, "declined by the test");
}

static const keel_impl* row(uint32_t i) {
  return (const keel_impl*)((const char*)reference->impls + (uint64_t)i * reference->impl_stride);
}

static const keel_impl* find(const char* op) {
  for (uint32_t i = 0; i < reference->n_impls; i++)
    if (!strcmp(row(i)->op, op)) return row(i);
  return NULL;
}

/* A launch: that of the reference, and a matmul's second operand in memory of the launch. */
struct state {
  keel_launch inner;
  char op[32];
  keel_memory* packed;
  uint64_t address;
};

/* Parameters of a launch, if it has any; otherwise its call has them. */
typedef struct {
  const struct state* mine;
  uint64_t fault;
} params;

/* An op that fails on its data sets the fault word, as on an asynchronous device. */
keel_rc null_execute(const keel_call* call, keel_dev d, uint64_t fault) {
  params p = {call->state, call->fault};
  if (call->params) p = *(const params*)(uintptr_t)call->param_address;
  const keel_env env = {sizeof env, 1, &d->quiet, NULL, NULL, call->env->cancelled, 0};
  keel_call on_host = *call;
  on_host.env = &env;
  on_host.state = p.mine->inner.state;
  const keel_tensor* in[2] = {call->in[0], NULL};
  keel_tensor weights;
  if (p.mine->packed) { /* not the operand's own memory, so the upload is tested */
    weights = *call->in[1];
    weights.data = (void*)(uintptr_t)p.mine->address;
    in[1] = &weights;
    on_host.in = in;
  }
  keel_rc rc = p.mine->inner.run(&on_host);
  if (rc != KEEL_RANGE) return rc;
  uint32_t* word = (uint32_t*)(uintptr_t)fault;
  if (*word == 0) *word = (uint32_t)p.fault | (uint32_t)rc;
  return KEEL_OK;
}

static keel_rc run(const keel_call* call) {
  const struct state* mine = call->state;
  if (declines_in_run && !strcmp(declined, mine->op)) return decline(call->env->host);
  null_order(call);
  if (call->params) *(params*)call->params = (params){call->state, call->fault};
  keel_recording recording = *null_open_recording(call->env->queue);
  if (!recording != !call->slots) return KEEL_INTERNAL;
  if (recording) return null_record(call, recording);
  count_add(COUNT_LAUNCHES, 1);
  return computes ? null_execute(call, call->env->dev, call->env->fault) : KEEL_OK;
}

static void release(keel_dev d, void* state) {
  struct state* mine = state;
  if (mine->inner.release) mine->inner.release(NULL, mine->inner.state);
  if (mine->packed) d->host->memory_free(mine->packed);
  free(mine);
}

static keel_rc pack(const keel_host* host, const keel_node* node, struct state* mine) {
  keel_tensor b;
  if (strcmp(mine->op, "matmul") || host->node_in(node, 1, &b) || !b.data) return KEEL_OK;
  return host->memory_new(node, b.data, (uint64_t)keel_count(&b) * b.dtype.bits / 8, &mine->packed,
                          &mine->address);
}

static keel_rc prepare(keel_dev d, const keel_host* host, const keel_node* node, keel_launch* launch) {
  count_add(COUNT_PREPARES, 1);
  if (!declines_in_run && !strcmp(declined, host->node_op(node))) return decline(host);
  const keel_impl* impl = find(host->node_op(node));
  struct state* mine = calloc(1, sizeof *mine);
  if (!mine) return host->fail(KEEL_OOM, "no memory for a launch");
  keel_launch* inner = &mine->inner;
  inner->struct_size = sizeof *inner;
  strncpy(mine->op, host->node_op(node), sizeof mine->op - 1);
  keel_rc rc = impl->prepare ? impl->prepare(NULL, host, node, inner) : KEEL_OK;
  if (rc != KEEL_OK) return free(mine), rc;
  if ((rc = pack(host, node, mine)) != KEEL_OK) return release(d, mine), rc;
  if (!inner->run) inner->run = impl->run;
  launch->scratch_bytes = inner->scratch_bytes > scratch_bytes ? inner->scratch_bytes : scratch_bytes;
  launch->param_bytes = param_bytes;
  launch->state = mine;
  launch->run = run;
  launch->release = release;
  return KEEL_OK;
}

static int32_t match_call(keel_dev d, const keel_host* host, const keel_node* node) {
  (void)d, (void)host, (void)node;
  return watches;
}

static keel_rc prepare_call(keel_dev d, const keel_host* host, const keel_node* node, keel_launch* launch) {
  (void)d, (void)launch;
  if (n_hashes < 256) {
    hashes[n_hashes][0] = host->node_hash(node, 0);
    hashes[n_hashes++][1] = host->node_hash(node, KEEL_HASH_DIMS);
  }
  return decline(host);
}

static const keel_plugin* load_reference(void) {
  const char* wanted = getenv("NULL_COMPUTE");
  if (wanted) computes = atoi(wanted);
  void* library = dlopen(NULL_REFERENCE, RTLD_NOW | RTLD_LOCAL);
  const keel_plugin* (*entry)(void) = NULL;
  if (library) *(void**)&entry = dlsym(library, "keel_plugin_v0"); /* as POSIX has it */
  return entry ? entry() : NULL;
}

const keel_impl* null_impls(uint32_t* n) {
  if (!impls && (reference = load_reference())) {
    impls = calloc(reference->n_impls + 1, sizeof *impls);
    for (uint32_t i = 0; impls && i < reference->n_impls; i++) {
      impls[i] = *row(i);
      impls[i].name = "null";
      impls[i].prepare = prepare;
      impls[i].run = NULL;
    }
    const keel_impl call = {"call", 1, 1, NULL, "null", 0, 0, match_call, prepare_call, NULL};
    if (impls) impls[reference->n_impls] = call;
  }
  *n = impls ? reference->n_impls + 1 : 0;
  return impls;
}
