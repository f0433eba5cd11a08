// emit.cc: see emit.h.
#include "emit.h"

#include <algorithm>
#include <cstdio>

namespace keel_cuda {
namespace {

using keel::plugin::Body;
using keel::plugin::OpClass;
using keel::plugin::ScalarOp;
using keel::plugin::Step;

struct Named {
  keel_dt dtype;
  const char* name;
  const char* storage;  // scalar.cuh
};
constexpr Named kNamed[] = {
    {KEEL_BOOL, "bool", "boolean"}, {KEEL_I8, "i8", "i8"},       {KEEL_I16, "i16", "i16"},
    {KEEL_I32, "i32", "i32"},       {KEEL_I64, "i64", "i64"},    {KEEL_U8, "u8", "u8"},
    {KEEL_U16, "u16", "u16"},       {KEEL_U32, "u32", "u32"},    {KEEL_U64, "u64", "u64"},
    {KEEL_F16, "f16", "f16"},       {KEEL_BF16, "bf16", "bf16"}, {KEEL_F32, "f32", "f32"},
    {KEEL_F64, "f64", "f64"}};

const Named* Find(keel_dt dtype) {
  for (const Named& each : kNamed)
    if (each.dtype == dtype) return &each;
  return nullptr;
}
std::string Storage(keel_dt dtype) { return Find(dtype)->storage; }
bool IsFloat(keel_dt dtype) { return keel::plugin::dtypes_of(dtype) == keel::plugin::kFloats; }

// Composites as expressions: computed once, with one rounding. $A is the attribute.
struct OwnText {
  const char* name;
  const char* attribute;  // of the node; NULL: none
  uint32_t arity;
  uint8_t dtypes;
  const char* on_float;
  const char* on_float_with;  // with a bool attribute that is true
  const char* on_integer;
};
constexpr uint8_t kFloat = keel::plugin::kFloats, kNum = keel::plugin::kNum;
constexpr OwnText kOwn[] = {
    {"sigmoid", nullptr, 1, kFloat, "keel_logistic($0)", nullptr, ""},
    {"silu", nullptr, 1, kFloat, "keel_times_logistic($0, $0)", nullptr, ""},
    {"softplus", nullptr, 1, kFloat, "($0 > 0 || $0 != $0 ? $0 : 0) + log1p(exp(-fabs($0)))", nullptr, ""},
    {"gelu", "tanh", 1, kFloat, "keel_gelu($0)",
     "keel_times_logistic($0, $0 * 1.5957691216057308 * (1 + $0 * $0 * 0.044715))", ""},
    {"leaky_relu", "alpha", 1, kFloat, "$0 >= 0 ? $0 : $0 * $A", nullptr, ""},
    {"square", nullptr, 1, kNum, "$0 * $0", nullptr, "keel_mul($0, $0)"},
    {"clamp", nullptr, 3, kNum, "keel_minimum(keel_maximum($0, $1), $2)", nullptr,
     "$2 < ($0 < $1 ? $1 : $0) ? $2 : $0 < $1 ? $1 : $0"},
};
const OwnText* FindOwn(std::string_view name) {
  for (const OwnText& own : kOwn)
    if (name == own.name) return &own;
  return nullptr;
}

// Functions of f16 and bf16 with texts of their own (scalar.cuh).
struct HalfText {
  const char* name;
  bool is_of_f16;
  const char* text;
};
constexpr HalfText kHalves[] = {{"exp", true, "exp_of_half($0)"},
                                {"tanh", true, "tanh_of_half($0)"},
                                {"sqrt", false, "sqrt_of_bf16($0)"}};
const char* TextOfHalf(std::string_view name, keel_dt dtype) {
  for (const HalfText& each : kHalves)
    if (name == each.name && (dtype == KEEL_BF16 || (dtype == KEEL_F16 && each.is_of_f16))) return each.text;
  return nullptr;
}

std::string Replaced(std::string text, std::string_view what, const std::string& with) {
  for (size_t at; (at = text.find(what)) != std::string::npos;) text.replace(at, what.size(), with);
  return text;
}
// A literal of what elements of the dtype are computed in; constants in texts are of that type, too.
std::string Literal(double value, keel_dt dtype) {
  char text[64];
  std::snprintf(text, sizeof text, "((Compute<%s>)%.17g)", Storage(dtype).c_str(), value);
  return text;
}
// In f32 a constant without suffix would make the expression f64.
std::string Narrow(std::string text, keel_dt dtype) {
  if (dtype == KEEL_F64) return text;
  for (const char* constant : {"0.70710678118654752", "1.5957691216057308", "0.044715"})
    if (size_t at = text.find(constant); at != std::string::npos)
      text.insert(at + std::string(constant).size(), "f");
  return text;
}

std::string ExpressionOf(const Step& step, const Body& body, const std::vector<std::string>& in) {
  const keel_dt to = body.dtypes[step.out], from = body.dtypes[step.in[step.op == "select"]];
  if (step.op == "cast") return "Cast<" + Storage(to) + ">::of(" + in[0] + ")";
  if (const OwnText* own = FindOwn(step.op)) {
    std::string text = !IsFloat(from)                         ? own->on_integer
                       : own->on_float_with && step.attribute ? own->on_float_with
                                                              : own->on_float;
    return keel::plugin::substitute(Replaced(Narrow(text, from), "$A", Literal(step.attribute, from)),
                                    in.data());
  }
  if (const char* text = TextOfHalf(step.op, from)) return keel::plugin::substitute(text, in.data());
  const ScalarOp* op = keel::plugin::find_scalar_op(step.op);
  return keel::plugin::substitute(IsFloat(from) ? op->c_float : op->c_integer, in.data());
}

size_t BytesOf(keel_dt dtype) { return (dtype >> 8 & 255) / 8; }

// The most elements of a thread times the weight of each in the text of a kernel.
constexpr size_t kMostText = 128;
// Registers and text that a step needs; an addition is 1.
int WeightOf(const Step& step, keel_dt from) {
  constexpr std::string_view kLong[] = {"pow", "erf", "gelu", "log1p", "softplus"};
  constexpr int kLight = 1;
  const int heavy =
      (from == KEEL_F64 ? 128 : 16) * (std::ranges::find(kLong, step.op) != std::end(kLong) ? 2 : 1);
  const ScalarOp* op = keel::plugin::find_scalar_op(step.op);
  if (!op) return step.op == "square" || step.op == "clamp" || step.op == "leaky_relu" ? kLight : heavy;
  const bool divides = (op->may_fail & keel::plugin::dtypes_of(from)) || step.op == "mod" || step.op == "rem";
  return op->op_class == OpClass::kMath || divides ? heavy : kLight;
}
int WeightOf(const Body& body) {
  int weight = 0;
  for (const Step& step : body.steps) weight += WeightOf(step, body.dtypes[step.in[step.op == "select"]]);
  return std::max(1, weight);
}

// Writes the kernel of a body: a loop over vectors, and one over the elements that are in none.
class Writer {
 public:
  Writer(const Body& body, const std::vector<uint32_t>& reads)
      : body_(body), reads_(reads), vectors_(VectorsOf(body, reads)) {}

