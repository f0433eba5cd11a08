// bind_control.cc: the memory of control steps, for one set of sizes.
// kLayouts has a row for each op, which maps its operands to the inputs of the bodies.
#include <algorithm>

#include "kernel/base/align.h"
#include "kernel/runtime/plan/bind.h"
#include "kernel/runtime/plan/step.h"

namespace keel {
namespace {

BodyLayout OfBranches(const Step&) { return {1, 0}; }
BodyLayout OfWhile(const Step& step) { return {0, static_cast<size_t>(IntAttr(step.attrs, "carry"))}; }
BodyLayout OfScan(const Step& step) {
  auto carry = static_cast<size_t>(IntAttr(step.attrs, "carry"));
  return {0, carry, carry + static_cast<size_t>(IntAttr(step.attrs, "invariants")),
          static_cast<size_t>(IntAttr(step.attrs, "counted"))};
}

struct Kind {
  std::string_view op;
  BodyLayout (*layout)(const Step&);
};
constexpr Kind kLayouts[] = {
    {"cond", OfBranches}, {"switch", OfBranches}, {"while", OfWhile}, {"scan", OfScan}};

// Allocates offsets in the scratch of a step.
class ScratchLayout {
 public:
  explicit ScratchLayout(const Lowered& lowered) : align_(AlignmentOf(lowered)) {}
  uint64_t Take(uint64_t bytes) {
    uint64_t at = end_;
    end_ += RoundUp(bytes, align_);
    return at;
  }
  uint64_t end() const { return end_; }
  uint64_t align() const { return align_; }

 private:
  const uint64_t align_;
  uint64_t end_ = 0;
};

// A symbol of the body has the same number as the symbol of that name in the enclosing plan.
absl::StatusOr<std::vector<int64_t>> SymbolsOf(const Lowered& lowered, const Binding& binding,
                                               const Lowered& body,
                                               std::span<const std::span<const int64_t>> fed) {
  KnownSymbols known(body.dims.symbol_count());
  for (size_t s = 0; s < known.size(); s++) {
    std::optional<Dim> outer = lowered.dims.FindSymbol(body.dims.symbol_name(s));
    std::optional<size_t> index = outer ? lowered.dims.symbol_index(*outer) : std::nullopt;
    if (index) known[s] = binding.symbols[*index];
  }
  return BindSymbols(body, fed, &known);
}

absl::StatusOr<std::shared_ptr<Binding>> BindBody(const Lowered& lowered, const Step& step,
                                                  const BodyLayout& layout, const Lowered& body,
                                                  const Binding& binding, const PlanOptions& options,
                                                  size_t* declined) {
  std::vector<std::span<const int64_t>> fed;
  for (size_t i = layout.skip; i < step.in.size() - layout.trailing; i++) {
    std::span<const int64_t> shape = binding.shapes[step.in[i]];
    fed.push_back(layout.IsSliced(i - layout.skip) ? shape.subspan(1) : shape);
  }
  ASSIGN_OR_RETURN(std::vector<int64_t> symbols, SymbolsOf(lowered, binding, body, fed));
  return Bind(body, std::move(symbols), options, declined);
}

// On a device, entries are used in place only if each one is aligned.
void PlaceEntries(const Lowered& lowered, const Step& step, const BodyLayout& layout, const Binding& b,
                  ScratchLayout* room, ControlBinding* out) {
  std::vector<uint32_t> stacked;
  for (size_t i = layout.first_sliced; i < step.in.size() - layout.trailing; i++)
    stacked.push_back(step.in[i]);
  if (layout.first_sliced != ~size_t{0})
    for (size_t i = layout.carry; i < step.out.size(); i++) stacked.push_back(step.out[i]);
  for (uint32_t v : stacked) {
    auto length = static_cast<uint64_t>(b.shapes[v][0]);
    uint64_t bytes = length ? BytesOf(lowered, b, v) / length : 0;
    bool here = !lowered.accelerator || bytes % room->align() == 0;
    out->buffers.push_back(here ? kGivenInPlace : room->Take(bytes));
  }
}

}  // namespace

BodyLayout LayoutOf(const Step& step) {
  for (const Kind& kind : kLayouts)
    if (kind.op == OpName(*step.op)) return kind.layout(step);
  return {};
}

absl::StatusOr<std::unique_ptr<ControlBinding>> BindControl(const Lowered& lowered, const Step& step,
                                                            const Binding& binding,
                                                            const PlanOptions& options, size_t* declined) {
  auto out = std::make_unique<ControlBinding>();
  const BodyLayout& layout = out->layout = LayoutOf(step);
  Dim length = IntAttr(step.attrs, "length");
  if (IsSymbolic(length)) {
    ASSIGN_OR_RETURN(length, lowered.dims.Evaluate(length, binding.symbols));
  }
  out->length = length;
  ScratchLayout room(lowered);
  for (size_t i = 0; i < layout.carry; i++)
    out->buffers.push_back(room.Take(BytesOf(lowered, binding, step.out[i])));
  PlaceEntries(lowered, step, layout, binding, &room, out.get());
  out->flag_at = room.Take(1);
  uint64_t most = 0;
  for (const auto& body : step.bodies) {
    absl::StatusOr<std::shared_ptr<Binding>> bound =
        BindBody(lowered, step, layout, *body, binding, options, declined);
    if (!bound.ok()) return StepError(bound.status(), step);
    most = std::max(most, (*bound)->arena_bytes + (*bound)->scratch_bytes);
    out->bodies.push_back(*std::move(bound));
  }
  out->frames_at = room.Take(most);
  out->bytes = room.end();
  return out;
}

}  // namespace keel
