// buffers.cc: the buffers of a program's values in the layouts that its steps use, reorders between them, and
// the arena.
#include <algorithm>

#include "plugins/cpu/regions/region.h"

namespace keel_cpu {

dnnl::memory::data_type TypeOf(keel_dt dtype) {
  switch (dtype) {
    case KEEL_F32:
      return dnnl::memory::data_type::f32;
    case KEEL_BF16:
      return dnnl::memory::data_type::bf16;
    case KEEL_F16:
      return dnnl::memory::data_type::f16;
    case KEEL_I8:
      return dnnl::memory::data_type::s8;
    case KEEL_U8:
      return dnnl::memory::data_type::u8;
    case KEEL_I32:
      return dnnl::memory::data_type::s32;
    default:
      return dnnl::memory::data_type::undef;
  }
}

bool IsPlain(const Layout& layout) { return layout == Plain(layout.get_dims(), layout.get_data_type()); }

namespace {

// Whether the plugin's own strided copy is better than oneDNN's reorder, which is up to nine times slower
// from channels last to plain (1x64x998x998: 480 ms against 52). In the other direction it is as fast, but
// cannot be cancelled.
bool PrefersLayoutCopy(const Layout& from, const Layout& to) {
  constexpr size_t kLarge = 16 << 20;  // bytes
  return (IsChannelsLast(from) && IsPlain(to)) ||
         (IsPlain(from) && IsChannelsLast(to) && to.get_size() > kLarge);
}

}  // namespace

const void* Constants::Get(const void* key, const Layout& from, const Layout& to,
                           const std::function<const void*(Bytes*)>& make) {
  for (const CachedConstant& e : entries_)
    if (e.key == key && e.from == from && e.to == to) return e.packed.data;
  Bytes own;
  const void* data = make(&own);
  Packed packed = Pack(from, data, to);
  if (packed.own == nullptr) packed.own = std::move(own);  // no copy was needed
  entries_.push_back({key, from, to, std::move(packed)});
  return entries_.back().packed.data;
}

const void* Constants::Vector(const std::vector<float>& values) {
  vectors_.push_back(std::make_unique<std::vector<float>>(values));
  return vectors_.back()->data();
}

const void* Constants::Integer(int32_t value) {
  integers_.push_back(value);
  return &integers_.back();
}

Layout Builder::PlainOf(uint32_t v) const {
  const BodyValue& value = Value(v);
  const auto type = TypeOf(value.dtype);
  // oneDNN has no scalars, so a scalar has one dim; dtypes that it does not compute with are bytes.
  if (type == dnnl::memory::data_type::undef)
    return Plain({value.Count() * static_cast<int64_t>(value.dtype >> 8 & 255) / 8},
                 dnnl::memory::data_type::u8);
  return Plain(value.dims.empty() ? Dims{1} : value.dims, type);
}

int Builder::New(Buffer buffer) {
  program_->buffers.push_back(buffer);
  return static_cast<int>(program_->buffers.size()) - 1;
}
// Records that the next step uses a buffer.
int Builder::Use(int buffer) {
  Buffer& b = program_->buffers[static_cast<size_t>(buffer)];
  b.last = static_cast<int>(program_->steps.size());
  if (b.first < 0) b.first = b.last;
  return buffer;
}
int Builder::Constant(const void* data, uint64_t bytes) { return New({Buffer::kConstant, 0, data, bytes}); }
int Builder::Scratch(uint64_t bytes) { return New({Buffer::kArena, 0, nullptr, bytes}); }

int Builder::BufferIn(uint32_t v, const Layout& layout) {
  const bool plain = IsPlain(layout);
  for (const Copy& c : copies_[v])
    if (c.layout == layout || (plain && IsPlain(c.layout))) return c.buffer;
  Copy from = copies_[v].front();
  if (!plain &&
      // viewed with other dims, which works for plain copies only
      from.layout.get_dims() != layout.get_dims())
    from = {Plain(layout.get_dims(), layout.get_data_type()), BufferIn(v, PlainOf(v))};
  // A plain view with other dims reads a plain copy with the value's own dims.
  const Layout to = plain ? Plain(from.layout.get_dims(), from.layout.get_data_type()) : layout;
  const int buffer = ResultBuffer(v, to);
  if (from.layout.get_dims() == Value(v).dims && PrefersLayoutCopy(from.layout, to))
    EmitLayoutCopy(v, from, {to, buffer});
  else
    Emit(dnnl::reorder(dnnl::reorder::primitive_desc(Engine(), from.layout, Engine(), to, UserScratch())),
         {{DNNL_ARG_FROM, from.layout, from.buffer}, {DNNL_ARG_TO, to, buffer}});
  return buffer;
}
void Builder::EmitLayoutCopy(uint32_t v, const Copy& from, const Copy& to) {
  auto own = std::make_unique<OwnLaunch>();
  KeepLayoutCopy(from.layout.get_dims(), from.layout.get_strides(), to.layout.get_strides(), &own->launch);
  EmitOwn(std::move(own), {v}, {v}, {from.buffer, to.buffer});
}

int Builder::ResultBuffer(uint32_t v, const Layout& layout) {
  const bool straight = Value(v).result != kNone && IsPlain(layout);
  const int buffer =
      New({straight ? Buffer::kOut : Buffer::kArena, Value(v).result, nullptr, layout.get_size()});
  AssignBuffer(v, layout, buffer);
  return buffer;
}
void Builder::AssignBuffer(uint32_t v, const Layout& layout, int buffer) {
  copies_[v].push_back({layout, buffer});
}

bool Builder::MayOverwrite(uint32_t v, uint32_t user) const {
  const BodyValue& value = Value(v);
  if (value.result != kNone || value.producer == kNone || shared_[v]) return false;
  for (uint32_t u : value.users)
    if (u != user && !done_[u]) return false;
  return std::count(value.users.begin(), value.users.end(), user) == 1;
}
int Builder::OverwriteBuffer(uint32_t v, uint32_t user, const Layout& layout) {
  if (!MayOverwrite(v, user)) Throw(KEEL_INTERNAL, "region: a value is overwritten before its last use");
  const int buffer = BufferIn(v, layout);
  copies_[v].clear();
  return buffer;
}

bool Builder::Alias(const BodyNode& node) {
  const uint32_t x = node.in[0], y = node.out[0];
  const int buffer = BufferIn(x, PlainOf(x));
  if (program_->buffers[static_cast<size_t>(buffer)].kind == Buffer::kOut && Value(y).result != kNone)
    return false;
  shared_[x] = shared_[y] = true;
  AssignBuffer(y, PlainOf(y), buffer);
  return true;
}

// Largest first, each at the lowest offset that is free during its live range.
void Builder::PlanArena() {
  std::vector<Buffer*> order;
  for (Buffer& b : program_->buffers)
    if (b.kind == Buffer::kArena && b.first >= 0) order.push_back(&b);
  std::stable_sort(order.begin(), order.end(),
                   [](const Buffer* a, const Buffer* b) { return a->bytes > b->bytes; });
  std::vector<const Buffer*> placed;  // by offset
  for (Buffer* b : order) {
    uint64_t at = 0;
    for (const Buffer* p : placed)
      if (p->first <= b->last && b->first <= p->last && p->offset < at + Aligned(b->bytes))
        at = std::max(at, p->offset + Aligned(p->bytes));
    b->offset = at;
    program_->arena = std::max(program_->arena, at + Aligned(b->bytes));
    placed.insert(std::upper_bound(placed.begin(), placed.end(), b,
                                   [](const Buffer* x, const Buffer* y) { return x->offset < y->offset; }),
                  b);
  }
}

}  // namespace keel_cpu
