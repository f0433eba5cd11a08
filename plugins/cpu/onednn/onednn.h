// onednn.h: what matmul and convolution need of oneDNN: an engine made on first use, constant operands
// packed once, and primitives per number of threads.
//
// A primitive plans its work for the number of threads that it was made with, so a launch that may use
// another number gets another primitive, made when that first happens and kept.
#pragma once

#include <climits>
#include <cstring>
#include <functional>
#include <map>
#include <memory>

#include "dnnl.hpp"
#include "plugins/cpu/common.h"
#include "plugins/cpu/parallel/parallel.h"
#include "sdk/cpp/keel/mutex.hpp"

namespace keel_cpu {

const dnnl::engine& Engine();
dnnl::stream& Stream();  // of the calling thread

using Bytes = std::shared_ptr<char>;
Bytes Allocate(size_t bytes);  // 64-byte aligned
// The same for what lives as long as a plan: from slabs in huge pages, which many constants share. Weights
// are streamed through once in each run; with small pages that costs some 7 % of a ResNet-50.
Bytes AllocateConstant(size_t bytes);

inline uint64_t Aligned(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// Contiguous data of some dims, data with its own strides, and data whose layout oneDNN may choose.
inline constexpr auto kF32 = dnnl::memory::data_type::f32;
dnnl::memory::desc Plain(const Dims& dims, dnnl::memory::data_type type = kF32);
dnnl::memory::desc Strided(const Dims& dims, const Dims& strides, dnnl::memory::data_type type = kF32);
dnnl::memory::desc AnyLayout(const Dims& dims, dnnl::memory::data_type type = kF32);
dnnl::memory::desc ChannelsLast(const Dims& dims, dnnl::memory::data_type type = kF32);
bool IsChannelsLast(const dnnl::memory::desc& layout);  // of f32 images
inline dnnl::memory At(const dnnl::memory::desc& d, const void* data) {
  return dnnl::memory(d, Engine(), const_cast<void*>(data));
}
dnnl::primitive_attr UserScratch();
// Whether a primitive would run by better code than oneDNN's reference.
template <class Desc>
bool Good(const Desc& d) {
  return std::strstr(d.impl_info_str(), "ref") == nullptr;
}

// Nor by small products over a copy of the image: one for each group of each image.
template <class Desc>
bool Direct(const Desc& d) {
  return Good(d) && std::strstr(d.impl_info_str(), "gemm") == nullptr;
}

// How a primitive is to use threads whose parts would wait for each other in loops that the pool does not
// see: beside other load each such wait may take a slice of the scheduler.
struct Meetings {
  int threads = INT_MAX;  // with so many at most there are none: a product whose sums are split if threads
                          // are left over
  bool meets = false;     // there may be: gradients of weights add up what threads made of their images
};
Meetings MeetingsOf(const dnnl::primitive& p);
// For the executions during its life, on the calling thread.
class Meeting {
 public:
  explicit Meeting(const Meetings& m) : before_(keel_threads_get()), meets_(m.meets) {
    if (m.threads < before_) SetThreads(m.threads);
    if (meets_) keel_threads_set_meeting(1);
  }
  ~Meeting() {
    SetThreads(before_);
    if (meets_) keel_threads_set_meeting(0);
  }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

 private:
  int before_;
  bool meets_;
};

// A constant operand in the layout that a primitive wants; the caller's memory where that is the same.
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
  // Also sets the calling thread's team size to what the primitive expects.
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

// Scratch of one run: pieces of what the launch declared, else its own memory.
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
