// text_print.cc: prints a module as text that ParseText reads back exactly. Grammar:
// docs/reference/text_form.md.

#include <algorithm>
#include <numeric>

#include "kernel/language/graph/constant.h"
#include "kernel/language/graph/element.h"
#include "kernel/language/graph/graph.h"
#include "kernel/language/graph/module_index.h"
#include "kernel/language/graph/names.h"
#include "kernel/language/graph/node_effects.h"
#include "kernel/language/graph/text.h"
#include "kernel/language/opset/lexer.h"

namespace keel {
namespace {

constexpr uint64_t kListedElements = 64;  // longer constants are printed as hex

class Printer {
 public:
  Printer(const Module& m, uint64_t max_constant_bytes) : m_(m), max_bytes_(max_constant_bytes) {}

  std::string Line(const Graph& g, const Node& n) {
    PrintNode(g, n);
    return std::move(out_);
  }

  std::string Run() {
    out_ = "keel 1\n";
    for (const auto& [key, value] : m_.metadata)
      absl::StrAppend(&out_, "meta ", Quote(key), " = ", Quote(value), "\n");
    for (const Constant& c : m_.constants)
      if (!c.name.empty()) PrintConstant(c);
    for (const ModuleVariable& v : m_.variables) PrintVariable(v);
    FindInlined();
    for (uint32_t g : Order())
      if (inlined_.empty() || !inlined_[g]) PrintGraph(*m_.graphs[g]);
    if (!m_.entries.empty()) out_ += "\n";
    for (const Entry& e : m_.entries) PrintEntry(e);
    for (const Case& c : m_.cases) PrintCase(c);
    return std::move(out_);
  }

 private:
  std::string Type(const TensorType& t) { return Print(t, m_.dims); }

  // Called graphs first, as the parser requires. An invalid module is printed in stored order.
  std::vector<uint32_t> Order() {
    auto order = CallOrder(m_);
    if (order.ok()) return *order;
    std::vector<uint32_t> all(m_.graphs.size());
    std::iota(all.begin(), all.end(), 0u);
    return all;
  }

  // Bodies used by one node only are printed inline.
  void FindInlined() {
    if (!CallOrder(m_).ok()) return;
    std::vector<uint32_t> uses(m_.graphs.size());
    for (const auto& g : m_.graphs)
      for (const Node& n : g->nodes)
        for (uint32_t body : BodiesOf(n.attrs)) uses[body] += IsControl(*n.op) ? 1 : 2;
    for (const Entry& e : m_.entries) uses[e.graph] += 2;
    inlined_.assign(m_.graphs.size(), false);
    for (size_t g = 0; g < inlined_.size(); g++) {
      const auto& names = m_.graphs[g]->result_names;
      bool named = std::any_of(names.begin(), names.end(), [](const auto& n) { return !n.empty(); });
      inlined_[g] = uses[g] == 1 && !named;
    }
    for (const auto& g : m_.graphs)
      for (const Node& n : g->nodes)
        for (const Attr& a : n.attrs)
          if (a.value.kind == KEEL_ATTR_GRAPHS && !Inlined(a))
            for (int64_t body : a.value.list) inlined_[static_cast<size_t>(body)] = false;
  }
  // Bodies of a list are inlined all or not at all, because their order matters.
  bool Inlined(const Attr& a) {
    if (inlined_.empty()) return false;
    if (a.value.kind == KEEL_ATTR_GRAPH) return inlined_[static_cast<size_t>(a.value.i)];
    return a.value.kind == KEEL_ATTR_GRAPHS && !a.value.list.empty() &&
           std::all_of(a.value.list.begin(), a.value.list.end(),
                       [&](int64_t g) { return inlined_[static_cast<size_t>(g)]; });
  }

  // With its current value; "..." if a run that computes it failed.
  void PrintVariable(const ModuleVariable& v) {
    absl::StatusOr<ArrayRef> value = v.storage->Read();
    bool shown = (*value)->bytes() <= max_bytes_;
    if (shown) value = v.storage->ReadOnHost();
    absl::StrAppend(&out_, "var ", SpellName(v.name), ": ", Type(v.type), " = ");
    out_ += shown && value.ok() ? Data(ConstantOf(v.name, *value)) : "...";
    out_ += "\n";
  }

  void PrintConstant(const Constant& c) {
    absl::StrAppend(&out_, "const ", SpellName(c.name), ": ", Type(c.type), " = ");
    out_ += c.bytes > max_bytes_ ? "..." : Data(c);
    out_ += "\n";
  }

