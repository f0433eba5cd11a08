// emit.cc: see emit.h.
#include "emit.h"

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
    {"sigmoid", nullptr, 1, kFloat, "1 / (1 + exp(-$0))", nullptr, ""},
    {"silu", nullptr, 1, kFloat, "$0 / (1 + exp(-$0))", nullptr, ""},
    {"softplus", nullptr, 1, kFloat, "($0 > 0 || $0 != $0 ? $0 : 0) + log1p(exp(-fabs($0)))", nullptr, ""},
    {"gelu", "tanh", 1, kFloat, "keel_gelu($0)",
     "$0 / (1 + exp($0 * -1.5957691216057308 * (1 + $0 * $0 * 0.044715)))", ""},
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
  const ScalarOp* op = keel::plugin::find_scalar_op(step.op);
  return keel::plugin::substitute(IsFloat(from) ? op->c_float : op->c_integer, in.data());
}

// The statements that load the operands (reads[k] from operand k at at[k]), compute, and store the results.
std::string Statements(const Body& body, const std::vector<uint32_t>& reads, size_t first_result,
                       const char* result_at) {
  std::string text;
  std::vector<std::string> names(body.n_operands);
  const auto value = [&](uint32_t v, const std::string& expression) {
    const std::string name = "v" + std::to_string(v);
    text += "    const Compute<" + Storage(body.dtypes[v]) + "> " + name + " = " + expression + ";\n";
    return name;
  };
  for (size_t k = 0; k < reads.size(); k++) {
    const std::string s = Storage(body.dtypes[reads[k]]), n = std::to_string(k);
    names[reads[k]] =
        value(reads[k], "Number<" + s + ">::from(operand<const " + s + ">(args, " + n + ")[at[" + n + "]])");
  }
  const auto results =
      keel::plugin::walk<std::string>(body, names, [&](const Step& step, const std::vector<std::string>& in) {
        return value(step.out,
                     "rounded<" + Storage(body.dtypes[step.out]) + ">(" + ExpressionOf(step, body, in) + ")");
      });
  for (size_t k = 0; k < results.size(); k++) {
    const std::string s = Storage(body.dtypes[body.results[k]]);
    text += "    operand<" + s + ">(args, " + std::to_string(first_result + k) + ")[" + result_at +
            "] = Number<" + s + ">::to(" + results[k] + ");\n";
  }
  return text;
}

std::string Loop(const std::string& name, size_t operands, const std::string& inside) {
  const std::string n = std::to_string(operands ? operands : 1);
  return "KERNEL(" + name +
         ") {\n  bool failed = false;\n"
         "  for (i64 i = first_element(); i < args.numbers[0]; i += grid_size()) {\n"
         "    i64 at[" +
         n + "];\n    find_offsets<" + n + ">(args.numbers + 3, (int)args.numbers[2], i, at);\n" + inside +
         "  }\n  if (failed) store_fault(args, 0, 0);\n}\n";
}

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
std::string Case(size_t place, const SingleOp& op, keel_dt dtype) {
  const Body body = OneOp(op, dtype);
  return "    case " + std::to_string(place) + ": {  // " + op.op + "\n" +
         Statements(body, body.steps[0].in, 3, "i") + "      break;\n    }\n";
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
  return Loop(name, reads.size(), Statements(body, reads, reads.size(), "i"));
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

std::string SinglesFile(keel_dt dtype) {
  std::string text =
      "// Made by emit/main.cc.\n#include \"args.h\"\n#include \"scalar.cuh\"\n#include \"common.cuh\"\n";
  std::string cases = "    switch (args.numbers[1]) {\n", casts = cases;
  const std::vector<SingleOp> ops = SingleOps(dtype);
  for (size_t i = 0; i < ops.size(); i++) cases += Case(i, ops[i], dtype);
  for (size_t i = 0; i < Dtypes().size(); i++) casts += Case(i, {"cast", false, 1, Dtypes()[i]}, dtype);
  const std::string name = NameOf(dtype);
  text += Loop("elementwise_" + name, 3, cases + "    }\n");
  return text + Loop("cast_" + name, 1, casts + "    }\n");
}

}  // namespace keel_cuda