  std::string Kernel(const std::string& name) {
    const std::string n = std::to_string(std::max<size_t>(1, reads_.size()));
    return "KERNEL(" + name + ") {\n  bool failed = false;\n" + Operands() +
           "  const i64 count = args.numbers[0], vectors = args.numbers[1], *space = args.numbers "
           "+ 5;\n  const int rank = (int)args.numbers[2];\n  const bool small = args.numbers[4] != 0;\n" +
           OverVectors(n) + OverElements(n) + "  if (failed) store_fault(args, 0, 0);\n}\n";
  }

 private:
  std::string ReadType(size_t k) const { return Storage(body_.dtypes[reads_[k]]); }
  std::string ResultType(size_t k) const { return Storage(body_.dtypes[body_.results[k]]); }
  template <class F>
  std::string ForReads(F text) const {
    std::string all;
    for (size_t k = 0; k < reads_.size(); k++) all += text(std::to_string(k), ReadType(k));
    return all;
  }
  template <class F>
  std::string ForResults(F text) const {
    std::string all;
    for (size_t k = 0; k < body_.results.size(); k++) all += text(std::to_string(k), ResultType(k));
    return all;
  }

  // p0 ... are read, q0 ... written; one0 ...: an element of the operand serves a whole vector.
  std::string Operands() const {
    return ForReads([&](const std::string& k, const std::string& s) {
             return "  const " + s + "* const p" + k + " = operand<const " + s + ">(args, " + k + ");\n" +
                    (HasOnes() ? "  const bool one" + k + " = args.numbers[3] >> " + k + " & 1;\n" : "");
           }) +
           ForResults([&](const std::string& k, const std::string& s) {
             return "  " + s + "* const q" + k + " = operand<" + s + ">(args, " +
                    std::to_string(reads_.size()) + " + " + k + ");\n";
           });
  }

