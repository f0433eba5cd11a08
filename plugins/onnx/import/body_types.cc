// body_types.cc: types of the results of branches, and of the values that loops carry, scan and stack. Keel's
// control ops check types, too; these checks come first because their messages name the model's nodes and
// values.
#include <algorithm>

#include "plugins/onnx/import/forms.h"
#include "plugins/onnx/import/importer.h"

namespace onnx_import {
namespace {

bool same_dims(Edit& e, const Dims& a, const Dims& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](keel_dim x, keel_dim y) { return e.is(x, y); });
}

std::string text_of(Edit& e, bool strings, keel_dt dtype, const Dims& dims) {
  const std::string type = e.type_text(dtype, dims);
  return strings ? cat("string", type.substr(type.find('['))) : type;
}
std::string shown(Edit& e, Value& v) { return text_of(e, v.table != nullptr, e.dtype(v), e.dims(v)); }

std::vector<ValueP> tensors_of(const ValueP& v) {
  if (v->absent) return {};
  if (!v->list) return {v};
  std::vector<ValueP> all;
  for (const ValueP& element : v->list->elements)
    for (const ValueP& tensor : tensors_of(element)) all.push_back(tensor);
  return all;
}

bool same_type(Edit& a, Value& one, Edit& b, Value& other) {
  if (!one.table != !other.table || a.dtype(one) != b.dtype(other)) return false;
  if (one.table && !same_type(a, *one.table, b, *other.table)) return false;
  return same_dims(a, a.dims(one), b.dims(other));
}

void expect_one(const Call& call, Edit& e, Value& v, bool is_flag, const std::string& what) {
  const Dims dims = e.dims(v);
  const bool one = std::all_of(dims.begin(), dims.end(), [&](keel_dim d) { return e.is(d, 1); });
  const bool fits = !v.table && (is_flag ? e.dtype(v) == KEEL_BOOL : is_integer(e.dtype(v)));
  if (!one || !fits)
    call.invalid(cat(what, " is ", shown(e, v), "; expected one ", is_flag ? "bool" : "integer"));
}

bool is_packed(keel_dt dtype) { return keel::dtype_bits(dtype) < 8; }

}  // namespace

void expect_flag(Call& call, size_t i) {
  expect_one(call, call.e, call.value(i), true, cat("its condition ('", call.value(i).name, "')"));
}
void expect_count(Call& call, size_t i) {
  expect_one(call, call.e, call.value(i), false, cat("its trip count ('", call.value(i).name, "')"));
}

// ---- branches

// How the results of two branches differ in type; "" if they do not.
std::string Importer::differing(Call& call, const Graph& yes, Body& a, const Graph& no, Body& b) {
  const auto both = [&](size_t k, const std::string& one, const std::string& other) {
    return cat("result ", k, k < call.node.outputs.size() ? cat(" ('", call.node.outputs[k], "')") : "",
               " of its branches differs: ", one, " in then_branch ('", yes.outputs[k].name, "'), ", other,
               " in else_branch ('", no.outputs[k].name, "')");
  };
  for (size_t k = 0; k < a.results.size(); k++) {
    const std::string one = form_of(*a.results[k]), other = form_of(*b.results[k]);
    if (one != other) return both(k, one, other);
    const auto from_a = tensors_of(a.results[k]), from_b = tensors_of(b.results[k]);
    for (size_t i = 0; i < from_a.size(); i++)
      if (!same_type(a.edit, *from_a[i], b.edit, *from_b[i]))
        return both(k, shown(a.edit, *from_a[i]), shown(b.edit, *from_b[i]));
  }
  return "";
}

// ---- loops

void expect_results(const Call& call, size_t made) {
  if (call.node.outputs.size() > made)
    call.invalid(cat("it has ", call.node.outputs.size(), " results, but its body makes ", made));
}

// Bodies that run in a loop carry and return tensors alone.
void Importer::expect_tensors(Call& call, const Body& body) {
  for (size_t k = 0; k < body.results.size(); k++)
    if (const Value& v = *body.results[k]; v.list || v.absent)
      call.unsupported(cat("result ", k, " of its body is ", form_of(v), "; expected a tensor"));
}