  std::string Data(const Constant& c) {
    const auto count = static_cast<uint64_t>(CountOf(c.type.dims, c.type.dtype).value_or(0));
    std::string list = "[";
    for (uint64_t i = 0; i < count && count <= kListedElements; i++) {
      uint64_t bits = 0;
      LoadElement(c.type.dtype, c.data, static_cast<int64_t>(i), &bits);
      std::string element = PrintElement(c.type.dtype, &bits);
      if (element.empty()) return Hex(c);
      absl::StrAppend(&list, i ? ", " : "", element);
    }
    return count <= kListedElements ? list + "]" : Hex(c);
  }
  std::string Hex(const Constant& c) { return absl::StrCat("hex\"", PrintHex(c.data, c.bytes), "\""); }

  std::string TypedLiteral(const Constant& c) {
    std::string text = PrintElement(c.type.dtype, c.data);
    if (c.type.dtype == DType::kBool && !text.empty()) return text;
    return absl::StrCat(Name(c.type.dtype), "(", text.empty() ? Hex(c) : text, ")");
  }
  std::string ConstantRef(const Constant& c) { return c.name.empty() ? TypedLiteral(c) : SpellName(c.name); }

  std::string Ref(const Graph& g, ValueId id) {
    if (id == kNoValue) return "none";
    const Value& v = g.values[id];
    if (v.kind == ValueKind::kConstant) return ConstantRef(m_.constants[v.index]);
    return v.name.empty() ? ResultName(v.index, v.result) : SpellName(v.name);
  }

  // Whether an untyped literal would get this dtype again: another operand with the same dtype variable, not
  // a literal, has it.
  bool IsDTypeImplied(const Graph& g, const Node& n, const OpFacts& facts, size_t at) {
    std::string variable = DTypeVariable(facts, at, n.in.size());
    if (variable.empty()) return false;
    // Inline bodies take the types of the operands, where a literal is i32 or f32.
    DType dtype = g.values[n.in[at]].type.dtype;
    if (IsControl(*n.op) && dtype != DType::kI32 && dtype != DType::kF32) return false;
    for (size_t i = 0; i < n.in.size(); i++) {
      if (n.in[i] == kNoValue || DTypeVariable(facts, i, n.in.size()) != variable) continue;
      const Value& v = g.values[n.in[i]];
      if (v.kind != ValueKind::kConstant || !m_.constants[v.index].name.empty()) return true;
    }
    return false;
  }
  static std::string DTypeVariable(const OpFacts& facts, size_t at, size_t count) {
    const OperandInfo* info = OperandAt(facts, at, count);
    if (!info || info->pattern.find('?') != std::string::npos) return "";
    std::string name = info->pattern.substr(0, info->pattern.find('['));
    return ParseDType(name) ? "" : name;
  }

  std::string OperandText(const Graph& g, const Node& n, const OpFacts& facts, size_t i) {
    if (n.in[i] != kNoValue && g.values[n.in[i]].kind == ValueKind::kConstant) {
      const Constant& c = m_.constants[g.values[n.in[i]].index];
      std::string bare = c.name.empty() ? PrintElement(c.type.dtype, c.data) : "";
      if (!bare.empty() && IsDTypeImplied(g, n, facts, i)) return bare;
    }
    return Ref(g, n.in[i]);
  }

  std::string DimList(const std::vector<int64_t>& dims) {
    std::string out = "[";
    for (size_t i = 0; i < dims.size(); i++) absl::StrAppend(&out, i ? ", " : "", m_.dims.Print(dims[i]));
    return out + "]";
  }
  std::string GraphRef(int64_t g) {
    auto i = static_cast<size_t>(g);
    return i < m_.graphs.size() ? "@" + SpellName(m_.graphs[i]->name) : "@?";
  }
  std::string AttrText(const AttrInfo* info, const AttrValue& v) {
    switch (v.kind) {
      case KEEL_ATTR_BOOL:
        return v.i ? "true" : "false";
      case KEEL_ATTR_I64:
        return absl::StrCat(v.i);
      case KEEL_ATTR_F64:
        return SpellFloat(v.f);
      case KEEL_ATTR_DTYPE:
        return std::string(Name(static_cast<DType>(v.i)));
      case KEEL_ATTR_DIM:
        return m_.dims.Print(v.i);
      case KEEL_ATTR_DIMS:
        return DimList(v.list);
      case KEEL_ATTR_GRAPH:
        return GraphRef(v.i);
      case KEEL_ATTR_VAR:
        return static_cast<size_t>(v.i) < m_.variables.size()
                   ? SpellName(m_.variables[static_cast<size_t>(v.i)].name)
                   : "?";
      case KEEL_ATTR_STR:
        return info && !info->choices.empty() && IsPlainName(v.s) ? v.s : Quote(v.s);
      default:
        break;
    }
    std::string out = "[";
    for (size_t i = 0; i < v.list.size(); i++)
      absl::StrAppend(&out, i ? ", " : "",
                      v.kind == KEEL_ATTR_GRAPHS ? GraphRef(v.list[i]) : absl::StrCat(v.list[i]));
    for (size_t i = 0; i < v.floats.size(); i++)
      absl::StrAppend(&out, i ? ", " : "", SpellFloat(v.floats[i]));
    return out + "]";
  }