  // An element: load(k, dtype) is the text of an operand, store(k, value) that of a result.
  template <class Load, class Store>
  std::string Statements(Load load, Store store) const {
    std::string text;
    std::vector<std::string> names(body_.n_operands);
    const auto value = [&](uint32_t v, const std::string& expression) {
      const std::string name = "v" + std::to_string(v);
      text += "      const Compute<" + Storage(body_.dtypes[v]) + "> " + name + " = " + expression + ";\n";
      return name;
    };
    for (size_t k = 0; k < reads_.size(); k++)
      names[reads_[k]] =
          value(reads_[k], "Number<" + ReadType(k) + ">::from(" + load(std::to_string(k)) + ")");
    const auto results = keel::plugin::walk<std::string>(
        body_, names, [&](const Step& step, const std::vector<std::string>& in) {
          return value(step.out, "rounded<" + Storage(body_.dtypes[step.out]) + ">(" +
                                     ExpressionOf(step, body_, in) + ")");
        });
    for (size_t k = 0; k < results.size(); k++)
      text += "      " + store(std::to_string(k), "Rounded<" + ResultType(k) + ">::to(" + results[k] + ")") +
              ";\n";
    return text;
  }

  // Vectors of a thread are kThreads apart. Beyond the last one it computes its own first one again, for
  // another thread may store meanwhile. All loads come before what needs them.
  std::string OverVectors(const std::string& n) const {
    const std::string v = std::to_string(vectors_.elements), u = std::to_string(vectors_.of_thread);
    const bool light =
        static_cast<size_t>(WeightOf(body_)) * vectors_.elements * vectors_.of_thread <= kMostText;
    const std::string each =
        "for (int u = 0; u < " + u + "; u++) {\n      const i64 i = first + u * kThreads;\n";
    const auto pack = [&](const char* letter) {
      return [&, letter](const std::string& k, const std::string& s) {
        return "    Pack<" + s + ", " + v + ", " + u + "> " + letter + k + ";\n";
      };
    };
    const auto turn = [](const char* letter) {
      return [letter](const std::string& k, const std::string&) {
        return std::string("      ") + letter + k + ".turn();\n";
      };
    };
    return "  for (i64 first = first_vector<" + u + ">(); first < vectors; first += grid_size() * " + u +
           ") {\n" + ForReads(pack("x")) + ForResults(pack("y")) + Ones() + "    UNROLL " + each +
           "      i64 at[" + n + "];\n      vector_offsets<" + n + ", " + v +
           ">(space, rank, i < vectors ? i : first, at);\n" + Loads() + "    }\n    " +
           (light ? "UNROLL" : "NO_UNROLL") + " for (int u = 0; u < " + u + "; u++) {\n" +
           ForResults(turn("y")) + "      UNROLL for (int e = 0; e < " + v + "; e++) {\n" +
           Statements(
               [&](const std::string& k) {
                 const std::string e = "x" + k + ".get(e)";
                 return HasOnes() ? "one" + k + " ? o" + k + " : " + e : e;
               },
               [](const std::string& k, const std::string& x) { return "y" + k + ".set(e, " + x + ")"; }) +
           "      }\n" + ForReads(turn("x")) + "    }\n    UNROLL " + each +
           "      if (i >= vectors) break;\n" + ForResults([&](const std::string& k, const std::string&) {
             return "      y" + k + ".store(u, q" + k + " + i * " + v + ");\n";
           }) +
           "    }\n  }\n";
  }
  // Of several operands some may have one element for a vector; a thread then has one vector at a time.
  bool HasOnes() const { return reads_.size() > 1; }
  std::string Ones() const {
    if (!HasOnes()) return "";
    return ForReads(
        [](const std::string& k, const std::string& s) { return "    " + s + " o" + k + " = {};\n"; });
  }
  std::string Loads() const {
    return ForReads([&](const std::string& k, const std::string&) {
      const std::string load = "x" + k + ".load(u, p" + k + " + at[" + k + "]);\n";
      return "      " +
             (HasOnes() ? "if (one" + k + ") o" + k + " = p" + k + "[at[" + k + "]]; else " : std::string()) +
             load;
    });
  }
  std::string OverElements(const std::string& n) const {
    return "  for (i64 i = vectors * " + std::to_string(vectors_.elements) +
           " + first_element(); i < count; i += grid_size()) {\n      i64 at[" + n +
           "];\n      element_offsets<" + n + ">(space, rank, i, at, small);\n" +
           Statements([](const std::string& k) { return "p" + k + "[at[" + k + "]]"; },
                      [](const std::string& k, const std::string& x) { return "q" + k + "[i] = " + x; }) +
           "  }\n";
  }

