// kernel.cc: see kernel.h.
#include "kernel.h"

#include "ops.h"

namespace keel_spirv {
namespace {

using keel::plugin::Body;
using keel::plugin::Step;

constexpr uint32_t kBuiltInGroups = 24, kBuiltInThread = 28;

class Builder {
 public:
  explicit Builder(const KernelSpec& s) : s_(s) {}

  Kernel Make() {
    Module& m = code_.module;
    if (!Check()) return made_;
    const Id triple = m.Vector(m.Unsigned(32), 3);
    const Id thread = m.BuiltIn(kBuiltInThread, triple), groups = m.BuiltIn(kBuiltInGroups, triple);
    push_ = m.PushWords(1);
    m.Label(m.New());
    ReadParameters();
    const Reg reg = s_.wide_index ? Reg::kU64 : Reg::kU32;
    const Value first = Index(FirstOf(thread, triple)), step = Index(FirstOf(groups, triple) * s_.group_size);
    const Value count = Number(0);
    code_.While(
        {Value{&code_, first.id, reg}}, [&](const Code::State& i) { return i[0] < count; },
        [&](const Code::State& i) -> Code::State {
          Element(i[0]);
          return {i[0] + step};
        });
    m.Do(kReturn, {});
    if (!made_.error.empty()) return made_;
    made_.words = m.Finish(s_.group_size);
    for (keel_dt dt : used_) made_.storage8 |= BitsOf(dt) == 8, made_.storage16 |= BitsOf(dt) == 16;
    made_.float64 = m.Uses(kFloat64);
    return made_;
  }

 private:
  bool Check() {
    for (keel_dt dt : s_.body.dtypes)
      if (!IsKnown(dt)) made_.error = "a value has a dtype that is not one of Keel's";
    if (s_.strided && (s_.rank < 1 || s_.rank > KEEL_MAX_RANK)) made_.error = "the rank must be 1 to 8";
    if (s_.body.results.empty()) made_.error = "the body has no result";
    if (s_.reads.size() > 64) made_.error = "the body reads more than 64 operands";
    for (const Step& step : s_.body.steps) made_.may_fail |= MayFail(step, DtypeOf(step));
    return made_.error.empty();
  }
  keel_dt DtypeOf(const Step& step) const { return s_.body.dtypes[step.in[step.op == "select" ? 1 : 0]]; }
  Value Index(Value v) { return s_.wide_index ? Widen(v) : v; }
  Value FirstOf(Id variable, Id triple) {
    Module& m = code_.module;
    const Id all = m.Emit(kLoad, triple, {variable});
    return {&code_, m.Emit(kCompositeExtract, m.Unsigned(32), {all, 0}), Reg::kU32};
  }

  // ---- parameters, in the order of launch.h
  Value Parameter(uint32_t i) { return code_.Load(words_ + 8.0 * i, 64, Reg::kU64); }
  uint32_t Scratch() const { return s_.body.n_operands + static_cast<uint32_t>(s_.body.results.size()); }
  Value Number(uint32_t i) {
    const Value v = Parameter(Scratch() + 3 + i);
    return s_.wide_index ? v : Narrow(v);
  }
  void ReadParameters() {
    Module& m = code_.module;
    const Id u64 = m.Unsigned(64);
    const Id at = m.Emit(kAccessChain, m.Pointer(kPushConstant, u64), {push_, m.U32(0), m.U32(0)});
    words_ = {&code_, m.Emit(kLoad, u64, {at}), Reg::kU64};
    for (uint32_t v : s_.reads) addresses_.push_back(Parameter(v));
    for (uint32_t r = s_.body.n_operands; r < Scratch(); r++) addresses_.push_back(Parameter(r));
    const uint32_t n = s_.rank * (1 + static_cast<uint32_t>(s_.reads.size()));
    for (uint32_t i = 0; s_.strided && i < n; i++) layout_.push_back(Number(1 + i));
  }

