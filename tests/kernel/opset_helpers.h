// opset_helpers.h: a fixture for tests of the catalogue: types as text in and out.
#pragma once

#include "gtest/gtest.h"
#include "kernel/language/opset/opset.h"

namespace keel {

inline Attr I(const char* name, int64_t i) { return {name, {KEEL_ATTR_I64, i, 0, "", {}, {}}}; }
inline Attr B(const char* name, bool b) { return {name, {KEEL_ATTR_BOOL, b, 0, "", {}, {}}}; }
inline Attr F(const char* name, double f) { return {name, {KEEL_ATTR_F64, 0, f, "", {}, {}}}; }
inline Attr S(const char* name, const char* s) { return {name, {KEEL_ATTR_STR, 0, 0, s, {}, {}}}; }
inline Attr T(const char* name, DType d) {
  return {name, {KEEL_ATTR_DTYPE, static_cast<int64_t>(d), 0, "", {}, {}}};
}
inline Attr L(const char* name, std::vector<int64_t> list) {
  return {name, {KEEL_ATTR_I64S, 0, 0, "", std::move(list), {}}};
}

// One catalogue and one table of dims. Types are in graph text: "f32[b, 2]"; "1" and "1.0" are literals, "-"
// is an omitted operand.
class Opset : public testing::Test {
 protected:
  TensorType Type(std::string_view text) {
    TensorType out;
    size_t open = text.find('[');
    out.dtype = ParseDType(text.substr(0, open)).value_or(DType::kNone);
    std::string_view rest = text.substr(open + 1, text.size() - open - 2);
    while (!rest.empty()) {
      size_t comma = rest.find(',');
      out.dims.push_back(*dims.Parse(rest.substr(0, comma)));
      rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
    }
    return out;
  }
  std::vector<Operand> Operands(const std::vector<const char*>& types) {
    std::vector<Operand> out;
    for (std::string_view t : types) {
      Operand& o = out.emplace_back();
      if (t == "-")
        o.kind = Operand::kAbsent;
      else if (t == "1")
        o.kind = Operand::kWeakInt;
      else if (t == "1.0")
        o.kind = Operand::kWeakFloat;
      else
        o.type = Type(t);
    }
    return out;
  }
  VarTypeOf vars = [this](int64_t n) -> absl::StatusOr<TensorType> {  // f32[2, 3], or bool[]
    return n ? Type("bool[]") : Type("f32[2, 3]");
  };
  // "f32[2], i64[2]", or the error's message.
  std::string Infer(const char* op, const std::vector<const char*>& types, const Attrs& attrs = {}) {
    auto def = catalogue.Find(op, 0);
    if (!def.ok()) return std::string(def.status().message());
    absl::Status status = keel::Infer(**def, Operands(types), attrs, dims, &inferred, nullptr, &vars);
    if (!status.ok()) return std::string(status.message());
    std::string out;
    for (const TensorType& r : inferred.results)
      absl::StrAppend(&out, out.empty() ? "" : ", ", Print(r, dims));
    return out;
  }
  std::string Checks() {
    std::string out;
    for (const auto& c : inferred.checks)
      absl::StrAppend(&out, out.empty() ? "" : ", ", dims.Print(c.a),
                      c.equal ? " == " : " <= ", dims.Print(c.b));
    return out;
  }
  const AttrValue& Got(std::string_view name) {
    for (const Attr& a : inferred.attrs)
      if (a.name == name) return a.value;
    static const AttrValue kNothing;
    return kNothing;
  }

  Catalogue catalogue;
  DimTable dims;
  Inferred inferred;
};

}  // namespace keel
