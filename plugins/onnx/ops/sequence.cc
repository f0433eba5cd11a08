// sequence.cc: operators on sequences and optionals: they move values, and add nodes only where they cut a
// tensor into a sequence or make one of it.
#include <algorithm>

#include "plugins/onnx/import/forms.h"
#include "plugins/onnx/import/text.h"

namespace onnx_import {
namespace {

std::string quoted(const Value& v) { return v.name.empty() ? "" : cat(" ('", v.name, "')"); }

void set_list(Call& c, std::vector<ValueP> elements, keel_dt dtype) {
  if (elements.size() > static_cast<size_t>(kMostElements))
    c.unsupported(cat("a sequence of ", elements.size(), " elements; at most ", kMostElements));
  ValueP list = list_value(std::move(elements), dtype);
  list->name = c.name;
  c.set(0, std::move(list));
}

// Operand i as a position from 0 to `last` in a list of n elements; negative ones count from the end.
ptrdiff_t position(Call& c, size_t i, int64_t n, int64_t last) {
  expect_tensor(c, i);
  const Sizes* s = c.known(i);
  if (!s || s->v.size() != 1 || KEEL_DIM_IS_HANDLE(s->v[0]))
    c.unsupported(cat("the position", quoted(c.value(i)),
                      " depends on data; expected one number that is known while importing"));
  const int64_t at = s->v[0];
  if (n == 0 && last < 0) c.invalid("the sequence is empty");
  if (at < -n || at > last)
    c.invalid(cat("position ", at, " is not in [", -n, ", ", last, "]; the sequence has ", n, " elements"));
  return at < 0 ? at + n : at;
}

int64_t size_of(const List& list) { return static_cast<int64_t>(list.elements.size()); }

keel_dt kind_of(Call& c, size_t i) { return c.value(i).table ? kStrings : c.dtype(i); }
std::string kind_name(keel_dt kind) { return kind == kStrings ? "strings" : dtype_name(kind); }

void expect_dtype(Call& c, const List& list, size_t i) {
  const keel_dt kind = kind_of(c, i);
  if (list.dtype && list.dtype != kind)
    c.invalid(cat("operand ", i, quoted(c.value(i)), " is ", kind_name(kind),
                  "; the sequence's elements are ", kind_name(list.dtype)));
}

void sequence_empty(Call& c) {
  set_list(c, {}, c.i("dtype", 0) == kString ? kStrings : c.type("dtype", KEEL_F32));
}

void sequence_construct(Call& c) {
  if (c.n_in() == 0) c.invalid("it has no operands; an empty sequence is SequenceEmpty");
  List list;
  for (size_t i = 0; i < c.n_in(); i++) {
    expect_tensor(c, i);
    expect_dtype(c, list, i);
    list.elements.push_back(c.inputs()[i]);
    list.dtype = kind_of(c, i);
  }
  set_list(c, std::move(list.elements), list.dtype);
}

void sequence_insert(Call& c) {
  List list = list_of(c, 0);
  expect_tensor(c, 1);
  expect_dtype(c, list, 1);
  const int64_t n = size_of(list), at = c.has(2) ? position(c, 2, n, n) : n;
  list.elements.insert(list.elements.begin() + at, c.inputs()[1]);
  set_list(c, std::move(list.elements), kind_of(c, 1));
}

void sequence_erase(Call& c) {
  List list = list_of(c, 0);
  const int64_t n = size_of(list);
  if (n == 0) c.invalid("the sequence is empty");
  list.elements.erase(list.elements.begin() + (c.has(1) ? position(c, 1, n, n - 1) : n - 1));
  set_list(c, std::move(list.elements), list.dtype);
}

void sequence_at(Call& c) {
  const List& list = list_of(c, 0);
  const int64_t n = size_of(list);
  c.set(0, *(list.elements.begin() + position(c, 1, n, n - 1)));
}

void sequence_length(Call& c) { c.set(0, Sizes{KEEL_I64, {}, {size_of(list_of(c, 0))}}); }

void concat_from_sequence(Call& c) {
  const List& list = list_of(c, 0);
  if (list.elements.empty()) c.invalid("the sequence is empty");
  const int64_t axis = c.required("axis"), fresh = c.i("new_axis", 0);
  if (fresh != 0 && fresh != 1) c.invalid(cat("new_axis is ", fresh, "; expected 0 or 1"));
  c.set(0, fresh ? stacked(c, list.elements, axis) : concatenated(c, list.elements, axis));
}

// The sizes of the parts along the axis.
Dims part_sizes(Call& c, keel_dim size) {
  if (c.has(1) && !c.dims(1).empty()) return c.list(1);
  const Ints one = c.has(1) ? c.numbers(1) : Ints{1};
  if (one.size() != 1 || one[0] < 1) c.invalid("split is not a positive number");
  if (KEEL_DIM_IS_HANDLE(size))
    c.unsupported(
        "the length of the sequence depends on a symbolic dim; give it a number with --dim or --shape");
  if (size / one[0] > kMostElements)
    c.unsupported(cat("a sequence of ", size / one[0], " elements; at most ", kMostElements));
  Dims sizes(static_cast<size_t>(size / one[0]), one[0]);
  if (size % one[0]) sizes.push_back(size % one[0]);
  return sizes;
}

// Parts of known sizes are known sizes.
bool split_sizes(Call& c, const Dims& sizes, bool keep, std::vector<ValueP>* parts) {
  const Sizes* x = c.known(0);
  if (!x || x->shape.size() != 1) return false;
  auto at = x->v.begin();
  for (keel_dim size : sizes) {
    if (KEEL_DIM_IS_HANDLE(size) || size < 0 || size > x->v.end() - at) return false;
    parts->push_back(sizes_value({x->dtype, keep ? Ints{size} : Ints{}, Dims(at, at + size)}));
    at += size;
  }
  return at == x->v.end();
}

void split_to_sequence(Call& c) {
  const int64_t axis = c.axis(c.i("axis", 0), c.rank(0));
  const auto at = static_cast<size_t>(axis);
  const Dims dims = c.dims(0), sizes = part_sizes(c, dims[at]);
  const bool keep = c.has(1) || c.i("keepdims", 1) != 0;
  std::vector<ValueP> parts;
  if (split_sizes(c, sizes, keep, &parts)) return set_list(c, std::move(parts), c.dtype(0));
  parts.clear();
  if (sizes.size() > static_cast<size_t>(kMostElements))
    c.unsupported(cat("a sequence of ", sizes.size(), " elements; at most ", kMostElements));
  const Ids ids = sizes.empty() ? Ids()
                                : c.e.ops("split", {c.in(0)}, Attrs().dims("sizes", sizes).i("axis", axis),
                                          static_cast<uint32_t>(sizes.size()), c.name);
  Dims without = dims;
  without.erase(without.begin() + axis);
  for (keel_value id : ids) {
    parts.push_back(std::make_shared<Value>());
    parts.back()->id = keep ? id : c.e.reshape(id, without);
    parts.back()->table = c.value(0).table;
  }
  set_list(c, std::move(parts), kind_of(c, 0));
}

void optional(Call& c) {
  if (c.n_in() > 1) c.invalid(cat("it has ", c.n_in(), " operands; expected one or none"));
  c.has(0) ? c.alias(0, 0) : c.set(0, absent_value());
}

void optional_has_element(Call& c) { c.set(0, Sizes{KEEL_BOOL, {}, {c.has(0) && !c.value(0).absent}}); }

void optional_get_element(Call& c) {
  if (c.value(0).absent) c.invalid(cat("the optional", quoted(c.value(0)), " has no element"));
  c.alias(0, 0);
}

Rule on_lists(const char* op, int since, void (*convert)(Call&), const char* attributes = "",
              uint32_t values = 0) {
  return {op, since, convert, attributes, values, false, true, true};
}

const Rule kRules[] = {
    on_lists("SequenceEmpty", 11, sequence_empty, "dtype"),
    on_lists("SequenceConstruct", 11, sequence_construct),
    on_lists("SequenceInsert", 11, sequence_insert, "", bit(2)),
    on_lists("SequenceErase", 11, sequence_erase, "", bit(1)),
    on_lists("SequenceAt", 11, sequence_at, "", bit(1)),
    on_lists("SequenceLength", 11, sequence_length),
    on_lists("ConcatFromSequence", 11, concat_from_sequence, "axis new_axis"),
    {"SplitToSequence", 11, split_to_sequence, "axis keepdims", bit(1), false, false, true},
    on_lists("Optional", 15, optional, "type"),
    on_lists("OptionalHasElement", 15, optional_has_element),
    on_lists("OptionalGetElement", 15, optional_get_element),
};

// Ranks and dims must agree, except along `free`.
void expect_alike(Call& c, const std::vector<ValueP>& parts, int64_t free) {
  const Dims first = c.e.dims(*parts[0]);
  for (size_t k = 1; k < parts.size(); k++) {
    const Dims dims = c.e.dims(*parts[k]);
    if (dims.size() != first.size())
      c.invalid(cat("element ", k, " has ", dims.size(), " dims, but element 0 has ", first.size()));
    for (size_t d = 0; d < dims.size(); d++)
      if (static_cast<int64_t>(d) != free && !c.e.may_be(dims[d], first[d]))
        c.invalid(cat("dim ", d, " of element ", k, " is ", c.e.text(dims[d]), ", but it is ",
                      c.e.text(first[d]), " in element 0"));
  }
}

// Known sizes along the first axis stay known; null: not all are known, or there are too many.
ValueP joined_sizes(Call& c, const std::vector<ValueP>& parts, bool fresh) {
  Sizes all;
  for (const ValueP& part : parts) {
    const Sizes* s = c.e.sizes(*part);
    if (!s || s->shape.size() != (fresh ? 0 : 1) || all.v.size() + s->v.size() > 256) return nullptr;
    all.dtype = s->dtype;
    all.v.insert(all.v.end(), s->v.begin(), s->v.end());
  }
  all.shape = {static_cast<int64_t>(all.v.size())};
  return sizes_value(std::move(all));
}

// The data of the parts; of strings the indices of one table.
Joined data_of(Call& c, const std::vector<ValueP>& parts) {
  if (parts[0]->table) return joined(c, parts);
  Joined made;
  for (const ValueP& part : parts) made.indices.push_back(c.e.id(*part));
  return made;
}

ValueP concat_ids(Call& c, const Ids& ids, const ValueP& table, int64_t axis) {
  auto value = std::make_shared<Value>();
  value->name = c.name;
  value->id = ids.size() == 1 ? ids[0] : c.e.op("concat", ids, Attrs().i("axis", axis), c.name);
  value->table = table;
  return value;
}

}  // namespace

std::string form_of(const Value& v) {
  if (v.absent) return "an absent optional";
  if (v.table) return "a tensor of strings";
  return v.list ? cat("a sequence of ", v.list->elements.size()) : "a tensor";
}

void expect_tensor(Call& c, size_t i) {
  const Value& v = c.value(i);
  if (v.list || v.absent) c.invalid(cat("operand ", i, quoted(v), " is ", form_of(v), "; expected a tensor"));
}

const List& list_of(Call& c, size_t i) {
  const Value& v = c.value(i);
  if (!v.list) c.invalid(cat("operand ", i, quoted(v), " is ", form_of(v), "; expected a sequence"));
  return *v.list;
}

ValueP stacked(Call& c, const std::vector<ValueP>& parts, int64_t axis) {
  expect_alike(c, parts, -1);
  Dims dims = c.e.dims(*parts[0]);
  const int64_t at = c.axis(axis, static_cast<int64_t>(dims.size()) + 1);
  if (ValueP known = joined_sizes(c, parts, true)) return known;
  Joined all = data_of(c, parts);
  for (keel_value& id : all.indices) {
    dims = c.e.dims(id);
    dims.insert(dims.begin() + at, 1);
    id = c.e.reshape(id, dims);
  }
  return concat_ids(c, all.indices, all.table, at);
}

ValueP concatenated(Call& c, const std::vector<ValueP>& parts, int64_t axis) {
  const int64_t at = c.axis(axis, static_cast<int64_t>(c.e.dims(*parts[0]).size()));
  expect_alike(c, parts, at);
  if (ValueP known = joined_sizes(c, parts, false)) return known;
  const Joined all = data_of(c, parts);
  return concat_ids(c, all.indices, all.table, at);
}

Rules sequence_rules() { return kRules; }

}  // namespace onnx_import