  // ---- one element
  Value At(Value base, Value element, keel_dt dt) {
    return base + (s_.wide_index ? element : Widen(element)) * (BitsOf(dt) / 8);
  }
  // The element of each operand that belongs to element i of the iteration space.
  std::vector<Value> Offsets(Value i) {
    std::vector<Value> at(s_.reads.size(), i);
    for (size_t v = 0; v < at.size() && !s_.strided; v++)
      if (s_.ones >> v & 1) at[v] = Like(i, 0);
    if (!s_.strided) return at;
    Value rest = i;
    for (uint32_t d = s_.rank; d-- > 0;) {
      const Value index = d == 0 ? rest : rest % layout_[d];
      if (d != 0) rest = rest / layout_[d];
      for (size_t v = 0; v < at.size(); v++) {
        const Value term = index * layout_[s_.rank * (1 + v) + d];
        at[v] = d + 1 == s_.rank ? term : at[v] + term;
      }
    }
    return at;
  }
  void Element(Value i) {
    const std::vector<Value> at = Offsets(i);
    std::vector<Value> values(s_.body.dtypes.size());
    for (size_t v = 0; v < s_.reads.size(); v++) {
      const keel_dt dt = Use(s_.reads[v]);
      values[s_.reads[v]] = LoadElement(code_, dt, At(addresses_[v], at[v], dt));
    }
    const std::vector<Value> results = keel::plugin::walk<Value>(
        s_.body, values,
        [&](const Step& step, const std::vector<Value>& in) { return ApplyStep(step, in, i); });
    for (size_t r = 0; r < results.size() && made_.error.empty(); r++) {
      const keel_dt dt = Use(s_.body.results[r]);
      StoreElement(dt, At(addresses_[s_.reads.size() + r], i, dt), results[r]);
    }
  }
  Value ApplyStep(const Step& step, const std::vector<Value>& in, Value i) {
    if (!made_.error.empty()) return {};
    Operation o = {&step, in, DtypeOf(step), s_.body.dtypes[step.out], s_.wide_index ? i : Widen(i), {}};
    o.fail = [this, &o](Value condition) { Fail(condition, o.index); };
    const Value v = Apply(o);
    if (v.id == 0) made_.error = "op '" + step.op + "' is not supported for this dtype";
    return v;
  }
  keel_dt Use(uint32_t value) {
    used_.push_back(s_.body.dtypes[value]);
    return used_.back();
  }

  // The first fault of the run stores its code, then the element's index with bound 0: not an axis.
  void Fail(Value condition, Value index) {
    code_.If(condition, [&] {
      Module& m = code_.module;
      const Id u32 = m.Unsigned(32), device = m.U32(1), relaxed = m.U32(0);
      const Value slot = Parameter(Scratch() + 1);
      const Id at = m.Emit(kConvertUToPtr, m.Pointer(kPhysicalStorageBuffer, u32), {slot.id});
      const Id old = m.Emit(kAtomicCompareExchange, u32,
                            {at, device, relaxed, relaxed, Narrow(Parameter(Scratch() + 2)).id, m.U32(0)});
      code_.If(Value{&code_, old, Reg::kU32} == 0, [&] {
        code_.Store(slot + 4, 32, code_.U32(0));
        code_.Store(slot + 8, 64, index);
      });
    });
  }

  const KernelSpec& s_;
  Code code_;
  Kernel made_;
  Id push_ = 0;
  Value words_;
  std::vector<Value> addresses_, layout_;
  std::vector<keel_dt> used_;
};

}  // namespace

Kernel MakeKernel(const KernelSpec& spec) { return Builder(spec).Make(); }

const std::vector<keel::plugin::OwnOp>& OwnOps() {
  static const std::vector<keel::plugin::OwnOp> own = {
      {"sigmoid", nullptr}, {"silu", nullptr},   {"softplus", nullptr}, {"leaky_relu", "alpha"},
      {"gelu", "tanh"},     {"square", nullptr}, {"clamp", nullptr}};
  return own;
}

KernelSpec OneOpSpec(std::string_view name, keel_dt dtype) {
  using keel::plugin::OpClass;
  const keel::plugin::ScalarOp* op = keel::plugin::find_scalar_op(name);
  const bool own = std::ranges::any_of(OwnOps(), [&](const auto& each) { return name == each.name; });
  if (!op && !own) return {};
  const OpClass kind = op ? op->op_class : OpClass::kArithmetic;
  const uint32_t arity = op ? op->arity : name == "clamp" ? 3 : 1;
  KernelSpec s;
  for (uint32_t i = 0; i < arity; i++) s.reads.push_back(i);
  s.body = {std::vector<keel_dt>(arity + 1, dtype), arity, {{std::string(name), s.reads, arity, 0}}, {arity}};
  if (kind == OpClass::kSelect) s.body.dtypes[0] = KEEL_BOOL;
  if (kind == OpClass::kCompare || kind == OpClass::kLogic || kind == OpClass::kTest)
    s.body.dtypes[arity] = KEEL_BOOL;
  return s;
}

KernelSpec RandomSpec(const char* kind, keel_dt dtype) {
  KernelSpec s;
  s.body = {{KEEL_U64, dtype}, 1, {{kind, {0}, 1, 0}}, {1}};
  s.reads = {0};
  s.ones = 1;
  return s;
}

}  // namespace keel_spirv
