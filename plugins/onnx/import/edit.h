// edit.h: the Keel module under construction, and the values of the ONNX model in it.
//
// A Value is one ONNX value: a node's result (id), stored numbers (tensor, data), or known sizes, i.e. small
// integer lists whose entries may be symbolic dims. Stored numbers and sizes enter the Keel module only when
// a node reads them as data, through id(Value&). Edit wraps the host's functions: it throws on failure and
// computes with dims.
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "plugins/onnx/model/tensor.h"
#include "sdk/cpp/keel/plugin_attrs.hpp"

namespace onnx_import {

using Attrs = keel::PluginAttrs;
using Dims = std::vector<keel_dim>;
using Ints = std::vector<int64_t>;

// A small array of integers or bools, known at import up to symbolic dims.
struct Sizes {
  keel_dt dtype = KEEL_I64;
  Ints shape;  // of the array; empty: a scalar
  Dims v;      // elements in row-major order
};

// Whether an element is below the numbers that sizes have, which end there.
inline bool clipped(const Sizes& s) {
  return std::find(s.v.begin(), s.v.end(), KEEL_DIM_HANDLES) != s.v.end();
}

struct List;

struct Value {
  std::string name;
  keel_value id = KEEL_NO_VALUE;
  const Tensor* tensor = nullptr;
  std::shared_ptr<Data> data;
  std::optional<Sizes> sizes;
  std::set<std::string> needs;       // parameters whose values would make the sizes known
  bool unsized = false;              // the data was checked and holds no sizes
  bool nonneg = false;               // no element is below 0
  bool missing = false;              // not converted: needs a parameter's value
  std::shared_ptr<const List> list;  // a sequence, which has none of the contents above
  bool absent = false;               // an optional without an element
  // Of a tensor of strings, whose other contents are indices of the table's rows (text.h): the table, and the
  // strings' bytes if they are known already.
  std::shared_ptr<Value> table;
  keel_value bytes = KEEL_NO_VALUE;
  bool rows_in_order = false;  // element i is row i of the table
};
using ValueP = std::shared_ptr<Value>;

struct List {
  std::vector<ValueP> elements;  // tensors; their shapes may differ
  keel_dt dtype = 0;             // 0: not known, of an empty one; or kStrings
};
constexpr keel_dt kStrings = ~keel_dt{0};  // in place of the dtype of sequences of strings
using Ids = std::vector<keel_value>;

class Edit {
 public:
  Edit(const keel_host* host, const keel_source* source, keel_edit* edit)
      : host_(host), source_(source), edit_(edit) {}

  // Dims: numbers are computed here, symbols by Keel.
  keel_dim add(keel_dim a, keel_dim b) { return math(KEEL_DIM_ADD, a, b); }
  keel_dim sub(keel_dim a, keel_dim b) { return math(KEEL_DIM_SUB, a, b); }
  keel_dim mul(keel_dim a, keel_dim b) { return math(KEEL_DIM_MUL, a, b); }
  keel_dim div(keel_dim a, keel_dim b) { return math(KEEL_DIM_FLOORDIV, a, b); }
  keel_dim max(keel_dim a, keel_dim b) { return math(KEEL_DIM_MAX, a, b); }
  keel_dim min(keel_dim a, keel_dim b) { return math(KEEL_DIM_MIN, a, b); }
  static bool compute(int32_t op, int64_t a, int64_t b,
                      int64_t* out);  // numbers only; false: overflow, or b is 0
  keel_dim product(const Dims& dims, size_t from = 0, size_t to = SIZE_MAX);
  int32_t compare(keel_dim a, keel_dim b);
  bool is(keel_dim a, keel_dim b) { return compare(a, b) == KEEL_EQUAL; }
  bool may_be(keel_dim a, keel_dim b);  // for some values of symbols
  // for all values of symbols
  bool at_least(keel_dim a, int64_t n) { return compare(a, n - 1) == KEEL_GREATER; }
  keel_dim symbol(const std::string& name);
  std::string text(keel_dim d) const;  // for messages: "3", "2*n"

  // Nodes. `name` is empty for helpers.
  Ids ops(const char* op, const Ids& in, const Attrs& attrs, uint32_t n_out, const std::string& name = "");
  keel_value op(const char* op, const Ids& in, const Attrs& attrs = {}, const std::string& name = "") {
    return ops(op, in, attrs, 1, name)[0];
  }
  keel_value cast(keel_value v, keel_dt to) {
    return dtype(v) == to ? v : op("cast", {v}, Attrs().dtype("to", to));
  }
  keel_value reshape(keel_value v, Dims to) { return op("reshape", {v}, Attrs().dims("to", std::move(to))); }
  keel_value scalar(keel_dt dtype, double number);
  keel_value number(keel_dim d, keel_dt dtype);  // a dim as data
  keel_value array(const Sizes& s, const std::string& name = "");
  keel_value iota(keel_dim n, keel_dt dtype) {
    return op("iota", {}, Attrs().dims("dims", {n}).dtype("dtype", dtype));
  }
  keel_value param(const std::string& name, keel_dt dtype, const Dims& dims);
  void result(const std::string& name, keel_value v);
  // The gradient of the sum of y's elements; zeros for an x on which y does not depend.
  Ids gradient(keel_value y, const Ids& xs);
  // Another graph of the module, a body; number: for the attribute of the node that runs it.
  Edit new_graph(int64_t* number);
  // A u64 variable of the module; the attribute that names it.
  keel_attr variable(const std::string& name, uint64_t initial);
  uint32_t variables() const { return *variables_; }  // made so far
  void metadata(const std::string& key, const std::string& value);

  Dims dims(keel_value v);
  keel_dt dtype(keel_value v);

  // Values of the ONNX model.
  keel_value id(Value& v);       // as data
  const Sizes* sizes(Value& v);  // null: not known, or strings
  const Data* data(Value& v);    // null: not stored
  Dims dims(Value& v);
  keel_dt dtype(Value& v);
  std::string type(Value& v) { return type_text(dtype(v), dims(v)); }
  std::string type_text(keel_dt dtype, const Dims& dims) const;  // for messages: "f32[2, n]"
  const keel_source& source() const { return *source_; }

 private:
  keel_dim math(int32_t op, keel_dim a, keel_dim b);
  keel_value constant(const Data& d, const std::string& name);
  const char* unique(const std::string& name);  // null: already used
  void check(keel_rc rc) const;

  const keel_host* host_;
  const keel_source* source_;
  keel_edit* edit_;
  std::unordered_set<std::string> names_;
  std::map<std::pair<keel_dt, uint64_t>, keel_value> scalars_;
  bool is_body_ = false;  // its constants have no names, which a module has only once
  // Made so far, for their names.
  std::shared_ptr<int64_t> graphs_ = std::make_shared<int64_t>(0);
  std::shared_ptr<uint32_t> variables_ = std::make_shared<uint32_t>(0);
};

}  // namespace onnx_import
