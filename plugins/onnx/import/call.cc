// call.cc: how a converter reads its node, and its error messages.
#include "plugins/onnx/import/call.h"

#include <algorithm>

namespace onnx_import {
namespace {

// Models come from arbitrary tools: an attribute of the wrong kind must not be read as zero.
void expect(const Call& c, const Attribute& a, int64_t type) {
  if (a.type != 0 && a.type != type)
    c.invalid(cat("attribute '", a.name, "' has kind ", a.type, "; expected kind ", type));
}

}  // namespace

std::string Call::title() const {
  std::string shown = node.name.empty() ? name : std::string(node.name);
  return cat("node '", shown, "' (", node.op, ")");
}

Value& Call::value(size_t i) {
  if (!has(i)) invalid(cat("operand ", i, " is missing"));
  return *in_[i];
}

const Dims& Call::list(size_t i) {
  const Sizes* s = e.sizes(value(i));
  if (!s)
    unsupported(
        cat("operand ", i, " ('", value(i).name, "') determines shapes, so it must be known at import"));
  return s->v;
}

Ints Call::numbers(size_t i) {
  const Dims& l = list(i);
  for (keel_dim d : l)
    if (KEEL_DIM_IS_HANDLE(d))
      unsupported(cat("operand ", i, " depends on a symbolic dim; expected numbers"));
  return l;
}

const Attribute* Call::attribute(Text name) const {
  const auto found = attributes_.find(name);
  return found == attributes_.end() ? nullptr : found->second;
}

int64_t Call::i(Text name, int64_t otherwise) const {
  const Attribute* a = attribute(name);
  if (a) expect(*this, *a, kAttrInt);
  return a ? a->i : otherwise;
}

int64_t Call::required(Text name) const {
  if (!has_attribute(name)) invalid(cat("attribute ", name, " is missing"));
  return i(name, 0);
}

double Call::f(Text name, double otherwise) const {
  const Attribute* a = attribute(name);
  if (a) expect(*this, *a, kAttrFloat);
  return a ? static_cast<double>(a->f) : otherwise;
}

std::string Call::s(Text name, const char* otherwise) const {
  const Attribute* a = attribute(name);
  if (a) expect(*this, *a, kAttrString);
  return a ? std::string(a->s) : otherwise;
}

Ints Call::ints(Text name, Ints otherwise) const {
  const Attribute* a = attribute(name);
  if (a) expect(*this, *a, kAttrInts);
  return a ? a->ints : otherwise;
}

std::vector<std::string> Call::strings(Text name) const {
  const Attribute* a = attribute(name);
  if (a) expect(*this, *a, kAttrStrings);
  return a ? std::vector<std::string>(a->strings.begin(), a->strings.end()) : std::vector<std::string>();
}

std::vector<float> Call::floats(Text name) const {
  const Attribute* a = attribute(name);
  if (a) expect(*this, *a, kAttrFloats);
  return a ? a->floats : std::vector<float>();
}

keel_dt Call::type(Text name, keel_dt otherwise) const {
  return has_attribute(name) ? dtype_of(i(name, 0), title()) : otherwise;
}

int64_t Call::axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank) invalid(cat("axis ", axis, " is not in [", -rank, ", ", rank, ")"));
  return axis < 0 ? axis + rank : axis;
}

void Call::set(size_t k, keel_value v) {
  if (k >= out.size()) return;
  out[k] = std::make_shared<Value>();
  out[k]->name = node.outputs[k];
  out[k]->id = v;
}

void Call::set(size_t k, Sizes s) {
  if (k >= out.size()) return;
  out[k] = std::make_shared<Value>();
  out[k]->name = k == 0 ? name : std::string(node.outputs[k]);
  out[k]->nonneg = std::all_of(s.v.begin(), s.v.end(), [&](keel_dim d) { return e.at_least(d, 0); });
  out[k]->sizes = std::move(s);
}

