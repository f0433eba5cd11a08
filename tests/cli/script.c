/* script.c: an importer for tests: each line of a .script file is one call of the host, so that a test can
 * write any module, and any misuse. Blanks separate words; `-` is an empty list; lists have commas.
 *   in NAME                         later lines write this graph: "main", or one made here
 *   var NAME DTYPE DIMS NUMBERS     const NAME DTYPE DIMS NUMBERS     param NAME DTYPE DIMS
 *   node OUTS OP INS ATTR...        ATTR: name:kind:value; kind i, or g (a graph), v (a variable)
 *   result NAME VALUE     rule TEXT     entry NAME     meta KEY VALUE     gradient OUTS Y XS
 * An unknown graph, variable or value is number 999: the host reports it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/keel_plugin.h"

enum { MOST = 64, UNKNOWN = 999 };
typedef struct {
  char name[32];
  int64_t number;
  int graph; /* of a value; -1: graphs and variables */
} thing;
typedef struct {
  const keel_host* host;
  keel_edit *module, *edit, *edits[MOST];
  int here, n_edits, n_graphs, n_variables, n_values;
  thing graphs[MOST], variables[MOST], values[MOST];
} state;

static int64_t find(const thing* things, int n, const char* name, int graph) {
  for (int i = 0; i < n; i++)
    if (!strcmp(things[i].name, name) && things[i].graph == graph) return things[i].number;
  return UNKNOWN;
}
static void add(thing* things, int* n, const char* name, int64_t number, int graph) {
  if (*n < MOST) snprintf(things[*n].name, sizeof things->name, "%s", name);
  if (*n < MOST) things[*n].number = number, things[(*n)++].graph = graph;
}

/* The parts of a list; they stay valid until the next line. */
static uint32_t split(char* list, char** parts, const char* between) {
  uint32_t n = 0;
  char* rest = NULL;
  if (!strcmp(list, "-")) return 0;
  for (char* at = strtok_r(list, between, &rest); at && n < MOST; at = strtok_r(NULL, between, &rest))
    parts[n++] = at;
  return n;
}

static keel_dt dtype(const char* name) {
  return !strcmp(name, "f32") ? KEEL_F32 : !strcmp(name, "i32") ? KEEL_I32 : 0;
}

static keel_rc dims(state* s, char* list, keel_dim* out, int32_t* n) {
  char* parts[MOST];
  *n = (int32_t)split(list, parts, ",");
  for (int32_t i = 0; i < *n && i < KEEL_MAX_RANK; i++) {
    char* end;
    out[i] = strtol(parts[i], &end, 10);
    keel_rc rc = *end ? s->host->dim_symbol(s->edit, parts[i], &out[i]) : KEEL_OK;
    if (rc) return rc;
  }
  return KEEL_OK;
}

static keel_rc tensor(state* s, char** w, keel_tensor* t, keel_dim* shape, int32_t* data) {
  char* parts[MOST];
  uint32_t n = split(w[4], parts, ",");
  keel_dt type = dtype(w[2]);
  *t = (keel_tensor){.data = data, .device = {1, 0}, .shape = shape};
  t->dtype = (keel_dtype){(uint8_t)type, (uint8_t)(type >> 8), (uint16_t)(type >> 16)};
  for (uint32_t i = 0; i < n; i++)
    if (type == KEEL_F32)
      ((float*)data)[i] = strtof(parts[i], NULL);
    else
      data[i] = atoi(parts[i]);
  return dims(s, w[3], shape, &t->ndim);
}

static keel_rc var(state* s, char** w) {
  keel_dim shape[KEEL_MAX_RANK];
  int32_t data[MOST];
  keel_tensor t;
  uint32_t number;
  keel_rc rc = tensor(s, w, &t, shape, data);
  if (!rc) rc = s->host->edit_variable(s->edit, w[1], &t, &number);
  if (!rc) add(s->variables, &s->n_variables, w[1], number, -1);
  return rc;
}

static keel_rc constant(state* s, char** w) {
  keel_dim shape[KEEL_MAX_RANK];
  int32_t data[MOST];
  keel_tensor t;
  keel_value v;
  keel_rc rc = tensor(s, w, &t, shape, data);
  if (!rc) rc = s->host->constant(s->edit, NULL, &t, NULL, NULL, &v);
  if (!rc) add(s->values, &s->n_values, w[1], v, s->here);
  return rc;
}

static keel_rc param(state* s, char** w) {
  keel_dim shape[KEEL_MAX_RANK];
  int32_t n;
  keel_value v;
  keel_rc rc = dims(s, w[3], shape, &n);
  if (!rc) rc = s->host->param(s->edit, w[1], dtype(w[2]), shape, n, &v);
  if (!rc) add(s->values, &s->n_values, w[1], v, s->here);
  return rc;
}