  // If the lookup fails, the newest version is unknown: print the number.
  std::string OpText(const OpDef& op) {
    auto newest = m_.catalogue->Find(OpName(op), 0);
    if (newest.ok() && *newest == &op) return std::string(OpName(op));
    return absl::StrCat(OpName(op), "@", OpVersion(op));
  }

  void PrintNode(const Graph& g, const Node& n) {
    auto known = m_.index->ops.find(n.op);
    OpFacts made;
    if (known == m_.index->ops.end()) made = MakeFacts(*n.op);
    const OpFacts& facts = known == m_.index->ops.end() ? made : *known->second;
    out_.append(indent_, ' ');
    for (size_t i = 0; i < n.out.size(); i++) absl::StrAppend(&out_, i ? ", " : "", Ref(g, n.out[i]));
    if (!n.name.empty()) absl::StrAppend(&out_, SpellName(n.name), ": ");
    absl::StrAppend(&out_, n.out.empty() ? "" : " = ", OpText(*n.op), "(");
    const char* comma = "";
    for (const Attr& a : n.attrs)
      if (a.value.kind == KEEL_ATTR_VAR) absl::StrAppend(&out_, AttrText(nullptr, a.value)), comma = ", ";
    for (size_t i = 0; i < n.in.size(); i++, comma = ", ")
      absl::StrAppend(&out_, comma, OperandText(g, n, facts, i));
    out_ += ")";
    size_t shown = 0;
    for (const Attr& a : n.attrs)
      if (!Inlined(a) && a.value.kind != KEEL_ATTR_VAR)
        absl::StrAppend(&out_, shown++ ? ", " : "{", a.name, "=", AttrText(facts.FindAttr(a.name), a.value));
    if (shown) out_ += "}";
    if (n.origin.device) absl::StrAppend(&out_, " @", SpellName(m_.devices[n.origin.device - 1]));
    for (const AttrInfo& info : facts.attrs)  // in the op's order
      for (const Attr& a : n.attrs)
        if (a.name == info.name && Inlined(a)) PrintBodies(g, n, a);
    for (size_t i = 0; i < n.out.size(); i++)
      absl::StrAppend(&out_, i ? ", " : " : ", Type(g.values[n.out[i]].type));
    out_ += "\n";
  }

  void PrintBodies(const Graph& g, const Node& n, const Attr& a) {
    auto id = static_cast<NodeId>(&n - g.nodes.data());
    std::string own = n.out.empty() ? n.name : g.values[n.out[0]].name;
    if (own.empty()) own = ResultName(id, 0);
    std::vector<int64_t> bodies = a.value.list;
    if (a.value.kind == KEEL_ATTR_GRAPH) bodies = {a.value.i};
    for (size_t i = 0; i < bodies.size(); i++) {
      const Graph& body = *m_.graphs[static_cast<size_t>(bodies[i])];
      std::string plain = absl::StrCat(g.name, ".", own, ".", a.name);
      if (a.value.kind == KEEL_ATTR_GRAPHS) absl::StrAppend(&plain, i);
      out_ += "\n" + std::string(indent_ + 2, ' ') + a.name;
      if (body.name != plain) absl::StrAppend(&out_, " @", SpellName(body.name));
      PrintInlined(body);
    }
  }

