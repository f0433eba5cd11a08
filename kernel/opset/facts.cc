// facts.cc: what others may ask of an op definition.

#include <algorithm>

#include "kernel/opset/def.h"

namespace keel {

std::string_view OpName(const OpDef& def) { return def.name; }
uint32_t OpVersion(const OpDef& def) { return def.version; }
std::string_view OpDoc(const OpDef& def) { return def.doc; }
bool Has(const OpDef& def, Trait trait) {
  return std::find(def.traits.begin(), def.traits.end(), trait) != def.traits.end();
}
bool HasBody(const OpDef& def) { return !def.body.empty(); }
bool HasEffect(const OpDef& def) { return !def.effect.empty(); }
bool IsTypedByGraph(const OpDef& def) { return def.typed_by != opset::kNoSlot; }

std::vector<OperandInfo> OpOperands(const OpDef& def) {
  std::vector<OperandInfo> out;
  for (const auto& o : def.operands) out.push_back({o.name, o.text, o.optional, o.variadic});
  return out;
}

std::vector<AttrInfo> OpAttrs(const OpDef& def) {
  std::vector<AttrInfo> out;
  for (const auto& a : def.attrs)
    out.push_back({a.name, a.type_text, a.default_text, opset::KindOf(a.type), a.choices});
  return out;
}

std::vector<ResultInfo> OpResults(const OpDef& def) {
  std::vector<ResultInfo> out;
  for (const auto& r : def.results) out.push_back({r.name, r.text, r.variadic});
  return out;
}

std::vector<std::pair<std::string, std::vector<DType>>> OpTypes(const OpDef& def) {
  std::vector<std::pair<std::string, std::vector<DType>>> out;
  for (const auto& v : def.types) {
    std::vector<DType> dtypes;
    for (unsigned d = 1; d < static_cast<unsigned>(DType::kCount); d++)
      if (v.set & opset::Bit(static_cast<DType>(d))) dtypes.push_back(static_cast<DType>(d));
    out.emplace_back(v.name, std::move(dtypes));
  }
  return out;
}

}  // namespace keel