static keel_rc node(state* s, char** w) {
  char *outs[MOST], *ins[MOST], *part[MOST];
  const char* names[8];
  keel_attr attrs[8];
  keel_value in[MOST], out[MOST];
  uint32_t n_out = split(w[1], outs, ","), n_in = split(w[3], ins, ","), n = 0;
  for (uint32_t i = 0; i < n_in; i++) in[i] = (keel_value)find(s->values, s->n_values, ins[i], s->here);
  for (; n < 8 && w[4 + n]; n++) {
    if (split(w[4 + n], part, ":") != 3) return s->host->fail(KEEL_INVALID, "script: name:kind:value");
    names[n] = part[0];
    attrs[n] = (keel_attr){.kind = KEEL_ATTR_I64, .i = atoi(part[2])};
    if (*part[1] == 'g')
      attrs[n] = (keel_attr){.kind = KEEL_ATTR_GRAPH, .i = find(s->graphs, s->n_graphs, part[2], -1)};
    if (*part[1] == 'v')
      attrs[n] = (keel_attr){.kind = KEEL_ATTR_VAR, .i = find(s->variables, s->n_variables, part[2], -1)};
  }
  keel_node_spec spec = {sizeof spec, 0, w[2], n_out ? outs[0] : NULL, in, names, attrs, n_in, n};
  keel_rc rc = s->host->add_node(s->edit, &spec, out, n_out);
  for (uint32_t i = 0; !rc && i < n_out; i++) add(s->values, &s->n_values, outs[i], out[i], s->here);
  return rc;
}

static keel_rc gradient(state* s, char** w) {
  char *outs[MOST], *xs[MOST];
  keel_value in[MOST], out[MOST];
  uint32_t n_out = split(w[1], outs, ","), n_in = split(w[3], xs, ",");
  if (n_out != n_in) return s->host->fail(KEEL_INVALID, "script: as many results as xs");
  for (uint32_t i = 0; i < n_in; i++) in[i] = (keel_value)find(s->values, s->n_values, xs[i], s->here);
  keel_rc rc =
      s->host->edit_gradient(s->edit, (keel_value)find(s->values, s->n_values, w[2], s->here), in, n_in, out);
  for (uint32_t i = 0; !rc && i < n_out; i++) add(s->values, &s->n_values, outs[i], out[i], s->here);
  return rc;
}

static keel_rc result(state* s, char** w) {
  return s->host->result(s->edit, w[1], (keel_value)find(s->values, s->n_values, w[2], s->here));
}
static keel_rc entry(state* s, char** w) { return s->host->edit_entry(s->edit, w[1]); }
static keel_rc meta(state* s, char** w) { return s->host->metadata(s->edit, w[1], w[2]); }

static keel_rc rule(state* s, char** w) {
  char text[256] = "";
  for (int i = 1; w[i]; i++) strncat(text, w[i], sizeof text - strlen(text) - 2), strcat(text, " ");
  return s->host->edit_rule(s->edit, text);
}

static keel_rc make(state* s, char** w) {
  int64_t number;
  keel_rc rc = s->host->edit_new_graph(s->edit, w[1], &s->edits[s->n_edits], &number);
  if (rc) return rc;
  add(s->graphs, &s->n_graphs, w[1], number, -1);
  s->edit = s->edits[s->n_edits];
  s->here = s->n_edits++;
  return KEEL_OK;
}

static keel_rc in(state* s, char** w) {
  s->here = (int)find(s->graphs, s->n_graphs, w[1], -1);
  if (s->here >= s->n_edits) return s->host->fail(KEEL_INVALID, "script: no such graph");
  s->edit = s->edits[s->here];
  return KEEL_OK;
}

static const struct {
  const char* verb;
  int words; /* at least */
  keel_rc (*run)(state*, char**);
} verbs[] = {{"var", 5, var},   {"const", 5, constant}, {"param", 4, param},      {"node", 4, node},
             {"rule", 2, rule}, {"result", 3, result},  {"graph", 2, make},       {"in", 2, in},
             {"meta", 3, meta}, {"entry", 2, entry},    {"gradient", 4, gradient}};

static keel_rc run(state* s, char* line) {
  char* words[MOST + 1] = {NULL};
  uint32_t n = split(line, words, " ");
  for (size_t i = 0; n && i < sizeof verbs / sizeof *verbs; i++)
    if (!strcmp(verbs[i].verb, words[0]) && (int)n >= verbs[i].words) return verbs[i].run(s, words);
  return n ? s->host->fail(KEEL_INVALID, "script: an unknown line, or one with too few words") : KEEL_OK;
}

static keel_rc import(const keel_host* host, const keel_source* source, const keel_kv* options,
                      uint32_t n_options, keel_edit* edit) {
  static const size_t kFirst = sizeof "script";  // the first line
  state s = {.host = host, .edit = edit, .edits = {edit}, .n_edits = 1, .n_graphs = 1};
  s.graphs[0] = (thing){"main", 0, -1};
  (void)options, (void)n_options;
  char* text = malloc(source->size + 1);
  if (!text) return KEEL_OOM;
  memcpy(text, source->data, source->size);
  text[source->size] = 0;
  keel_rc rc = KEEL_OK;
  for (char* line = text + kFirst; !rc && line;) {
    char* end = strchr(line, '\n');
    if (end) *end = 0;
    rc = run(&s, line);
    line = end ? end + 1 : NULL;
  }
  free(text);
  return rc;
}

static int32_t probe(const uint8_t* data, uint64_t size) {
  return size > 7 && !memcmp(data, "script\n", 7) ? 100 : 0;
}

static const keel_importer importers[] = {{"script", "script", probe, import, NULL, NULL, NULL}};
static const keel_plugin script = {
    KEEL_PLUGIN_HEADER,
    .name = "script",
    .version = "0.1.0",
    .about = "calls of the host as text",
    .importers = importers,
    .n_importers = 1,
    .importer_stride = sizeof(keel_importer),
};
KEEL_PLUGIN(script)
