/* claims.c: a device that only decides which calls it would run whole, so that tests can observe the
 * groups that passes of phase lower offer. Its five devices accept: all calls; calls of at most 3 nodes;
 * calls without the op tanh and without concat; none; all calls and a few ops. It runs nothing: another
 * device runs the bodies of the outlined calls. */
#include <string.h>

#include "abi/keel_plugin.h"

enum { ALL, SMALL, PICKY, NONE, OPS, DEVICES };

static int has(const keel_host* host, const keel_body* body, const char* op) {
  uint32_t i;
  for (i = 0; i < body->n_nodes; i++)
    if (!strcmp(host->node_op(body->nodes[i].node), op)) return 1;
  return 0;
}

static int32_t match(keel_dev dev, const keel_host* host, const keel_node* node) {
  keel_body body;
  body.struct_size = sizeof body;
  if (host->node_body(node, &body) != KEEL_OK) return 0;
  switch ((int)((intptr_t)dev - 1)) {
    case ALL:
    case OPS:
      return 1;
    case SMALL:
      return body.n_nodes <= 3;
    case PICKY:
      return !has(host, &body, "tanh") && !has(host, &body, "concat");
    default:
      return 0;
  }
}

static int32_t match_op(keel_dev dev, const keel_host* host, const keel_node* node) {
  (void)host, (void)node;
  return (intptr_t)dev - 1 == OPS;
}

static keel_rc run(const keel_call* call) {
  return call->env->host->fail(KEEL_UNIMPLEMENTED, "this device runs nothing");
}

static uint32_t count(const keel_host* host) {
  (void)host;
  return DEVICES;
}

static keel_rc open_device(const keel_host* host, uint32_t i, const keel_kv* options, uint32_t n_options,
                           keel_dev* out) {
  (void)host, (void)options, (void)n_options;
  *out = (keel_dev)(intptr_t)(i + 1);
  return KEEL_OK;
}

static const keel_impl impls[] = {
    {"call", 1, 1, NULL, "claim", 0, KEEL_IMPL_ANY_DIMS, match, NULL, run},
    {"matmul", 1, 1, NULL, "claim", 0, KEEL_IMPL_ANY_DIMS, match_op, NULL, run},
    {"matmul_integer", 1, 1, NULL, "claim", 0, KEEL_IMPL_ANY_DIMS, match_op, NULL, run},
    {"conv_integer", 1, 1, NULL, "claim", 0, KEEL_IMPL_ANY_DIMS, match_op, NULL, run},
    {"max_pool", 1, 1, NULL, "claim", 0, KEEL_IMPL_ANY_DIMS, match_op, NULL, run},
    {"gather", 1, 1, NULL, "claim", 0, KEEL_IMPL_ANY_DIMS, match_op, NULL, run},
    {"max_pool_index", 1, 1, NULL, "claim", 0, KEEL_IMPL_ANY_DIMS, match_op, NULL, run},
    {"scatter_add", 1, 1, NULL, "claim", 0, KEEL_IMPL_ANY_DIMS, match_op, NULL, run},
};
static const keel_device device = KEEL_HOST_DEVICE(count, NULL, open_device, NULL);
static const keel_plugin claims = {
    KEEL_PLUGIN_HEADER, .name = "claims", .version = "1.0", .about = "takes calls and runs nothing",
    .device = &device,  .impls = impls,   .n_impls = 8,     .impl_stride = sizeof(keel_impl),
};
KEEL_PLUGIN(claims)
