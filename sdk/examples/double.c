/* double.c: a complete pass: x + x becomes x * 2.
 *   cc -shared -fPIC double.c $(pkg-config --cflags keel) -o plugins/keel-double.so
 *   keel optimize sum.keelt --diff */
#include <keel/keel_plugin.h>
#include <string.h>

/* Replaces the sum of x and x by x * 2. */
static keel_rc rewrite(const keel_host* host, keel_edit* edit, uint32_t node) {
  const keel_value *in, *out;
  uint32_t n_in;
  keel_tensor type;
  keel_value operands[2], product;
  float two = 2;
  keel_tensor constant = {.data = &two, .device = {1, 0}, .dtype = {2, 32, 1}};
  keel_rc rc = host->edit_operands(edit, node, &in, &n_in, &out, NULL);
  if (rc || n_in != 2 || in[0] != in[1]) return rc;
  if ((rc = host->value_type(edit, in[0], &type)) || keel_dt_of(&type) != KEEL_F32) return rc;
  keel_value sum = out[0]; /* operand and result lists are valid until the next edit */
  operands[0] = in[0];
  keel_node_spec mul = {sizeof mul, 0, "mul", NULL, operands, NULL, NULL, 2, 0};
  if ((rc = host->constant(edit, NULL, &constant, NULL, NULL, &operands[1]))) return rc;
  if ((rc = host->edit_before(edit, node))) return rc;
  if ((rc = host->add_node(edit, &mul, &product, 1))) return rc;
  return host->edit_replace(edit, sum, product);
}

static keel_rc run(const keel_host* host, keel_edit* edit) {
  const uint32_t* nodes;
  uint32_t n = host->edit_nodes(edit, &nodes);
  for (uint32_t i = 0; i < n; i++, host->edit_nodes(edit, &nodes)) {
    const keel_node* node = host->edit_node(edit, nodes[i]);
    keel_rc rc = node && !strcmp(host->node_op(node), "add") ? rewrite(host, edit, nodes[i]) : KEEL_OK;
    if (rc) return rc;
  }
  return KEEL_OK;
}

static const keel_pass passes[] = {
    {"double", "x + x as x * 2", KEEL_PHASE_CANON, 1, KEEL_EXACT, 0, NULL, NULL, run},
};
static const keel_plugin plugin = {
    KEEL_PLUGIN_HEADER,
    .name = "double",
    .version = "0.1.0",
    .about = "x + x as x * 2",
    .passes = passes,
    .n_passes = 1,
    .pass_stride = sizeof(keel_pass),
};
KEEL_PLUGIN(plugin)