void Importer::expect_condition(Call& call, const Graph& g, Body& body) {
  expect_one(call, body.edit, *body.results[0], true,
             cat("the condition that its body returns ('", g.outputs[0].name, "')"));
}

// How the shape of a value that the loop carries differs after the body; "": none does. The dtype must not.
std::string Importer::changing(Call& call, const Graph& g, Body& body, const std::vector<Parameter>& first,
                               const Carried& carried) {
  Edit& e = body.edit;
  for (size_t k = 0; k < carried.n; k++) {
    const Parameter& p = first[carried.param + k];
    const size_t result = carried.result + k;
    Value& after = *body.results[result];
    const bool strings = body.strings.contains(result);
    const Dims dims = e.dims(after);
    const bool same_dtype = p.strings == strings && p.dtype == e.dtype(after);
    if (same_dtype && same_dims(e, p.dims, dims)) continue;
    const auto text = [&](bool are_strings, keel_dt dtype, Dims of) {
      if (are_strings) of.pop_back();  // the bytes
      return text_of(e, are_strings, dtype, of);
    };
    const std::string how =
        cat("the value that it carries as '", p.name, "' is ", text(p.strings, p.dtype, p.dims),
            " before its body and ", text(strings, e.dtype(after), dims), " after it ('",
            g.outputs[result].name, "')");
    if (!same_dtype) call.invalid(cat(how, "; expected one dtype: cast it in the body"));
    return how;
  }
  return "";
}

// Stacked results get one more dim, and begin at bytes.
void Importer::expect_stackable(Call& call, const Graph& g, Body& body, size_t from) {
  for (size_t k = from; k < body.results.size(); k++) {
    Value& v = *body.results[k];
    const std::string what =
        cat("the result '", g.outputs[k].name, "' that its body stacks is ", body.edit.type(v));
    if (is_packed(body.edit.dtype(v)))
      call.unsupported(cat(what, ", whose elements are packed; cast it to INT8 or UINT8 in the body"));
    if (body.edit.dims(v).size() >= KEEL_MAX_RANK)
      call.unsupported(
          cat(what, ", so that it has ", KEEL_MAX_RANK + 1, " dims; Keel has at most ", KEEL_MAX_RANK));
  }
}

// Of unrolled loops, whose iterations may return other types.
void expect_alike(Call& call, Text name, const std::vector<ValueP>& parts) {
  for (size_t k = 1; k < parts.size(); k++) {
    Value &one = *parts[0], &other = *parts[k];
    const Dims a = call.e.dims(one), b = call.e.dims(other);
    const bool fits = std::equal(a.begin(), a.end(), b.begin(), b.end(),
                                 [&](keel_dim x, keel_dim y) { return call.e.may_be(x, y); });
    if (fits && !one.table == !other.table && call.e.dtype(one) == call.e.dtype(other)) continue;
    call.invalid(cat("the result '", name, "' that its body stacks is ", shown(call.e, one),
                     " in iteration 0 and ", shown(call.e, other), " in iteration ", k,
                     "; expected one type"));
  }
}

// Operands from `first` on, turned so that their first dim is scanned.
void Importer::expect_scannable(Call& call, const Ids& scanned, size_t first) {
  Edit& e = call.e;
  const auto name = [&](size_t k) { return cat("'", call.value(first + k).name, "'"); };
  for (size_t k = 0; k < scanned.size(); k++) {
    if (is_packed(e.dtype(scanned[k])))
      call.unsupported(cat("the operand ", name(k), " that it scans is ", dtype_name(e.dtype(scanned[k])),
                           ", whose elements are packed; cast it to INT8 or UINT8 before"));
    const keel_dim one = e.dims(scanned[0])[0], other = e.dims(scanned[k])[0];
    if (e.is(one, other)) continue;
    const std::string why = cat("it scans ", e.text(one), " entries of ", name(0), " and ", e.text(other),
                                " of ", name(k), "; expected as many");
    if (!e.may_be(one, other)) call.invalid(why);
    call.unsupported(cat(why, "; give open sizes as numbers (--dim, --shape)"));
  }
}

}  // namespace onnx_import
