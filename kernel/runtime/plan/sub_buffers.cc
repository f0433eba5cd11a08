// sub_buffers.cc: see sub_buffers.h. kKinds has a row for each op whose results or operands may be parts.
#include "kernel/runtime/plan/sub_buffers.h"

#include <algorithm>

namespace keel {
namespace {

class Finder {
 public:
  Finder(const Lowered& lowered, const Binding& binding, const std::vector<Storage>& storage,
         const std::vector<bool>& placed)
      : l_(lowered), b_(binding), storage_(storage), placed_(placed) {
    sub_buffers_.whole.assign(l_.values.size(), kNoValue);
    sub_buffers_.offset.assign(l_.values.size(), 0);
    sub_buffers_.is_noop.assign(l_.steps.size(), false);
  }

  SubBuffers Run();

  // A slice is contiguous if the result has size 1 in all dims before the last partial dim. If all slices of
  // the operand together are smaller than half of it, they are copied, so that they do not extend its live
  // range.
  bool Slice(const Step& step) {
    const std::vector<int64_t>&x = b_.shapes[step.in[0]], &y = b_.shapes[step.out[0]];
    const AttrValue *start = FindAttr(step.attrs, "start"), *stride = FindAttr(step.attrs, "step");
    if (!start || !stride || std::ranges::any_of(stride->list, [](int64_t n) { return n != 1; }))
      return false;
    uint64_t at = 0;
    bool whole = true;  // whether all dims after d are whole
    for (size_t d = x.size(); d-- > 0;) {
      if (!whole && y[d] != 1) return false;
      at += static_cast<uint64_t>(Number(start->list[d])) * ElementsPerEntry(x, d);
      whole = whole && x[d] == y[d];
    }
    return 2 * sliced_[l_.Root(step.in[0])] >= Bytes(step.in[0]) &&
           PlaceInOperand(step, at * SizeOf(TypeOf(step.in[0])));
  }
  bool Split(const Step& step) { return IsOuter(step, step.in[0]) && PlaceInOperand(step, 0); }
  bool Concat(const Step& step) {
    const uint32_t y = step.out[0];
    if (!IsOuter(step, y) || (placed_[y] && storage_[y].kind != Storage::kOutput)) return false;
    std::vector<uint32_t> parts;
    for (uint32_t v : step.in) parts.push_back(l_.Root(v));
    for (uint32_t v : parts)
      if (l_.values[v].where != Where::kComputed || placed_[v] || sub_buffers_.IsPart(v) ||
          std::ranges::count(parts, v) > 1)
        return false;
    return PlaceParts(parts, y, 0);
  }

 private:
  // Adds the bytes of each slice to those of its operand.
  void CountSlices() {
    sliced_.assign(l_.values.size(), 0);
    for (const Step& step : l_.steps)
      if (OpName(*step.op) == "slice") sliced_[l_.Root(step.in[0])] += Bytes(step.out[0]);
  }
  DType TypeOf(uint32_t v) const { return l_.values[v].type.dtype; }
  uint64_t Bytes(uint32_t v) const { return BytesOf(l_, b_, v); }
  int64_t Number(Dim d) const { return IsSymbolic(d) ? l_.dims.Evaluate(d, b_.symbols).value_or(0) : d; }
  // Number of elements per entry of dim d.
  static uint64_t ElementsPerEntry(const std::vector<int64_t>& shape, size_t d) {
    uint64_t n = 1;
    for (size_t i = d + 1; i < shape.size(); i++) n *= static_cast<uint64_t>(shape[i]);
    return n;
  }
  // Whether all dims before the step's axis are 1.
  bool IsOuter(const Step& step, uint32_t v) const {
    const AttrValue* axis = FindAttr(step.attrs, "axis");
    const std::vector<int64_t>& shape = b_.shapes[v];
    return axis && std::all_of(shape.begin(), shape.begin() + axis->i, [](int64_t n) { return n == 1; });
  }
  // Makes the step's results consecutive parts of its operand, from byte `at` on.
  bool PlaceInOperand(const Step& step, uint64_t at) {
    const uint32_t x = l_.Root(step.in[0]), whole = sub_buffers_.Whole(x);
    const Storage::Kind kind = storage_[whole].kind;
    if (placed_[whole] && (kind == Storage::kVariable || kind == Storage::kAssigned)) return false;
    if (std::ranges::any_of(step.out, [&](uint32_t v) { return placed_[v]; })) return false;
    return PlaceParts(step.out, x, at);
  }
  // Makes `parts` consecutive parts of `whole`; false if a part would not be aligned as a separate value is.
  bool PlaceParts(const std::vector<uint32_t>& parts, uint32_t whole, uint64_t at) {
    uint64_t end = at;
    for (uint32_t v : parts) {
      if (end % kAlign) return false;
      end += Bytes(v);
    }
    for (uint32_t v : parts) {
      sub_buffers_.whole[v] = whole;
      sub_buffers_.offset[v] = at;
      at += Bytes(v);
    }
    return true;
  }

  const Lowered& l_;
  const Binding& b_;
  const std::vector<Storage>& storage_;
  const std::vector<bool>& placed_;
  SubBuffers sub_buffers_;
  std::vector<uint64_t> sliced_;  // by root: bytes of all slices of it
};

struct Kind {
  std::string_view op;
  bool (Finder::*find)(const Step&);
};
constexpr Kind kKinds[] = {{"slice", &Finder::Slice}, {"split", &Finder::Split}, {"concat", &Finder::Concat}};

SubBuffers Finder::Run() {
  CountSlices();
  bool any = false;
  for (size_t s = 0; s < l_.steps.size(); s++) {
    const std::string_view op = OpName(*l_.steps[s].op);
    for (const Kind& kind : kKinds) {
      if (kind.op != op) continue;
      sub_buffers_.is_noop[s] = (this->*kind.find)(l_.steps[s]);
      any = any || sub_buffers_.is_noop[s];
    }
  }
  return any ? std::move(sub_buffers_) : SubBuffers();
}

}  // namespace

SubBuffers FindSubBuffers(const Lowered& lowered, const Binding& binding, const std::vector<Storage>& storage,
                          const std::vector<bool>& placed) {
  return Finder(lowered, binding, storage, placed).Run();
}

}  // namespace keel
