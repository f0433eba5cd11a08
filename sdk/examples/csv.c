/* csv.c: a complete importer: reads a linear layer from text. Each line of a .csv file has the weights of one
 * output; the model computes y = x * weights'.
 *   cc -shared -fPIC csv.c $(pkg-config --cflags keel) -o plugins/keel-csv.so
 *   keel run layer.csv --plugins plugins -d reference -i x=1,2 */
#include <keel/keel_plugin.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WEIGHTS = 4096 };

/* The first byte of a number is weak evidence: 20 lets a more certain importer win. */
static int32_t probe(const uint8_t* data, uint64_t size) {
  return size && strchr("-.0123456789", data[0]) ? 20 : 0;
}

/* Reads all numbers; every line must have the same number of columns. */
static keel_rc read(const keel_host* host, const keel_source* source, float* weights, int64_t* shape) {
  char line[1 << 14];
  uint64_t at = 0;
  while (at < source->size) {
    const void* end = memchr(source->data + at, '\n', source->size - at);
    uint64_t length = end ? (uint64_t)((const uint8_t*)end - source->data) - at : source->size - at;
    if (length >= sizeof line) return host->fail(KEEL_INVALID, "csv: a line is too long");
    memcpy(line, source->data + at, length);
    line[length] = 0;
    at += length + 1;
    int64_t columns = 0;
    for (char *cell = line, *rest; *cell; cell = *rest ? rest + 1 : rest, columns++) {
      if (shape[0] * shape[1] + columns >= MAX_WEIGHTS)
        return host->fail(KEEL_INVALID, "csv: too many weights");
      weights[shape[0] * shape[1] + columns] = strtof(cell, &rest);
      if (rest == cell || (*rest && *rest != ','))
        return host->fail(KEEL_INVALID, "csv: a cell is not a number");
    }
    if (shape[0] && columns != shape[1]) return host->fail(KEEL_INVALID, "csv: lines differ in length");
    shape[1] = columns, shape[0]++;
  }
  return KEEL_OK;
}

static keel_rc import(const keel_host* host, const keel_source* source, const keel_kv* options,
                      uint32_t n_options, keel_edit* edit) {
  float weights[MAX_WEIGHTS];
  int64_t shape[2] = {0, 0};
  keel_rc rc = read(host, source, weights, shape);
  (void)options, (void)n_options;
  if (rc) return rc;
  keel_dim dims[2] = {0, shape[1]};
  keel_value in[2], y;
  keel_tensor tensor = {.data = weights, .device = {1, 0}, .ndim = 2, .dtype = {2, 32, 1}, .shape = shape};
  const char* names[] = {"tb"};
  keel_attr attrs[] = {{.kind = KEEL_ATTR_BOOL, .i = 1}};
  keel_node_spec node = {sizeof node, 0, "matmul", "layer", in, names, attrs, 2, 1};
  if ((rc = host->dim_symbol(edit, "rows", &dims[0]))) return rc;
  if ((rc = host->param(edit, "x", KEEL_F32, dims, 2, &in[0]))) return rc;
  if ((rc = host->constant(edit, "weights", &tensor, NULL, NULL, &in[1]))) return rc;
  if ((rc = host->add_node(edit, &node, &y, 1))) return rc;
  return host->result(edit, "y", y);
}

static const keel_importer importers[] = {{"csv", "csv", probe, import, NULL, NULL, NULL}};
static const keel_plugin csv = {
    KEEL_PLUGIN_HEADER,
    .name = "csv",
    .version = "0.1.0",
    .about = "linear layers as text",
    .importers = importers,
    .n_importers = 1,
    .importer_stride = sizeof(keel_importer),
};
KEEL_PLUGIN(csv)
