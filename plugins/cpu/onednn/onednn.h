// onednn.h: oneDNN for matmul and convolution: an engine created on first use, packed constant operands, and
// primitives per number of threads.
//
// A primitive is planned for the number of threads it is created with, so a launch that uses another number
// creates another primitive and keeps it.
#pragma once

#include <climits>
#include <cstring>
#include <functional>
#include <map>
#include <memory>

#include "abi/mutex.hpp"
#include "dnnl.hpp"
#include "plugins/cpu/common.h"
#include "plugins/cpu/parallel/parallel.h"

namespace keel_cpu {

const dnnl::engine& Engine();
dnnl::stream& Stream();  // one per thread

using Bytes = std::shared_ptr<char>;
Bytes Allocate(size_t bytes);  // 64-byte aligned
// The same for constants of a plan: allocated from slabs in huge pages, which many constants share. Each run
// streams through the weights once; with small pages a ResNet-50 takes some 7 % longer.
Bytes AllocateConstant(size_t bytes);

inline uint64_t Aligned(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// Layouts: dense row-major, with explicit strides, chosen by oneDNN, and channels last.
inline constexpr auto kF32 = dnnl::memory::data_type::f32;
dnnl::memory::desc Plain(const Dims& dims, dnnl::memory::data_type type = kF32);
dnnl::memory::desc Strided(const Dims& dims, const Dims& strides, dnnl::memory::data_type type = kF32);
dnnl::memory::desc AnyLayout(const Dims& dims, dnnl::memory::data_type type = kF32);
dnnl::memory::desc ChannelsLast(const Dims& dims, dnnl::memory::data_type type = kF32);
bool IsChannelsLast(const dnnl::memory::desc& layout);  // for f32 images
inline dnnl::memory At(const dnnl::memory::desc& d, const void* data) {
  return dnnl::memory(d, Engine(), const_cast<void*>(data));
}
dnnl::primitive_attr UserScratch();
// Whether oneDNN has an optimised implementation, not just its reference code.
template <class Desc>
bool IsOptimized(const Desc& d) {
  return std::strstr(d.impl_info_str(), "ref") == nullptr;
}

// Whether it is optimised and not a GEMM over a copy of the image for each group of each image.
template <class Desc>
bool IsDirect(const Desc& d) {
  return IsOptimized(d) && std::strstr(d.impl_info_str(), "gemm") == nullptr;
}

// Threads of a primitive whose parts wait for each other in spin loops inside oneDNN, which the pool does not
// see. All parts have to run at the same time (a gang); under load each such wait may cost a scheduler time
// slice.
struct GangNeeds {
  int threads = INT_MAX;    // at most so many need no gang: a product splits sums only over surplus threads
  bool needs_gang = false;  // weight gradients add up partial results of all threads
};
GangNeeds GangNeedsOf(const dnnl::primitive& p);
// Applies GangNeeds to the executions of the calling thread during its life.
class GangScope {
 public:
  explicit GangScope(const GangNeeds& m) : before_(keel_threads_get()), needs_gang_(m.needs_gang) {
    if (m.threads < before_) SetThreads(m.threads);
    if (needs_gang_) keel_threads_set_gang(1);
  }
  ~GangScope() {
    SetThreads(before_);
    if (needs_gang_) keel_threads_set_gang(0);
  }
  GangScope(const GangScope&) = delete;
  GangScope& operator=(const GangScope&) = delete;

 private:
  int before_;
  bool needs_gang_;
};

// A constant operand in the layout of a primitive; `data` is the caller's memory if the layouts are equal.
struct Packed {
  const void* data = nullptr;
  Bytes own;
};
Packed Pack(const dnnl::memory::desc& from, const void* data, const dnnl::memory::desc& to);

// One P per number of threads.
template <class P>
class PerThreads {
 public:
  explicit PerThreads(std::function<P()> make)
      : make_(std::move(make)), threads_((SetThreads(Budget()), Budget())), first_(make_()) {}
  const P& First() const { return first_; }
  // Also sets the calling thread's number of parts to what the primitive expects.
  const P& For(int threads) {
    SetThreads(threads);
    if (threads == threads_) return first_;
    std::lock_guard lock(mutex_);
    auto& p = others_[threads];
    if (p == nullptr) p = std::make_unique<P>(make_());
    return *p;
  }

 private:
  std::function<P()> make_;
  int threads_;
  P first_;
  keel::Mutex mutex_;
  std::map<int, std::unique_ptr<P>> others_;
};

// Workspace of one run: part of the launch's declared workspace if that is large enough, else allocated.
class Scratch {
 public:
  Scratch(const keel_call* call, uint64_t declared, uint64_t needed)
      : own_(needed > declared ? Allocate(needed) : nullptr),
        at_(own_ ? own_.get() : static_cast<char*>(call->scratch)) {}
  void* Take(uint64_t bytes) {
    char* p = at_;
    at_ += Aligned(bytes);
    return p;
  }

 private:
  Bytes own_;
  char* at_;
};

}  // namespace keel_cpu
