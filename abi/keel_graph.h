/* keel_graph.h: graphs by hand, node by node, and their gradients. keel.h includes it.
 *
 * How to read it: a graph belongs to its module, a new one or one that was loaded; parameters, constants and
 * nodes give values, numbers that are operands of later nodes. Errors, ownership and threads as in keel.h. */
#ifndef KEEL_GRAPH_H
#define KEEL_GRAPH_H
#include "keel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names are optional (NULL) but for entries. */
KEEL_API keel_rc keel_module_new(keel_context* context, keel_module** out, keel_error** err);
KEEL_API keel_rc keel_module_dim(keel_module* module, const char* expression /* "b", "2*b+1" */,
                                 keel_dim* out, keel_error** err);
/* The module's variable of that name. add: NULL finds it; else it becomes the module's under that name, or is
 * it already. number: for attributes of kind KEEL_ATTR_VAR (ops `read`, `assign` ...). out (may be NULL): to
 * be released. */
KEEL_API keel_rc keel_module_variable(keel_module* module, const char* name, keel_variable* add,
                                      uint32_t* number, keel_variable** out, keel_error** err);
KEEL_API keel_rc keel_graph_new(keel_module* module, const char* name, keel_graph** out, keel_error** err);
/* The number by which nodes of other graphs of the module name it (KEEL_ATTR_GRAPH, KEEL_ATTR_GRAPHS): as the
 * body of a call, a branch, a loop. A graph that is a body is finished: it cannot be changed any more. */
KEEL_API keel_rc keel_graph_number(keel_graph* graph, int64_t* out, keel_error** err);
KEEL_API keel_rc keel_graph_param(keel_graph* graph, const char* name, keel_dt dtype, const keel_dim* dims,
                                  int32_t ndim, keel_value* out, keel_error** err);
/* What must hold of the symbols of the parameters that the graph has, or a run is KEEL_INVALID: "b
 * in 2..65536", "n in 2..", "b % 8 == 0", "n <= 512". */
KEEL_API keel_rc keel_graph_rule(keel_graph* graph, const char* rule, keel_error** err);
KEEL_API keel_rc keel_graph_constant(keel_graph* graph, const char* name, keel_array* array, keel_value* out,
                                     keel_error** err);
KEEL_API keel_rc keel_graph_node(keel_graph* graph, const char* name, const char* op, uint32_t version,
                                 const char* const* attr_names, const keel_attr* attrs, uint32_t n_attrs,
                                 const keel_value* in, uint32_t n_in, keel_value* out, uint32_t n_out,
                                 keel_error** err);
/* Nodes added from now on want to run on that device, "cuda:1" (NULL: on whichever the session says). A file
 * keeps the name; whether there is such a device is seen when a plan is prepared. */
KEEL_API keel_rc keel_graph_device(keel_graph* graph, const char* device, keel_error** err);
KEEL_API keel_rc keel_graph_result(keel_graph* graph, const char* name, keel_value value, keel_error** err);
/* Type of a value; shape: ndim numbers, -1 for a symbolic dim; room for KEEL_MAX_RANK. */
KEEL_API keel_rc keel_graph_type(keel_graph* graph, keel_value value, keel_dt* dtype, int64_t* shape,
                                 int32_t* ndim, keel_error** err);
KEEL_API keel_rc keel_module_entry(keel_module* module, const char* name, keel_graph* graph,
                                   keel_error** err);
/* The graph of an entry (NULL: the only one), of a module that was loaded too; the module owns it. */
KEEL_API keel_rc keel_module_graph(keel_module* module, const char* entry, keel_graph** out,
                                   keel_error** err);
/* A value by its name, that of a result of the graph, or "v12": the result of node 12 that has no name; then
 * "name:1": result 1 of the node whose first result has that name (":0": the value itself). */
KEEL_API keel_rc keel_graph_find(keel_graph* graph, const char* name, keel_value* out, keel_error** err);
/* What a graph is made of (each out may be NULL). Nodes and values have numbers from 0 in program order;
 * parameters and results (result: 1) are listed in order, with their names, to be freed. */
KEEL_API keel_rc keel_graph_counts(keel_graph* graph, uint32_t* nodes, uint32_t* values, uint32_t* params,
                                   uint32_t* results, keel_error** err);
KEEL_API keel_rc keel_graph_port(keel_graph* graph, int32_t result, uint32_t i, keel_value* out,
                                 keel_text** name, keel_error** err);
/* A node: its name (to be freed; by it the node is a target, and its first result is fetched), its op, its
 * operands (KEEL_NO_VALUE: left out) and results, which are valid until the graph grows. */
KEEL_API keel_rc keel_graph_node_at(keel_graph* graph, uint32_t node, keel_text** name, const char** op,
                                    const keel_value** in, uint32_t* n_in, const keel_value** out,
                                    uint32_t* n_out, keel_error** err);
/* A value: its name (to be freed), the node that computes it (KEEL_NO_VALUE: a parameter or a constant). */
KEEL_API keel_rc keel_graph_value_at(keel_graph* graph, keel_value value, keel_text** name, uint32_t* node,
                                     keel_error** err);
/* The node of that name, or that computes the value of that name (KEEL_NO_VALUE: a parameter or a constant).
 */
KEEL_API keel_rc keel_graph_find_node(keel_graph* graph, const char* name, uint32_t* out, keel_error** err);
/* A new graph of the same module with the same parameters, nodes and numbers of values, without results. */
KEEL_API keel_rc keel_graph_copy(keel_graph* graph, const char* name, keel_graph** out, keel_error** err);
/* Appends what computes the gradient of the sum of all elements of ys with respect to each x. ys: floats. xs:
 * any values, constants and results of nodes too. seeds: NULL, or for each y what its elements count, a value
 * of its type (KEEL_NO_VALUE: ones). dxs: room for n_xs values, each of its x's type; KEEL_NO_VALUE where no
 * y depends on the x (integers, what stands behind stop_gradient), or zeros with KEEL_GRADIENT_ZEROS.
 * Gradients of gradients work likewise. On failure the graph is as it was; an op without a gradient:
 * KEEL_NOT_FOUND. */
#define KEEL_GRADIENT_ZEROS 1u
KEEL_API keel_rc keel_graph_gradient(keel_graph* graph, const keel_value* ys, uint32_t n_ys,
                                     const keel_value* seeds, const keel_value* xs, uint32_t n_xs,
                                     uint32_t flags, keel_value* dxs, keel_error** err);
/* Appends what computes the derivative of each element of y, a float, with respect to each element of x: a
 * value with the dims of y, then those of x, at most 8. Costs a gradient for each element of y. */
KEEL_API keel_rc keel_graph_jacobian(keel_graph* graph, keel_value y, keel_value x, keel_value* out,
                                     keel_error** err);

#ifdef __cplusplus
}
#endif
#endif
