/* keel_graph.h: graphs by hand, node by node, and their gradients. Part of keel.h.
 *
 * A graph belongs to its module, a new or a loaded one, and dies with it. Parameters, constants and nodes
 * give values: numbers, from 0 in program order, that are operands of later nodes.
 */
#ifndef KEEL_GRAPH_H
#define KEEL_GRAPH_H
#include "keel_handle.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- modules */
/* An empty module. */
KEEL_API keel_rc keel_module_new(keel_context* context, keel_module** out, keel_error** err);
/* A dim for parameters and attributes. expression: "b", "2*b+1"; symbols that do not exist are made. */
KEEL_API keel_rc keel_module_dim(keel_module* module, const char* expression, keel_dim* out,
                                 keel_error** err);
/* The module's variable of that name. add: NULL finds it (KEEL_NOT_FOUND: there is none), else it becomes the
 * module's under that name, unless it is already. number: for attributes of kind KEEL_ATTR_VAR (ops `read`,
 * `assign` ...). out: the variable. */
KEEL_API keel_rc keel_module_variable(keel_module* module, const char* name, KEEL_NULLABLE keel_variable* add,
                                      KEEL_NULLABLE uint32_t* number, KEEL_NULLABLE keel_variable** out,
                                      keel_error** err);
/* Makes a graph of the module an entry: sessions find it by this name. KEEL_EXISTS: the name is taken. */
KEEL_API keel_rc keel_module_entry(keel_module* module, const char* name, keel_graph* graph,
                                   keel_error** err);
/* The graph of an entry; NULL: the only one. */
KEEL_API keel_rc keel_module_graph(keel_module* module, KEEL_NULLABLE const char* entry,
                                   KEEL_BORROWED keel_graph** out, keel_error** err);

/* ---- building. Names may be NULL: Keel makes one. */
/* copy_of NULL: an empty graph. Else a graph of the module, whose parameters, nodes and numbers of values the
 * new graph gets, but not its results; module may then be NULL. */
KEEL_API keel_rc keel_graph_new(KEEL_NULLABLE keel_module* module, KEEL_NULLABLE const char* name,
                                KEEL_NULLABLE keel_graph* copy_of, KEEL_BORROWED keel_graph** out,
                                keel_error** err);
/* Adds a parameter. dims: numbers, or dims of keel_module_dim. */
KEEL_API keel_rc keel_graph_param(keel_graph* graph, KEEL_NULLABLE const char* name, keel_dt dtype,
                                  const keel_dim* dims KEEL_COUNT(ndim), int32_t ndim, keel_value* out,
                                  keel_error** err);
/* A rule of the sizes of the parameters; a run that breaks it is KEEL_INVALID: "b in 2..65536", "n in 2..",
 * "b % 8 == 0", "n <= 512". */
KEEL_API keel_rc keel_graph_rule(keel_graph* graph, const char* rule, keel_error** err);
/* Adds a constant. An array that is contiguous, in host memory, is shared and must not be written any more.
 */
KEEL_API keel_rc keel_graph_constant(keel_graph* graph, KEEL_NULLABLE const char* name, keel_array* array,
                                     keel_value* out, keel_error** err);
/* Adds a node. version: of the op; 0: the newest. in: KEEL_NO_VALUE for an omitted operand. n_out must be the
 * node's number of results. */
KEEL_API keel_rc keel_graph_node(keel_graph* graph, KEEL_NULLABLE const char* name, const char* op,
                                 uint32_t version, const char* const* attr_names KEEL_COUNT(n_attrs),
                                 const keel_attr* attrs KEEL_COUNT(n_attrs), uint32_t n_attrs,
                                 const keel_value* in KEEL_COUNT(n_in), uint32_t n_in,
                                 keel_value* out KEEL_COUNT(n_out), uint32_t n_out, keel_error** err);
/* Device of the nodes added from now on: "cuda:1"; NULL: the session's device. Files keep the name; a plan
 * for a device that does not exist is an error. */
KEEL_API keel_rc keel_graph_device(keel_graph* graph, KEEL_NULLABLE const char* device, keel_error** err);
/* Appends a result. name NULL: the value's own. */
KEEL_API keel_rc keel_graph_result(keel_graph* graph, KEEL_NULLABLE const char* name, keel_value value,
                                   keel_error** err);
