// body.h: the body of a fused `call`, or a single elementwise node, as a list of steps for a code generator.
//
// Values are numbered as in keel_body: the node's operands from 0, then the result of each step. read_body
// accepts a graph of scalar ops (scalar_ops.h) and of the names that the generator lists as its own.
#ifndef KEEL_PLUGIN_BODY_H
#define KEEL_PLUGIN_BODY_H
#include <keel/keel_host.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scalar_ops.h"

namespace keel::plugin {

struct Step {
  std::string op;
  std::vector<uint32_t> in;  // value numbers, each smaller than `out`
  uint32_t out = 0;
  double attribute = 0;  // of ops with one number or bool as attribute, such as leaky_relu's alpha
};
struct Body {
  std::vector<keel_dt> dtypes;  // of each value
  uint32_t n_operands = 0;
  std::vector<Step> steps;
  std::vector<uint32_t> results;  // value numbers
};

inline keel_dt dtype_of(const keel_tensor& t) {
  return static_cast<uint32_t>(t.dtype.code) | static_cast<uint32_t>(t.dtype.bits) << 8 |
         static_cast<uint32_t>(t.dtype.lanes) << 16;
}

// A composite op that the generator expands itself, and the name of its attribute, if it has one.
struct OwnOp {
  const char* name;
  const char* attribute;
};

namespace detail {

class BodyReader {
 public:
  BodyReader(const keel_host* host, const std::vector<OwnOp>& own) : host_(host), own_(own) {}

  std::optional<Body> Read(const keel_node* node) {
    uint32_t n_in = 0, n_out = 0;
    host_->node_arity(node, &n_in, &n_out);
    body_.n_operands = n_in;
    keel_body inner = {};
    inner.struct_size = sizeof(inner);
    const bool call = host_->node_body(node, &inner) == KEEL_OK;
    body_.dtypes.resize(call ? inner.n_values : n_in + n_out);
    for (uint32_t i = 0; i < n_in; i++)
      if (!SetDtype(i, node, i, true)) return std::nullopt;
    return (call ? ReadNodes(inner) : ReadNode(node, n_in, n_out)) ? std::optional(body_) : std::nullopt;
  }

 private:
  bool ReadNodes(const keel_body& inner) {
    body_.results.assign(inner.results, inner.results + inner.n_results);
    for (uint32_t i = 0; i < inner.n_nodes; i++) {
      const keel_body_node& n = inner.nodes[i];
      if (n.n_out != 1 || !Add(n.node, std::vector<uint32_t>(n.in, n.in + n.n_in), n.out)) return false;
    }
    return true;
  }
  bool ReadNode(const keel_node* node, uint32_t n_in, uint32_t n_out) {
    std::vector<uint32_t> in(n_in);
    for (uint32_t i = 0; i < n_in; i++) in[i] = i;
    body_.results = {n_in};
    return n_out == 1 && Add(node, in, n_in);
  }

  bool Add(const keel_node* node, std::vector<uint32_t> in, uint32_t out) {
    Step step = {host_->node_op(node), std::move(in), out, 0};
    const bool omitted = std::find(step.in.begin(), step.in.end(), KEEL_NO_VALUE) != step.in.end();
    if (omitted || !SetDtype(out, node, 0, false)) return false;
    if (const ScalarOp* op = find_scalar_op(step.op)) {
      if (step.in.size() != op->arity) return false;
    } else if (!ReadOwn(node, &step)) {
      return false;
    }
    body_.steps.push_back(std::move(step));
    return true;
  }
  bool ReadOwn(const keel_node* node, Step* step) {
    for (const OwnOp& own : own_) {
      if (step->op != own.name) continue;
      keel_attr value = {};
      if (own.attribute == nullptr) return true;
      if (host_->node_attr(node, own.attribute, &value) != KEEL_OK) return false;
      step->attribute = value.kind == KEEL_ATTR_F64 ? value.f : static_cast<double>(value.i);
      return true;
    }
    return false;
  }
  bool SetDtype(uint32_t value, const keel_node* node, uint32_t i, bool operand) {
    keel_tensor t = {};
    if ((operand ? host_->node_in : host_->node_out)(node, i, &t) != KEEL_OK) return false;
    if (value >= body_.dtypes.size() || dtypes_of(dtype_of(t)) == kNone) return false;
    body_.dtypes[value] = dtype_of(t);
    return true;
  }

  const keel_host* host_;
  const std::vector<OwnOp>& own_;
  Body body_;
};

}  // namespace detail

// The steps of a `call` or of one elementwise node; none if it contains another kind of op.
inline std::optional<Body> read_body(const keel_host* host, const keel_node* node,
                                     const std::vector<OwnOp>& own = {}) {
  return detail::BodyReader(host, own).Read(node);
}

// The steps that the results depend on, in order; `reads` lists the operands that they read.
inline Body needed_part(const Body& body, const std::vector<uint32_t>& results,
                        std::vector<uint32_t>* reads) {
  std::vector<bool> needed(body.dtypes.size());
  for (uint32_t r : results) needed[r] = true;
  Body part = {body.dtypes, body.n_operands, {}, results};
  for (auto step = body.steps.rbegin(); step != body.steps.rend(); ++step) {
    if (!needed[step->out]) continue;
    part.steps.push_back(*step);
    for (uint32_t v : step->in) needed[v] = true;
  }
  std::reverse(part.steps.begin(), part.steps.end());
  for (uint32_t v = 0; v < body.n_operands; v++)
    if (needed[v]) reads->push_back(v);
  return part;
}

// One expression per step, in order: combine(step, operands) gives the expression of a step's result.
template <class Expression, class Combine>
std::vector<Expression> walk(const Body& body, std::vector<Expression> operands, Combine combine) {
  operands.resize(body.dtypes.size());
  for (const Step& step : body.steps) {
    std::vector<Expression> in;
    for (uint32_t v : step.in) in.push_back(operands[v]);
    operands[step.out] = combine(step, in);
  }
  std::vector<Expression> results;
  for (uint32_t r : body.results) results.push_back(operands[r]);
  return results;
}

}  // namespace keel::plugin
#endif
