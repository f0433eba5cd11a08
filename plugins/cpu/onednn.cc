// onednn.cc: see onednn.h.
#include "onednn.h"

namespace keel_cpu {

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& Stream() {
  thread_local dnnl::stream stream(Engine());
  return stream;
}

Bytes Allocate(size_t bytes) {
  void* p = std::aligned_alloc(64, Aligned(std::max<size_t>(bytes, 64)));
  if (p == nullptr) throw std::bad_alloc();
  return Bytes(static_cast<char*>(p));
}

dnnl::memory::desc Plain(const Dims& dims, dnnl::memory::data_type type) {
  Dims strides(dims.size());
  int64_t step = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    strides[d] = step;
    step *= dims[d];
  }
  return Strided(dims, strides, type);
}
dnnl::memory::desc Strided(const Dims& dims, const Dims& strides, dnnl::memory::data_type type) {
  return {dims, type, strides};
}
dnnl::memory::desc AnyLayout(const Dims& dims, dnnl::memory::data_type type) {
  return {dims, type, dnnl::memory::format_tag::any};
}

dnnl::primitive_attr UserScratch() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

Packed Pack(const dnnl::memory::desc& from, const void* data, const dnnl::memory::desc& to) {
  if (from == to) return {data, nullptr};
  Bytes own = Allocate(to.get_size());
  dnnl::memory source = At(from, data), target = At(to, own.get());
  dnnl::reorder(source, target).execute(Stream(), source, target);
  Stream().wait();
  const void* packed = own.get();
  return {packed, std::move(own)};
}

}  // namespace keel_cpu
