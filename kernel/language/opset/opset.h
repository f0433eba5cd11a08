// opset.h: the op catalogue: operands, results, bodies and gradient rules of ops. This is the folder's
// interface; docs/reference/catalogue_language.md describes the language of the *.ops files.
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

#include "absl/functional/function_ref.h"
#include "kernel/base/status.h"
#include "kernel/language/dims/dim_table.h"
#include "kernel/language/values/dtype.h"

namespace keel {

struct TensorType {
  DType dtype = DType::kNone;
  Dims dims;
  bool operator==(const TensorType&) const = default;
};
std::string Print(const TensorType&, const DimTable&);  // "f32[b, 2]"

// An attribute's value; `kind` is a KEEL_ATTR_* constant. Dims are of the module's table.
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
const AttrValue* FindAttr(const Attrs&, std::string_view name);  // null: absent
int64_t IntAttr(const Attrs&, std::string_view name, int64_t otherwise = 0);

struct OpDef;  // the parsed form, private to opset/; its properties are returned by the functions below

// An operand for inference: a typed value, an untyped (weak) literal, or an omitted optional operand.
struct Operand {
  enum Kind : uint8_t { kTyped, kWeakInt, kWeakFloat, kAbsent } kind = kTyped;
  TensorType type;  // kTyped
};
inline constexpr uint32_t kNoOperand = 0xffffffffu;  // the id of an omitted operand
// A node's operands: those with an id have the type of their value.
std::vector<Operand> OperandsOf(std::span<const uint32_t> ids,
                                absl::FunctionRef<TensorType(uint32_t id)> type_of);

// The types of a graph's parameters and results, for attributes that name a graph.
struct GraphTypes {
  std::vector<TensorType> params, results;
  std::string name;
};
using GraphTypesOf = std::function<absl::StatusOr<GraphTypes>(int64_t graph)>;
using VarTypeOf = std::function<absl::StatusOr<TensorType>(int64_t variable)>;

// The result of inference for one node.
struct Inferred {
  std::vector<TensorType> results;
  Attrs attrs;  // every attribute: defaults filled, scalars spread, axes normalised
                // Type variables of the op ("T" -> f32), and dtype attributes.
  std::vector<std::pair<std::string, DType>> types;
  std::vector<DType> operand_dtypes;  // including the dtypes chosen for weak literals
  // Conditions that depend on symbols. A plan checks them when sizes are known.
  struct Check {
    Dim a, b;
    bool equal;  // else a <= b
    std::string message;
    std::string node = {};  // of the plan, which has the condition; "": none
  };
  std::vector<Check> checks;
};

// How the shape of the only result follows from the operands' without inference: kSame, that of each operand;
// kBroadcast, theirs broadcast to each other.
enum class ShapeRule : uint8_t { kInferred, kSame, kBroadcast };

// The side effect of an op. All effects but kRead are preserved even if the results are unused.
enum class EffectKind : uint8_t { kNone, kRead, kWrite, kIo, kGuard, kRng, kHost };

enum class Trait : uint8_t { kElementwise, kCommutative, kAlias, kNoopIfSame, kNoopIfIdentity };

class Catalogue {
 public:
  Catalogue();  // indexes the embedded core ops; nothing is parsed yet
  ~Catalogue();
  // Adds ops. Names must contain a '.'. Limits: 1 MiB, 4096 ops.
  absl::Status AddText(std::string_view text, std::string_view origin);
  // version 0: the newest. NotFound suggests the closest name. Thread-safe; the pointer is valid as long as
  // the catalogue.
  absl::StatusOr<const OpDef*> Find(std::string_view name, uint32_t version) const;
  std::vector<std::string> Names() const;  // sorted
  absl::Status ParseAll() const;           // every op, body and rule; for tests and the build tool

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::string_view OpName(const OpDef&);
uint32_t OpVersion(const OpDef&);
std::string_view OpDoc(const OpDef&);
bool Has(const OpDef&, Trait);
bool TakesStorage(const OpDef&);                         // operands of storage dtypes
uint32_t TraitBits(const OpDef&);                        // KEEL_TRAIT_ ...
std::vector<std::string_view> TraitNames(const OpDef&);  // of each bit
bool HasBody(const OpDef&);
bool HasEffect(const OpDef&);
EffectKind EffectOf(const OpDef&);
std::string_view EffectOn(const OpDef&);  // the attribute that names the variable or stream, or ""
std::string_view VarAttr(const OpDef&);   // the attribute that names a variable, or ""
std::string_view SizeAttr(const OpDef&);  // the attribute that names a size which only a run knows, or ""
constexpr std::string_view kNewSize = "fresh()";  // the default of such an attribute
bool HasNewSize(const OpDef&);                    // only a run knows the size of its result
bool IsSizedComposite(const OpDef&);              // its body makes the size
bool MayFail(const OpDef&, DType first);  // depending on its data, if the first operand has this dtype
bool IsClose(const OpDef&);               // results may differ between devices by rounding
bool IsTypedByGraph(const OpDef&);        // `call`: its body determines its types
bool IsControl(const OpDef&);             // cond, switch, while, scan: the kernel runs the bodies
ShapeRule ShapeRuleOf(const OpDef&);
struct OperandInfo {
  std::string name, pattern;
  bool optional, variadic;
};
struct AttrInfo {
  std::string name, type, default_text;  // default_text "": required
  int32_t kind;                          // KEEL_ATTR_* of the attribute after inference
  std::vector<std::string> choices;      // of an enum
};
struct ResultInfo {
  std::string name, pattern;
  bool variadic;
};
std::vector<OperandInfo> OpOperands(const OpDef&);
std::vector<AttrInfo> OpAttrs(const OpDef&);
std::vector<ResultInfo> OpResults(const OpDef&);
// The dtypes allowed for each type variable.
std::vector<std::pair<std::string, std::vector<DType>>> OpTypes(const OpDef&);
bool HasTypeVariable(const OpDef&, std::string_view name);

// Infers the types of the results. Errors name the op, the operand or attribute, and the expected and actual
// types. given: the attributes as written by the user; missing ones get their defaults. Numeric dims do not
// use the table. graphs: required by ops with IsTypedByGraph or IsControl; vars: by ops with a VarAttr.
absl::Status Infer(const OpDef&, std::span<const Operand> operands, const Attrs& given, DimTable& dims,
                   Inferred* out, const GraphTypesOf* graphs = nullptr, const VarTypeOf* vars = nullptr);

// The types of the parameters of each body of a control op with these operands. All attributes other than
// graphs must be given.
absl::StatusOr<std::vector<TensorType>> BodyParams(const OpDef&, std::span<const Operand> operands,
                                                   const Attrs& given, DimTable& dims);

// Receives the nodes of an expanded body. The graph builder implements it; values are its ids.
class BodySink {
 public:
  using Value = uint32_t;
  static constexpr Value kNone = kNoOperand;
  virtual ~BodySink() = default;
  virtual absl::StatusOr<std::vector<Value>> Node(std::string_view op, std::span<const Value> in,
                                                  const Attrs& attrs) = 0;
  virtual absl::StatusOr<Value> Literal(DType dtype, double value) = 0;  // a scalar constant
  virtual TensorType Type(Value) = 0;
};
// Expands the op's body for these operands (kNone: omitted) into the sink; returns the results.
absl::StatusOr<std::vector<BodySink::Value>> ExpandBody(const Catalogue&, const OpDef&,
                                                        std::span<const BodySink::Value> in,
                                                        const Attrs& given, DimTable&, BodySink&);

// The source of an op's gradient: none flows to any operand; the op's own rule; the rules of the ops in its
// body; or undefined.
enum class Vjp : uint8_t { kNone, kRule, kBody, kMissing };
Vjp VjpOf(const OpDef&);

// The operands and results of an op's definition (a variadic one counts as one) that the gradient of an
// operand reads. dims(x) does not count as a read of x. A gradient through the body reads all operands,
// because the body is expanded again.
struct VjpReads {
  std::vector<bool> operands, results;
};
std::vector<VjpReads> VjpReadsOf(const OpDef&);  // by operand; empty without rule and body

// A node to differentiate.
struct VjpNode {
  std::span<const BodySink::Value> in, out;  // kNone: omitted
  std::span<const BodySink::Value>
      cotangents;            // of `out`; kNone: absent, replaced by zeros if the rule reads it
  std::vector<bool> wanted;  // by operand
};
// Expands the op's gradient rule into the sink; returns the gradient of each operand, kNone if it is not
// wanted or none flows.
absl::StatusOr<std::vector<BodySink::Value>> ExpandVjp(const Catalogue&, const OpDef&, const VjpNode&,
                                                       const Attrs& given, DimTable&, BodySink&);

}  // namespace keel