  const Body& body_;
  const std::vector<uint32_t>& reads_;
  const Vectors vectors_;
};

// The body of one op on operands of a dtype (select's condition: bool).
Body OneOp(const SingleOp& op, keel_dt dtype) {
  Body body = {std::vector<keel_dt>(op.arity + 1, dtype), op.arity, {}, {op.arity}};
  if (op.op == "select") body.dtypes[0] = KEEL_BOOL;
  body.dtypes[op.arity] = op.result;
  std::vector<uint32_t> in(op.arity);
  for (uint32_t i = 0; i < op.arity; i++) in[i] = i;
  body.steps = {{op.op, in, op.arity, double(op.with_attribute)}};
  return body;
}
}  // namespace

std::string NameOf(keel_dt dtype) { return Find(dtype) ? Find(dtype)->name : ""; }

const std::vector<keel_dt>& Dtypes() {
  static const std::vector<keel_dt> all = [] {
    std::vector<keel_dt> dtypes;
    for (const Named& each : kNamed) dtypes.push_back(each.dtype);
    return dtypes;
  }();
  return all;
}

const std::vector<keel::plugin::OwnOp>& OwnOps() {
  static const std::vector<keel::plugin::OwnOp> all = [] {
    std::vector<keel::plugin::OwnOp> ops;
    for (const OwnText& own : kOwn) ops.push_back({own.name, own.attribute});
    return ops;
  }();
  return all;
}

std::string FusedKernel(const std::string& name, const Body& body, const std::vector<uint32_t>& reads) {
  return Writer(body, reads).Kernel(name);
}

// Of 16 bytes of the widest dtype, or of fewer where several operands need many registers or the text of an
// element is long. Two of a single operand, so that enough bytes are on their way.
Vectors VectorsOf(const Body& body, const std::vector<uint32_t>& reads) {
  size_t widest = 1;
  for (const auto* values : {&reads, &body.results})
    for (uint32_t v : *values) widest = std::max(widest, BytesOf(body.dtypes[v]));
  const size_t operands = reads.size() + body.results.size();
  size_t elements = std::min<size_t>((operands > 6 ? 8 : 16) / widest, operands > 3 ? 8 : 16);
  while (elements > 1 && elements * static_cast<size_t>(WeightOf(body)) > kMostText) elements /= 2;
  return {elements, reads.size() > 1 || elements > 8 ? 1u : 2u};
}

std::vector<SingleOp> SingleOps(keel_dt dtype) {
  std::vector<SingleOp> all;
  for (const ScalarOp& op : keel::plugin::kScalarOps) {
    if (op.op_class == OpClass::kCast || !(op.dtypes & keel::plugin::dtypes_of(dtype))) continue;
    const bool truth = op.op_class == OpClass::kCompare || op.op_class == OpClass::kTest;
    all.push_back({op.name, false, op.arity, truth ? keel_dt{KEEL_BOOL} : dtype});
  }
  for (const OwnText& own : kOwn) {
    if (!(own.dtypes & keel::plugin::dtypes_of(dtype)) || std::string_view(own.name) == "leaky_relu")
      continue;
    all.push_back({own.name, false, own.arity, dtype});
    if (own.on_float_with) all.push_back({own.name, true, own.arity, dtype});
  }
  return all;
}

Vectors VectorsOf(const SingleOp& op, keel_dt dtype) {
  const Body body = OneOp(op, dtype);
  return VectorsOf(body, body.steps[0].in);
}
std::string KernelOf(const SingleOp& op, keel_dt dtype) {
  const std::string more = op.op == "cast" ? "_" + NameOf(op.result) : op.with_attribute ? "_with" : "";
  return op.op + more + "_" + NameOf(dtype);
}

std::string SinglesFile(keel_dt dtype) {
  std::string text =
      "// Made by emit/main.cc.\n#define LEAST_BLOCKS 4\n#include \"args.h\"\n#include "
      "\"scalar.cuh\"\n#include \"common.cuh\"\n"
      "#include \"vectors.cuh\"\n";
  std::vector<SingleOp> ops = SingleOps(dtype);
  for (keel_dt to : Dtypes()) ops.push_back({"cast", false, 1, to});
  for (const SingleOp& op : ops) {
    const Body body = OneOp(op, dtype);
    text += FusedKernel(KernelOf(op, dtype), body, body.steps[0].in);
  }
  return text;
}

}  // namespace keel_cuda
