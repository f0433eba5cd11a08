/* wrong.c: a pass that swaps the operands of binary ops, which is right for additions and wrong for
 * subtractions: tests use it to find the faulty edit. */
#include <string.h>

#include "abi/keel_plugin.h"

static keel_rc turn(const keel_host* host, keel_edit* e, uint32_t node) {
  const char* op = host->node_op(host->edit_node(e, node));
  const keel_value *in, *out;
  uint32_t n_in, n_out;
  keel_rc rc;
  keel_value turned[2], old_value, new_value;
  keel_node_spec spec;
  if (strcmp(op, "add") && strcmp(op, "sub")) return KEEL_OK;
  rc = host->edit_operands(e, node, &in, &n_in, &out, &n_out);
  if (rc != KEEL_OK) return rc;
  turned[0] = in[1], turned[1] = in[0], old_value = out[0];
  memset(&spec, 0, sizeof spec);
  spec.struct_size = sizeof spec;
  spec.op = op, spec.version = 1, spec.in = turned, spec.n_in = 2;
  rc = host->edit_before(e, node);
  if (rc == KEEL_OK) rc = host->add_node(e, &spec, &new_value, 1);
  return rc == KEEL_OK ? host->edit_replace(e, old_value, new_value) : rc;
}

static keel_rc run(const keel_host* host, keel_edit* e) {
  const uint32_t* nodes;
  uint32_t list[64], n = host->edit_nodes(e, &nodes), i;
  keel_rc rc = KEEL_OK;
  if (n > 64) n = 64;
  memcpy(list, nodes, n * sizeof *list);
  for (i = 0; i < n && rc == KEEL_OK; i++) rc = turn(host, e, list[i]);
  return rc;
}

static const keel_pass passes[] = {
    {"turn", "turns operands round", KEEL_PHASE_LOWER, 1, KEEL_EXACT, 0, NULL, "layout", run},
};
static const keel_plugin wrong = {
    KEEL_PLUGIN_HEADER,
    .name = "wrong",
    .version = "1.0",
    .about = "a pass that is wrong now and then",
    .passes = passes,
    .n_passes = 1,
    .pass_stride = sizeof(keel_pass),
};
KEEL_PLUGIN(wrong)
