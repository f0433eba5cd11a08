// winograd_products.cc: see winograd_products.h.
#include "plugins/cpu/regions/winograd_products.h"

#include <algorithm>

#include "plugins/cpu/matmul/choice.h"
#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {

WinogradProducts::WinogradProducts(int64_t c, int64_t o, int64_t all, int64_t tiles, int64_t last)
    : c_(c), o_(o), tiles_(tiles) {
  // By the count of all tiles, as that of a block depends on the number of threads.
  if (SimdLevel() == 1 && AreOwnLoopsFaster(ProductShape(all, o, c))) own_ = MatmulLoops(KEEL_F32);
  if (own_ != nullptr) {
    weights_layout_ = Plain({kNumbers, Panels() * own_->panel, c_});
    return;
  }
  whole_ = Make(tiles, AnyLayout({kNumbers, c, o}));
  last_ = last == tiles ? whole_ : Make(last, weights_layout_);
}

WinogradProducts::Primitive WinogradProducts::Make(int64_t tiles, const Layout& weights) {
  const int before = keel_threads_get();
  SetThreads(1);
  const Layout x = Plain({kNumbers, tiles, c_}), y = Plain({kNumbers, tiles, o_});
  const dnnl::matmul::primitive_desc d(Engine(), x, weights, y, UserScratch());
  SetThreads(before);
  if (!IsOptimized(d)) throw dnnl::error(dnnl_unimplemented, "no good product");
  weights_layout_ = d.weights_desc();
  return {dnnl::matmul(d), x, y, d.scratchpad_desc()};
}

// The own kernels take the sums of the last one or two rows in another order; bits must not depend on a
// block's size, which depends on the number of threads.
int64_t WinogradProducts::Rows(int64_t tiles) const {
  constexpr int64_t kBlock = 6, kShort = 4;
  const int64_t rest = tiles % kBlock;
  return own_ == nullptr || rest == 0 ? tiles : tiles - rest + (rest <= kShort ? kShort : kBlock);
}

uint64_t WinogradProducts::ScratchpadBytes() const {
  return Aligned(std::max(whole_.pad.get_size(), last_.pad.get_size()));
}

Bytes WinogradProducts::Pack(const float* weights) const {
  Bytes packed = AllocateConstant(weights_layout_.get_size());
  auto* to = reinterpret_cast<float*>(packed.get());
  const int64_t panels = Panels(), numbers = c_ * own_->panel;
  for (int64_t i = 0; i < kNumbers * panels; i++)
    own_->pack({weights + i / panels * c_ * o_, o_, 1}, c_, o_, i % panels, to + i * numbers);
  return packed;
}

void WinogradProducts::SetWeights(Constants* constants, const void* key,
                                  const std::function<void(float*)>& make) {
  const Layout plain = Plain({kNumbers, c_, o_}), made = own_ == nullptr ? plain : weights_layout_;
  weights_ = constants->Get(key, made, weights_layout_, [&](Bytes* own) {
    *own = Allocate(plain.get_size());
    auto* weights = reinterpret_cast<float*>(own->get());
    make(weights);
    if (own_ != nullptr) *own = Pack(weights);
    return own->get();
  });
}

void WinogradProducts::RunOwn(int64_t rows, const float* x, float* y) const {
  const int64_t panels = Panels(), all = kNumbers * panels, numbers = c_ * own_->panel;
  const auto* weights = static_cast<const float*>(weights_);
  for (int64_t i = 0; i < all; i++, weights += numbers) {
    const int64_t q = i / panels, bytes = i + 1 < all ? numbers * static_cast<int64_t>(sizeof(float)) : 0;
    own_->multiply({x + q * rows * c_, c_, 1}, {weights, own_->panel, {weights + numbers, bytes}}, rows, o_,
                   c_, i % panels, false, y + q * rows * o_);
  }
}

void WinogradProducts::Run(int64_t tiles, const float* x, float* y, void* scratchpad,
                           dnnl::stream* stream) const {
  if (own_ != nullptr) return RunOwn(Rows(tiles), x, y);
  const Primitive& p = tiles == tiles_ ? whole_ : last_;
  p.run.execute(*stream, {{DNNL_ARG_SRC, At(p.x, x)},
                          {DNNL_ARG_WEIGHTS, At(weights_layout_, weights_)},
                          {DNNL_ARG_DST, At(p.y, y)},
                          {DNNL_ARG_SCRATCHPAD, At(p.pad, scratchpad)}});
}

}  // namespace keel_cpu
