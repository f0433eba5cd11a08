// opset.h: the op catalogue: what an op takes, what comes out, what it is made of. Read
// kernel/opset/README.md for the language of the *.ops files; this is what the rest of the kernel sees.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kernel/base/status.h"
#include "kernel/dims/dim.h"
#include "kernel/values/dtype.h"

namespace keel {

struct TensorType {
  DType dtype = DType::kNone;
  Dims dims;
  bool operator==(const TensorType&) const = default;
};
std::string Print(const TensorType&, const DimTable&);  // "f32[b, 2]"

// An attribute's value; `kind` is a KEEL_ATTR_* number. Dims (and dim) are Dims of the module's table.
struct AttrValue {
  int32_t kind = KEEL_ATTR_NONE;
  int64_t i = 0;  // BOOL, I64, DIM; DTYPE: the DType's number; GRAPH, VAR: its number in the module
  double f = 0;   // F64
  std::string s;  // STR (and enums)
  std::vector<int64_t> list;   // I64S, DIMS, GRAPHS
  std::vector<double> floats;  // F64S
  bool operator==(const AttrValue&) const = default;
};
std::string_view AttrKindName(int32_t kind);  // "an integer", for messages
struct Attr {
  std::string name;
  AttrValue value;
  bool operator==(const Attr&) const = default;
};
using Attrs = std::vector<Attr>;  // sorted by name, each name once
void SortAttrs(Attrs*);
const AttrValue* FindAttr(const Attrs&, std::string_view name);  // null: it is not there
int64_t IntAttr(const Attrs&, std::string_view name, int64_t otherwise = 0);

struct OpDef;  // parsed form, private to opset/; facts about it through the functions below

// An op's operand at inference: a typed value, a weak literal, or nothing (optional, left out).
struct Operand {
  enum Kind : uint8_t { kTyped, kWeakInt, kWeakFloat, kAbsent } kind = kTyped;
  TensorType type;  // kTyped
};

// Types of a graph's parameters and results; how a graph that an attribute names is known to inference.
struct GraphTypes {
  std::vector<TensorType> params, results;
  std::string name;
};
using GraphTypesOf = std::function<absl::StatusOr<GraphTypes>(int64_t graph)>;
using VarTypeOf = std::function<absl::StatusOr<TensorType>(int64_t variable)>;

// What inference found out about one node.
struct Inferred {
  std::vector<TensorType> results;
  Attrs attrs;  // every attribute: defaults filled, scalars spread, axes normalised
  std::vector<std::pair<std::string, DType>>
      types;                          // type variables of the op ("T" -> f32), dtype attributes too
  std::vector<DType> operand_dtypes;  // what weak literals became
  // Facts that inference could not prove; a plan checks them when sizes are known: a == b, or a <= b.
  struct Check {
    Dim a, b;
    bool equal;  // else a <= b
    std::string message;
  };
  std::vector<Check> checks;
};

// How the shape of the only result follows from the operands' where that needs no inference: it is that
// of each operand, or theirs broadcast to each other.
enum class ShapeRule : uint8_t { kInferred, kSame, kBroadcast };

// What an op does beside computing. All but reads must run where a whole function is asked for.
enum class EffectKind : uint8_t { kNone, kRead, kWrite, kIo, kGuard, kRng, kHost };

enum class Trait : uint8_t { kElementwise, kCommutative, kAlias, kNoopIfSame, kNoopIfIdentity };

class Catalogue {
 public:
  Catalogue();  // with the embedded core ops, indexed, not parsed
  ~Catalogue();
  // Ops in the same language; names must hold a '.' unless `core`. Limits: 1 MiB, 4096 ops.
  absl::Status AddText(std::string_view text, std::string_view origin);
  // version 0: the newest. NotFound names the closest op. Thread-safe; the pointer lives as long as this.
  absl::StatusOr<const OpDef*> Find(std::string_view name, uint32_t version) const;
  std::vector<std::string> Names() const;  // sorted
  absl::Status ParseAll() const;           // for tests and the build tool: every op, body and rule

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::string_view OpName(const OpDef&);
uint32_t OpVersion(const OpDef&);
std::string_view OpDoc(const OpDef&);
bool Has(const OpDef&, Trait);
bool HasBody(const OpDef&);
bool HasEffect(const OpDef&);
EffectKind EffectOf(const OpDef&);
std::string_view EffectOn(const OpDef&);  // the attribute that names the variable or stream, or ""
std::string_view VarAttr(const OpDef&);   // the attribute that names a variable, or ""
bool MayFail(const OpDef&, DType first);  // on its data, where the first operand has this dtype
bool IsClose(const OpDef&);               // devices may round differently
bool IsTypedByGraph(const OpDef&);        // a call: its body's parameters and results are its own
bool IsControl(const OpDef&);             // cond, switch, while, scan: the kernel runs its bodies
ShapeRule ShapeRuleOf(const OpDef&);
struct OperandInfo {
  std::string name, pattern;
  bool optional, variadic;
};
struct AttrInfo {
  std::string name, type, default_text;  // default_text "" : required
  int32_t kind;                          // what AttrValue kind the attribute ends up as
  std::vector<std::string> choices;      // of an enum
};
struct ResultInfo {
  std::string name, pattern;
  bool variadic;
};
std::vector<OperandInfo> OpOperands(const OpDef&);
std::vector<AttrInfo> OpAttrs(const OpDef&);
std::vector<ResultInfo> OpResults(const OpDef&);
// The dtypes that each type variable may be.
std::vector<std::pair<std::string, std::vector<DType>>> OpTypes(const OpDef&);

// Types of the results, or an error that names the op, the operand or attribute, what was got and wanted.
// Concrete dims never touch the table. Attrs as the user gave them (missing ones get defaults).
// graphs: needed by ops that are typed by a graph (IsTypedByGraph); vars: by those with a VarAttr.
absl::Status Infer(const OpDef&, std::span<const Operand> operands, const Attrs& given, DimTable& dims,
                   Inferred* out, const GraphTypesOf* graphs = nullptr, const VarTypeOf* vars = nullptr);

// The types of the parameters of each body of a control op with these operands; attributes but the graphs
// must be given.
absl::StatusOr<std::vector<TensorType>> BodyParams(const OpDef&, std::span<const Operand> operands,
                                                   const Attrs& given, DimTable& dims);

// Where a body is written out: the graph builder implements it (values are its ids).
class BodySink {
 public:
  using Value = uint32_t;
  static constexpr Value kNone = 0xffffffffu;
  virtual ~BodySink() = default;
  virtual absl::StatusOr<std::vector<Value>> Node(std::string_view op, std::span<const Value> in,
                                                  const Attrs& attrs) = 0;
  virtual absl::StatusOr<Value> Literal(DType dtype, double value) = 0;  // a scalar constant
  virtual TensorType Type(Value) = 0;
};
// Writes the op's body for these operands (kNone: left out) into the sink; gives the results.
absl::StatusOr<std::vector<BodySink::Value>> ExpandBody(const Catalogue&, const OpDef&,
                                                        std::span<const BodySink::Value> in,
                                                        const Attrs& given, DimTable&, BodySink&);

// How the gradient of an op is made: not at all (it flows to no operand), by the op's rule, by those of the
// ops in its body, or nobody said.
enum class Vjp : uint8_t { kNone, kRule, kBody, kMissing };
Vjp VjpOf(const OpDef&);

// What the gradient of an operand reads: of operands and results as the op defines them (a variadic one is
// one). Dims are no values: who reads only dims(x) does not read x. A body is written out again: it reads
// all operands.
struct VjpReads {
  std::vector<bool> operands, results;
};
std::vector<VjpReads> VjpReadsOf(const OpDef&);  // by operand; where there is no rule and no body: nothing

// A node whose gradient is asked for.
struct VjpNode {
  std::span<const BodySink::Value> in, out;     // kNone: left out
  std::span<const BodySink::Value> cotangents;  // of out; kNone: missing, zeros if the rule reads it
  std::vector<bool> wanted;                     // by operand
};
// Writes the op's rule into the sink; gives the gradient of each operand, kNone where it is not wanted or
// none flows.
absl::StatusOr<std::vector<BodySink::Value>> ExpandVjp(const Catalogue&, const OpDef&, const VjpNode&,
                                                       const Attrs& given, DimTable&, BodySink&);

}  // namespace keel
