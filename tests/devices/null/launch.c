/* launch.c: launches compute with the reference plugin's impls as they are encoded, for the device's memory
 * is the host's. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "null.h"

static const keel_plugin* reference;
static keel_impl* impls;
static int32_t computes = 1;

void null_compute(int32_t on) { computes = on; }

static const keel_impl* row(uint32_t i) {
  return (const keel_impl*)((const char*)reference->impls + (uint64_t)i * reference->impl_stride);
}

static const keel_impl* find(const char* op) {
  for (uint32_t i = 0; i < reference->n_impls; i++)
    if (!strcmp(row(i)->op, op)) return row(i);
  return NULL;
}

/* An op that fails on its data sets the fault word, as on an asynchronous device. */
static keel_rc run(const keel_call* call) {
  count_add(COUNT_LAUNCHES, 1);
  if (!computes) return KEEL_OK;
  const keel_launch* inner = call->state;
  const keel_env env = {sizeof env, 1, &call->env->dev->quiet, NULL, NULL, call->env->cancelled, 0};
  keel_call on_host = *call;
  on_host.env = &env;
  on_host.state = inner->state;
  keel_rc rc = inner->run(&on_host);
  if (rc != KEEL_RANGE) return rc;
  uint32_t* word = (uint32_t*)(uintptr_t)call->env->fault;
  if (*word == 0) *word = call->fault | (uint32_t)rc;
  return KEEL_OK;
}

static void release(keel_dev d, void* state) {
  keel_launch* inner = state;
  (void)d;
  if (inner->release) inner->release(NULL, inner->state);
  free(inner);
}

static keel_rc prepare(keel_dev d, const keel_host* host, const keel_node* node, keel_launch* launch) {
  count_add(COUNT_PREPARES, 1);
  (void)d;
  const keel_impl* impl = find(host->node_op(node));
  keel_launch* inner = calloc(1, sizeof *inner);
  if (!inner) return host->fail(KEEL_OOM, "no memory for a launch");
  inner->struct_size = sizeof *inner;
  keel_rc rc = impl->prepare ? impl->prepare(NULL, host, node, inner) : KEEL_OK;
  if (rc != KEEL_OK) return free(inner), rc;
  if (!inner->run) inner->run = impl->run;
  launch->scratch_bytes = inner->scratch_bytes;
  launch->state = inner;
  launch->run = run;
  launch->release = release;
  return KEEL_OK;
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
    impls = calloc(reference->n_impls, sizeof *impls);
    for (uint32_t i = 0; impls && i < reference->n_impls; i++) {
      impls[i] = *row(i);
      impls[i].name = "null";
      impls[i].prepare = prepare;
      impls[i].run = NULL;
    }
  }
  *n = impls ? reference->n_impls : 0;
  return impls;
}