/* The graph's number in attributes of nodes of the module (KEEL_ATTR_GRAPH, KEEL_ATTR_GRAPHS), as the body of
 * a call, a branch or a loop. A graph that is a body cannot be changed any more. */
KEEL_API keel_rc keel_graph_number(keel_graph* graph, int64_t* out, keel_error** err);

/* ---- reading */
/* Any output may be NULL. */
KEEL_API keel_rc keel_graph_counts(keel_graph* graph, KEEL_NULLABLE uint32_t* nodes,
                                   KEEL_NULLABLE uint32_t* values, KEEL_NULLABLE uint32_t* params,
                                   KEEL_NULLABLE uint32_t* results, keel_error** err);
/* Parameter i, or with result = 1 result i. KEEL_NOT_FOUND: there is none. */
KEEL_API keel_rc keel_graph_port(keel_graph* graph, int32_t result, uint32_t i, KEEL_NULLABLE keel_value* out,
                                 KEEL_NULLABLE keel_text** name, keel_error** err);
/* Node i, from 0 in program order. name: of the node as a target, and of its first result as a fetch. op is
 * valid as long as the module, lists until the graph grows. KEEL_NOT_FOUND: there is no such node. */
KEEL_API keel_rc keel_graph_node_at(keel_graph* graph, uint32_t node, KEEL_NULLABLE keel_text** name,
                                    KEEL_NULLABLE KEEL_BORROWED const char** op,
                                    KEEL_NULLABLE KEEL_BORROWED const keel_value** in KEEL_COUNT(n_in),
                                    KEEL_NULLABLE uint32_t* n_in,
                                    KEEL_NULLABLE KEEL_BORROWED const keel_value** out KEEL_COUNT(n_out),
                                    KEEL_NULLABLE uint32_t* n_out, keel_error** err);
/* node: that computes the value; KEEL_NO_VALUE: a parameter or a constant. shape: ndim numbers; -1: a
 * symbolic dim. KEEL_NOT_FOUND: there is no such value. */
KEEL_API keel_rc keel_graph_value_at(keel_graph* graph, keel_value value, KEEL_NULLABLE keel_text** name,
                                     KEEL_NULLABLE uint32_t* node, KEEL_NULLABLE keel_dt* dtype,
                                     KEEL_NULLABLE int64_t* shape KEEL_COUNT(KEEL_MAX_RANK) KEEL_FILLED(ndim),
                                     KEEL_NULLABLE int32_t* ndim, keel_error** err);
/* value: by its name, by the name of a result of the graph, or as "v12", the unnamed result of node 12;
 * "name:1": result 1 of the node whose first result has that name (":0": the value itself). node: the node of
 * that name, or the node that computes the value of that name (KEEL_NO_VALUE: a parameter or a constant). */
KEEL_API keel_rc keel_graph_find(keel_graph* graph, const char* name, KEEL_NULLABLE keel_value* value,
                                 KEEL_NULLABLE uint32_t* node, keel_error** err);

/* ---- gradients */
enum keel_gradient_flag {                          /* flags */
                          KEEL_GRADIENT_ZEROS = 1, /* zeros if no y depends on an x */
                          KEEL_GRADIENT_JACOBIAN =
                              2 /* derivatives of each element of y, not of their sum; one y, no seeds */
};
/* Appends nodes that compute the gradient of the sum of all elements of ys, floats, with respect to each x,
 * any values. seeds: a weight for each element of each y, as a value of its type (KEEL_NO_VALUE: ones); NULL:
 * ones. dxs: a value of the type of its x; KEEL_NO_VALUE if no y depends on the x, unless flags have
 * KEEL_GRADIENT_ZEROS. With KEEL_GRADIENT_JACOBIAN: a value with the dims of y, then the dims of x, at most 8
 * in all, at the cost of a gradient for each element of y. KEEL_NOT_FOUND: an op without a gradient; the
 * graph is unchanged after any failure. */
KEEL_API keel_rc keel_graph_gradient(keel_graph* graph, const keel_value* ys KEEL_COUNT(n_ys), uint32_t n_ys,
                                     KEEL_NULLABLE const keel_value* seeds KEEL_COUNT(n_ys),
                                     const keel_value* xs KEEL_COUNT(n_xs), uint32_t n_xs, uint32_t flags,
                                     keel_value* dxs KEEL_COUNT(n_xs), keel_error** err);

#ifdef __cplusplus
}
#endif
#endif
