/* keel_host.h: the host table: the functions that Keel offers a plugin. Part of keel_plugin.h.
 *
 * A plugin gets the table from keel_device.open and in calls that need it; the table stays valid. A plugin
 * links nothing of ours. The graph of a pass or an importer is a keel_edit; the node of match and prepare is
 * a keel_node. Both are valid during the call of the plugin that received them, on its thread. The rules of
 * keel_handle.h for parameters hold here too: NULL is an error except for parameters marked KEEL_NULLABLE,
 * inputs are borrowed for the call. Text and lists from Keel are borrowed. */
#ifndef KEEL_HOST_H
#define KEEL_HOST_H
#include "keel_base.h"
#ifdef __cplusplus
extern "C" {
#endif

KEEL_CONFINED typedef struct keel_node keel_node; /* an op with known operands; Keel's */
KEEL_CONFINED typedef struct keel_edit
    keel_edit; /* a module under construction, or a graph being rewritten; Keel's */

KEEL_CONFINED typedef struct keel_memory keel_memory; /* a piece of a device's memory; Keel's */

enum keel_hash_flag { KEEL_HASH_DIMS = 1 };
enum keel_log_level { KEEL_LOG_DEBUG = 0, KEEL_LOG_INFO = 1, KEEL_LOG_WARNING = 2, KEEL_LOG_ERROR = 3 };
enum keel_dim_op {
  KEEL_DIM_ADD = 0,
  KEEL_DIM_SUB = 1,
  KEEL_DIM_MUL = 2,
  KEEL_DIM_FLOORDIV = 3,
  KEEL_DIM_MAX = 4,
  KEEL_DIM_MIN = 5
};
/* Flags of an op, as the catalogue states them; `keel ops --json` lists them as "traits". */
enum keel_trait {
  KEEL_TRAIT_ELEMENTWISE = 1,       /* each element of a result depends on the elements at its index */
  KEEL_TRAIT_COMMUTATIVE = 2,       /* two operands, in either order */
  KEEL_TRAIT_ALIAS = 4,             /* the result may share the operand's memory */
  KEEL_TRAIT_NOOP_IF_SAME = 8,      /* returns its operand if that has the result's type */
  KEEL_TRAIT_NOOP_IF_IDENTITY = 16, /* returns its operand if its permutation moves no dim */
  KEEL_TRAIT_BROADCASTS = 32,       /* operands are broadcast to each other; the result has their dims */
  KEEL_TRAIT_ATTRIBUTES = 64        /* has attributes; a replacing node needs them, too */
};
enum keel_order { KEEL_LESS = -1, KEEL_EQUAL = 0, KEEL_GREATER = 1, KEEL_UNCERTAIN = 2 }; /* over all sizes */
enum keel_effect {                                                                        /* flags */
                   KEEL_READS = 1,    /* reads variables or random state */
                   KEEL_MUST_RUN = 2, /* stays: it has effects, or a run finds sizes in its bodies */
                   KEEL_MAY_FAIL = 4  /* may fail depending on its data, itself or in a graph that it runs */
};

/* A node to add. Borrowed for the call. */
typedef struct keel_node_spec {
  uint32_t struct_size, version; /* version of the op; 0: the newest */
  const char* op;
  KEEL_NULLABLE const char* name;        /* for messages and dumps; NULL: Keel makes one */
  const keel_value* in KEEL_COUNT(n_in); /* KEEL_NO_VALUE: omitted */
  const char* const* attr_names KEEL_COUNT(n_attrs);
  const keel_attr* attrs KEEL_COUNT(n_attrs);
  uint32_t n_in, n_attrs;
} keel_node_spec;
KEEL_SEALED(keel_node_spec, n_attrs);

/* A graph that a node runs: nodes in program order. Values are numbered: the graph's parameters from 0, then
 * the results of each node. */
typedef struct keel_body_node {
  const keel_node* node;
  const uint32_t* in KEEL_COUNT(n_in); /* value numbers; KEEL_NO_VALUE: omitted */
  uint32_t n_in, n_out;
  uint32_t out; /* number of its first result */
  uint32_t reserved;
} keel_body_node;
KEEL_SEALED(keel_body_node, reserved);
typedef struct keel_body {
  uint32_t struct_size, n_nodes, n_values, n_results;
  const keel_body_node* nodes KEEL_COUNT(n_nodes);
  const uint32_t* results KEEL_COUNT(n_results); /* value numbers of the graph's results */
} keel_body;
KEEL_SEALED(keel_body, results);

typedef struct keel_host {
  uint32_t struct_size, abi_minor;
  /* ---- any thread */
  /* Stores the message of a failure for the current call on this thread; returns code. */
  keel_rc (*fail)(keel_rc code, const char* message);
  void (*log)(int32_t level, const char* message);
  const void* (*ext)(const char* name); /* an extension by name, "vendor.thing/1"; NULL: there is none */

  /* ---- reading a node, in match and prepare. Tensors have dtype and dims (-1: any), and data if the operand
   * is a constant. Attributes have their defaults; every dim in them is a number. Each node also has the bool
   * "keel.exact_convolution", an option of sessions and functions. */
  const char* (*node_op)(const keel_node* node);
  const char* (*node_name)(const keel_node* node);
  void (*node_arity)(const keel_node* node, uint32_t* n_in, uint32_t* n_out);
  keel_rc (*node_in)(const keel_node* node, uint32_t i, keel_tensor* out);
  keel_rc (*node_out)(const keel_node* node, uint32_t i, keel_tensor* out);
  keel_rc (*node_attr)(const keel_node* node, const char* name, keel_attr* out);

  /* ---- writing a module, in import. Each node is checked and typed as it is added. */
  keel_rc (*dim_symbol)(keel_edit* edit, const char* name, keel_dim* out); /* found or made; 0 or more */
  keel_rc (*dim_op)(keel_edit* edit, int32_t op, keel_dim a, keel_dim b, keel_dim* out);
  int32_t (*dim_compare)(keel_edit* edit, keel_dim a, keel_dim b); /* a keel_order */
  keel_rc (*param)(keel_edit* edit, KEEL_NULLABLE const char* name, keel_dt dtype,
                   const keel_dim* dims KEEL_COUNT(ndim), int32_t ndim, keel_value* out);
  /* The bytes belong to the importer until release(arg) is called: once, at any later time, or at once on
   * failure. release NULL: the bytes are copied now. */
  keel_rc (*constant)(keel_edit* edit, KEEL_NULLABLE const char* name, const keel_tensor* tensor,
                      KEEL_NULLABLE KEEL_KEPT void (*release)(void* arg), KEEL_KEPT void* arg,
                      keel_value* out);
  keel_rc (*add_node)(keel_edit* edit, const keel_node_spec* spec, keel_value* outs KEEL_COUNT(n_out),
                      uint32_t n_out);
  /* Type of a value, and data if it is constant. shape points to keel_dims, valid until the next edit. */
  keel_rc (*value_type)(keel_edit* edit, keel_value value, keel_tensor* out);
  keel_rc (*result)(keel_edit* edit, const char* name, keel_value value);
  keel_rc (*metadata)(keel_edit* edit, const char* key, const char* value);

  /* ---- in match and prepare: the body of a `call`; KEEL_NOT_FOUND for any other op. Constants are operands
   * of the call. */
  keel_rc (*node_body)(const keel_node* node, keel_body* out);

  /* ---- rewriting a graph, in a pass. Nodes and values keep their numbers during a pass, and new ones get
   * the next numbers; lists are valid until the next edit. Each edit is checked; an edit that would
   * change a type, a fetched name or the order of effects is refused and changes nothing. Unused nodes are
   * removed automatically: there is no erase. When the limit of edits (option "fuel") is reached, replace,
   * outline, inline and splice return KEEL_PRECONDITION, and the pass should return. */
  const char* (*edit_device)(keel_edit* edit); /* device that the graph will run on: "cpu:0" */
  uint32_t (*edit_nodes)(keel_edit* edit, KEEL_BORROWED const uint32_t** nodes
                                              KEEL_COUNT(returned)); /* program order; returns the count */
  const keel_node* (*edit_node)(keel_edit* edit, uint32_t node);     /* NULL: no such node (any more) */
  keel_rc (*edit_operands)(keel_edit* edit, uint32_t node,
                           KEEL_BORROWED const keel_value** in KEEL_COUNT(n_in), uint32_t* n_in,
                           KEEL_BORROWED const keel_value** out KEEL_COUNT(n_out), uint32_t* n_out);
  uint32_t (*edit_producer)(keel_edit* edit,
                            keel_value value); /* the node; KEEL_NO_VALUE: parameter, constant */
  /* Returns the number of uses; a node is listed once per use. nodes NULL: no list is made. */
  uint32_t (*edit_users)(keel_edit* edit, keel_value value,
                         KEEL_NULLABLE KEEL_BORROWED const uint32_t** nodes KEEL_COUNT(returned));
  int32_t (*edit_fetched)(keel_edit* edit, keel_value value); /* 1: a result of the graph */
  /* add_node inserts before this node from now on; KEEL_NO_VALUE: at the end. */
  keel_rc (*edit_before)(keel_edit* edit, uint32_t node);
  /* All uses of a value, and its name if it is fetched, pass to another one of the same type. */
  keel_rc (*edit_replace)(keel_edit* edit, keel_value old_value, keel_value new_value);
  /* Turns the nodes into the body of a `call`, at the place of the last of them. Its operands are the values
   * that they read from outside, in order of first use; its results the values that are used outside. */
  keel_rc (*edit_outline)(keel_edit* edit, const uint32_t* nodes KEEL_COUNT(n), uint32_t n,
                          KEEL_NULLABLE const char* name, uint32_t* call);
  /* The reverse; or, for a plan, replaces a node of an op with a body by the nodes of that body.
   * KEEL_INVALID: the node is neither, or checks sizes that only a run knows, or finds one; or it stays in a
   * file. */
  keel_rc (*edit_inline)(keel_edit* edit, uint32_t node);
  /* 1: the device has an impl for this node itself, not only for the ops of its body. */
  int32_t (*edit_supported)(keel_edit* edit, uint32_t node);
  /* Runs a node with constant operands on the device and replaces its results by constants.
   * KEEL_PRECONDITION: an operand is not constant, or the result is too large to keep. */
  keel_rc (*edit_eval)(keel_edit* edit, uint32_t node);
  /* Hash of a node's op, attributes and device scope, without its operands. 0: it has no results, or an
   * effect other than reading variables, so another node cannot replace it. */
  uint64_t (*edit_hash)(keel_edit* edit, uint32_t node);
  int32_t (*edit_same)(keel_edit* edit, uint32_t node,
                       uint32_t other); /* 1: op, attributes and scope are equal */
  /* Replaces a node by the nodes of a graph that is one of its attributes, called with the values in. The
   * node has no effect but reading variables. */
  keel_rc (*edit_splice)(keel_edit* edit, uint32_t node, int64_t graph, const keel_value* in KEEL_COUNT(n_in),
                         uint32_t n_in);

  /* ---- in match and prepare of an impl for `cond`, `switch`, `while` or `scan`, which runs it as one
   * launch: graph i, in the order of the attributes. Constants are values too, numbered before the results of
   * the node that reads them first; node_in of that node has their data. KEEL_NOT_FOUND: there is no graph i.
   */
  keel_rc (*node_graph)(const keel_node* node, uint32_t i, keel_body* out);

  /* ---- in a pass */
  uint32_t (*edit_effects)(keel_edit* edit, uint32_t node); /* keel_effect flags; 0: none, or no such node */
  /* A graph that is an attribute of a node, for members that only read; it has as many parameters and results
   * as the node has operands and results. Valid during the pass. */
  keel_rc (*edit_body)(keel_edit* edit, int64_t graph, KEEL_BORROWED keel_edit** body,
                       KEEL_BORROWED const keel_value** params, KEEL_BORROWED const keel_value** results);
  /* Makes a graph of the nodes of another graph that the results depend on, starting at params, and of its
   * nodes that must run. params and results are values of that graph. For a param KEEL_NO_VALUE the new graph
   * gets an unused parameter of the type of types[i], a value of the edited graph. out: for add_node. */
  keel_rc (*edit_graph)(keel_edit* edit, int64_t graph, const keel_value* params KEEL_COUNT(n_params),
                        const keel_value* types KEEL_COUNT(n_params), uint32_t n_params,
                        const keel_value* results KEEL_COUNT(n_results), uint32_t n_results, int64_t* out);
  /* [C] A sum of KEEL_TRAIT_... of the node's op. */
  uint32_t (*node_traits)(const keel_node* node);

  /* ---- in match and prepare */
  /* Hash of a node: op, attributes, dtypes and ranks of operands and results, and its body or graphs with
   * their constants; without names and the operands' data. Structurally equal nodes have equal hashes, in any
   * process of this build of Keel, so code may be kept by it. flags: KEEL_HASH_DIMS: the dims count, too. */
  uint64_t (*node_hash)(const keel_node* node, uint32_t flags);

  /* ---- any thread */
  /* The iteration space of tensors that are broadcast to each other, such as the operands and results of an
   * elementwise node, with as few dims as possible: sizes of *ndim dims, the last one varying fastest, and
   * for each tensor KEEL_MAX_RANK strides, in elements: 0 where it is broadcast. One element: no dims. No
   * element: one dim of size 0. A NULL tensor has strides 0. KEEL_INVALID: they do not broadcast;
   * KEEL_PRECONDITION: a dim is -1. */
  keel_rc (*merge_dims)(KEEL_HOLES const keel_tensor* const* tensors KEEL_COUNT(n), uint32_t n,
                        int64_t* sizes KEEL_COUNT(KEEL_MAX_RANK), int64_t* strides, int32_t* ndim);

  /* ---- in prepare, for a device with memory of its own: memory from Keel's pool for the state of a launch,
   * such as packed weights. data: the bytes to upload, read during the call; launches see them, and the host
   * does not wait. NULL: not initialised. address: on the device, aligned as its info says. KEEL_OOM: full.
   * Freed in release of the launch, on any thread. */
  keel_rc (*memory_new)(const keel_node* node, KEEL_NULLABLE const void* data, uint64_t bytes,
                        keel_memory** out, uint64_t* address);
  void (*memory_free)(KEEL_NULLABLE keel_memory* memory);

  /* ---- more graphs of a module, in import. The importer's own edit is the graph "main". It becomes the
   * entry "main" if the importer makes no entry. */
  /* A new graph: the members for writing a module add to it through `out`, which is valid until import
   * returns. number: for attributes of nodes of the module (KEEL_ATTR_GRAPH, KEEL_ATTR_GRAPHS), as the body
   * of a call, a branch or a loop; it must be complete by then, because it cannot change any more.
   * KEEL_EXISTS: the name is taken. */
  keel_rc (*edit_new_graph)(keel_edit* edit, const char* name, KEEL_BORROWED keel_edit** out,
                            int64_t* number);
  /* A variable of the module with a copy of its initial value. number: for attributes of kind KEEL_ATTR_VAR.
   * KEEL_EXISTS: the name is taken. */
  keel_rc (*edit_variable)(keel_edit* edit, const char* name, const keel_tensor* initial, uint32_t* number);
  /* A rule of the sizes of the graph's parameters, as keel_graph_rule takes it: "b in 2..64", "b % 8 == 0".
   */
  keel_rc (*edit_rule)(keel_edit* edit, const char* rule);
  /* Makes the graph an entry: sessions find it by this name. KEEL_EXISTS: the name is taken. */
  keel_rc (*edit_entry)(keel_edit* edit, const char* name);

  /* ---- in import, save and a pass */
  /* Texts are valid until the next call of one of the two. NULL: there is no such dim or value. */
  /* A dim as a number or an expression: "2*b+1"; operators + - * // max(a,b) min(a,b) ( ). */
  KEEL_NULLABLE const char* (*dim_text)(keel_edit* edit, keel_dim dim);
  /* The value's name, made by Keel if it has none. */
  KEEL_NULLABLE const char* (*value_name)(keel_edit* edit, keel_value value);

  /* ---- in import */
  /* Appends the gradient of the sum of all elements of y with respect to each x, as keel_graph_gradient does
   * with KEEL_GRADIENT_ZEROS. */
  keel_rc (*edit_gradient)(keel_edit* edit, keel_value y, const keel_value* xs KEEL_COUNT(n_xs),
                           uint32_t n_xs, keel_value* dxs KEEL_COUNT(n_xs));
} keel_host;
KEEL_SEALED(keel_host, edit_gradient);

#ifdef __cplusplus
}
#endif
#endif