void Call::alias(size_t k, size_t i) {
  value(i);  // throws if the operand is missing
  if (k < out.size()) out[k] = in_[i];
}

void Call::mark_missing() {
  for (auto& result : out) {
    result = std::make_shared<Value>();
    result->missing = true;
  }
}

void Call::expect_outputs(size_t most) const {
  for (size_t k = most; k < node.outputs.size(); k++)
    if (wants(k)) unsupported(cat("result ", k, " ('", node.outputs[k], "') is not supported"));
}

const std::multimap<Text, const Rule*>& rules_by_name() {
  static const auto* index = [] {
    auto* map = new std::multimap<Text, const Rule*>;
    for (Rules rules : {elementwise_rules(),
                        activation_rules(),
                        shape_rules(),
                        slice_rules(),
                        index_rules(),
                        generate_rules(),
                        reduce_rules(),
                        linear_rules(),
                        pool_rules(),
                        norm_rules(),
                        attention_rules(),
                        loss_rules(),
                        quantize_rules(),
                        resize_rules(),
                        signal_rules(),
                        random_rules(),
                        einsum_rules(),
                        qlinear_rules(),
                        place_rules(),
                        choose_rules(),
                        sequence_rules(),
                        string_rules(),
                        string_split_rules(),
                        string_case_rules(),
                        regex_rules(),
                        label_rules(),
                        ngram_rules(),
                        feature_rules(),
                        svm_rules(),
                        sample_rules(),
                        roi_rules(),
                        recurrent_rules(),
                        running_rules(),
                        training_rules(),
                        learning_rules(),
                        tree_rules(),
                        tree_node_rules(),
                        contrib_rules(),
                        contrib_products_rules(),
                        contrib_quantised_rules(),
                        contrib_attention_rules(),
                        old_rules()})
      for (const Rule& rule : rules) map->emplace(rule.op, &rule);
    return map;
  }();
  return *index;
}

const Rule* find_rule(Text domain, Text op, int opset) {
  const Rule* best = nullptr;
  const std::string full = domain.empty() ? std::string(op) : cat(domain, ".", op);
  if (!domain.empty()) opset = INT32_MAX;
  for (auto [at, end] = rules_by_name().equal_range(full); at != end; ++at)
    if (at->second->since <= opset && (!best || at->second->since > best->since)) best = at->second;
  return best;
}

Ints counting(int64_t from, int64_t to) {
  Ints list;
  for (int64_t i = from; i < to; i++) list.push_back(i);
  return list;
}

keel_dim broadcast(Edit& e, keel_dim a, keel_dim b) {
  if (a == 1 || e.is(a, b)) return b;
  // A symbol broadcast with a number is 1 or equal to it, so the number is the result.
  return b == 1 || !KEEL_DIM_IS_HANDLE(a) ? a : b;
}

Dims broadcast(Edit& e, const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims out = longer;
  const size_t skip = longer.size() - shorter.size();
  for (size_t k = 0; k < shorter.size(); k++) out[skip + k] = broadcast(e, longer[skip + k], shorter[k]);
  return out;
}

keel_value negative_index(Edit& e, keel_value index, keel_value size) {
  const keel_value zero = e.scalar(e.dtype(index), 0);
  return e.op("select", {e.op("less", {index, zero}), e.op("add", {index, size}), index});
}

bool stored_number(Call& c, size_t i, double* out) {
  if (!c.has(i)) return false;
  if (const Sizes* s = c.known(i)) {
    if (s->v.size() != 1 || KEEL_DIM_IS_HANDLE(s->v[0])) return false;
    *out = static_cast<double>(s->v[0]);
    return true;
  }
  const Data* d = c.e.data(c.value(i));
  return d && d->count() == 1 && number_at(*d, 0, out);
}

bool never_negative(Call& c, size_t i) {
  Value& v = c.value(i);
  c.e.sizes(v);  // also checks stored numbers
  return v.nonneg;
}

}  // namespace onnx_import