  void PrintInlined(const Graph& body) {
    out_ += "(";
    for (size_t i = 0; i < body.params.size(); i++)
      absl::StrAppend(&out_, i ? ", " : "", Ref(body, body.params[i]));
    out_ += ") {\n";
    indent_ += 4;
    for (const Node& n : body.nodes) PrintNode(body, n);
    out_ += std::string(indent_, ' ') + "yield";
    for (size_t i = 0; i < body.results.size(); i++)
      absl::StrAppend(&out_, i ? ", " : " ", Ref(body, body.results[i]));
    indent_ -= 4;
    out_ += "\n" + std::string(indent_ + 2, ' ') + "}";
  }

  void PrintGraph(const Graph& g) {
    absl::StrAppend(&out_, "\nfn @", SpellName(g.name), "(");
    for (size_t i = 0; i < g.params.size(); i++)
      absl::StrAppend(&out_, i ? ", " : "", Ref(g, g.params[i]), ": ", Type(g.values[g.params[i]].type));
    out_ += ")";
    for (size_t i = 0; i < g.results.size(); i++) {
      absl::StrAppend(&out_, i ? ", " : " -> ");
      if (!g.result_names[i].empty()) absl::StrAppend(&out_, SpellName(g.result_names[i]), ": ");
      out_ += Type(g.values[g.results[i]].type);
    }
    for (size_t i = 0; i < g.rules.size(); i++) absl::StrAppend(&out_, i ? ", " : " where ", g.rules[i]);
    std::string effects = Describe(m_, g.effects);
    absl::StrAppend(&out_, " {", effects.empty() ? "" : absl::StrCat("  #", effects.substr(1)), "\n");
    for (const Node& n : g.nodes) PrintNode(g, n);
    out_ += "  return";
    for (size_t i = 0; i < g.results.size(); i++)
      absl::StrAppend(&out_, i ? ", " : " ", Ref(g, g.results[i]));
    out_ += "\n}\n";
  }

  void PrintEntry(const Entry& e) {
    const Graph& g = *m_.graphs[e.graph];
    absl::StrAppend(&out_, "entry ", SpellName(e.name), " = @", SpellName(g.name), " (");
    for (size_t i = 0; i < g.params.size(); i++) absl::StrAppend(&out_, i ? ", " : "", Ref(g, g.params[i]));
    out_ += ") -> (";
    for (size_t i = 0; i < g.results.size(); i++)
      absl::StrAppend(&out_, i ? ", " : "", g.result_names[i].empty() ? "_" : SpellName(g.result_names[i]));
    out_ += ")\n";
  }

  void PrintCase(const Case& c) {
    absl::StrAppend(&out_, "case ", SpellName(c.name), " = ", SpellName(c.entry), " (");
    for (size_t i = 0; i < c.inputs.size(); i++)
      absl::StrAppend(&out_, i ? ", " : "", ConstantRef(m_.constants[c.inputs[i]]));
    out_ += ") -> (";
    for (size_t i = 0; i < c.expected.size(); i++)
      absl::StrAppend(&out_, i ? ", " : "", ConstantRef(m_.constants[c.expected[i]]));
    absl::StrAppend(&out_, ") {rtol=", SpellFloat(c.rtol), ", atol=", SpellFloat(c.atol), "}\n");
  }

  const Module& m_;
  uint64_t max_bytes_;
  std::string out_;
  size_t indent_ = 2;
  std::vector<bool> inlined_;  // by graph; empty: none
};

bool IsKeyword(std::string_view s) {
  constexpr std::string_view kWords[] = {"none",   "true",  "false", "inf", "nan",
                                         "return", "yield", "hex",   "_"};
  return std::find(std::begin(kWords), std::end(kWords), s) != std::end(kWords);
}

}  // namespace

bool IsPlainName(std::string_view s) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (s.empty() || !letter(s[0])) return false;
  return std::all_of(s.begin(), s.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.'; });
}

std::string SpellName(std::string_view name) {
  bool bare = IsPlainName(name) && !IsKeyword(name) && !SplitResultName(name);
  return bare ? std::string(name) : Quote(name);
}

std::string SpellFloat(double v) {
  std::string text = PrintElement(DType::kF64, &v);
  return text.empty() ? absl::StrCat("f64(hex\"", PrintHex(&v, sizeof v), "\")") : text;
}

std::string PrintNode(const Graph& g, NodeId node) {
  return Printer(*g.module, UINT64_MAX).Line(g, g.nodes[node]);
}

std::string PrintText(const Module& m, uint64_t max_constant_bytes) {
  return Printer(m, max_constant_bytes).Run();
}

}  // namespace keel
