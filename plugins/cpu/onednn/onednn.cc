// onednn.cc: see onednn.h.
#include "plugins/cpu/onednn/onednn.h"

#include <sys/mman.h>

#include <cstdlib>
#include <mutex>

#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {

const dnnl::engine& Engine() {
  static const dnnl::engine engine = (LimitOneDnn(), dnnl::engine(dnnl::engine::kind::cpu, 0));
  return engine;
}

dnnl::stream& Stream() {
  thread_local dnnl::stream stream(Engine());
  return stream;
}

Bytes Allocate(size_t bytes) {
  void* p = std::aligned_alloc(64, Aligned(std::max<size_t>(bytes, 64)));
  if (p == nullptr) throw std::bad_alloc();
  return {static_cast<char*>(p), std::free};
}

#if KEEL_BUILD
// separate blocks, so that the address sanitizer sees overflows
Bytes AllocateConstant(size_t bytes) { return Allocate(bytes); }
#else
namespace {

constexpr size_t kHugePage = size_t{2} << 20, kSlab = size_t{32} << 20;

// Reserved address space; the kernel commits it on first touch, a huge page at a time.
struct Slab {
  size_t size, used = 0;
  char* whole;  // the mapping; up to one huge page before data
  char* data;
  explicit Slab(size_t bytes) : size((bytes + kHugePage - 1) / kHugePage * kHugePage) {
    void* p = mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    whole = static_cast<char*>(p);
    data = whole + (kHugePage - reinterpret_cast<uintptr_t>(whole) % kHugePage) % kHugePage;
    static_cast<void>(madvise(data, size, MADV_HUGEPAGE));  // best effort: small pages work too
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  ~Slab() { munmap(whole, size + kHugePage); }
};

}  // namespace

Bytes AllocateConstant(size_t bytes) {
  static std::timed_mutex mutex;
  static std::weak_ptr<Slab> current;  // kept alive by its constants
  const size_t wanted = Aligned(std::max<size_t>(bytes, 64));
  const std::unique_lock lock(mutex, kPatience);
  if (!lock) return Allocate(bytes);
  std::shared_ptr<Slab> slab = current.lock();
  if (slab == nullptr || slab->size - slab->used < wanted) {
    slab = std::make_shared<Slab>(std::max(wanted, kSlab));
    current = slab;
  }
  char* p = slab->data + slab->used;
  slab->used += wanted;
  return {std::move(slab), p};
}
#endif

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

dnnl::memory::desc ChannelsLast(const Dims& dims, dnnl::memory::data_type type) {
  Dims strides(dims.size());
  int64_t step = dims[1];
  for (size_t d = dims.size(); d-- > 2; step *= dims[d]) strides[d] = step;
  strides[0] = step;
  strides[1] = 1;
  return Strided(dims, strides, type);
}
bool IsChannelsLast(const dnnl::memory::desc& layout) {
  return layout.get_data_type() == kF32 && layout.get_ndims() > 2 && layout.get_inner_nblks() == 0 &&
         layout.get_strides()[1] == 1;
}

namespace {

// oneDNN's kernels for products below AVX-512 take blocks of 48 x 64 results. With threads left over they
// split sums of more than 768 (see calc_nthr_nocopy_avx in its source).
int ThreadsOfProduct(const_dnnl_primitive_desc_t d) {
  constexpr int64_t kRows = 48, kColumns = 64, kDeep = 768;
  const char* impl = nullptr;
  if (dnnl_primitive_desc_query(d, dnnl_query_impl_info_str, 0, &impl) != dnnl_success ||
      !std::strstr(impl, "gemm:"))
    return INT_MAX;
  const auto dims = [&](dnnl_query_t what, int i) {
    const_dnnl_memory_desc_t layout = dnnl_primitive_desc_query_md(d, what, i);
    dnnl_dims_t* p = nullptr;
    int n = 0;
    dnnl_memory_desc_query(layout, dnnl_query_dims, &p);
    dnnl_memory_desc_query(layout, dnnl_query_ndims_s32, &n);
    return Dims(*p, *p + n);
  };
  const Dims x = dims(dnnl_query_src_md, 0), y = dims(dnnl_query_dst_md, 0);
  if (x.back() <= kDeep) return INT_MAX;
  const int64_t m = y[y.size() - 2], n = y.back(),
                products = Product(y.data(), static_cast<int64_t>(y.size())) / std::max<int64_t>(1, m * n);
  return static_cast<int>(
      std::clamp<int64_t>((m + kRows - 1) / kRows * ((n + kColumns - 1) / kColumns) * products, 1, INT_MAX));
}

}  // namespace

GangNeeds GangNeedsOf(const dnnl::primitive& p) {
  const_dnnl_primitive_desc_t d = nullptr;
  dnnl_primitive_kind_t kind = dnnl_undefined_primitive;
  dnnl_prop_kind_t way = dnnl_prop_kind_undef;
  if (dnnl_primitive_get_primitive_desc(p.get(), &d) != dnnl_success) return {};
  if (dnnl_primitive_desc_query(d, dnnl_query_primitive_kind, 0, &kind) != dnnl_success) return {};
  if (kind == dnnl_matmul) return {ThreadsOfProduct(d), false};
  if (kind != dnnl_convolution || dnnl_primitive_desc_query(d, dnnl_query_prop_kind, 0, &way) != dnnl_success)
    return {};
  return {INT_MAX, way == dnnl_backward_weights};
}

dnnl::primitive_attr UserScratch() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

Packed Pack(const dnnl::memory::desc& from, const void* data, const dnnl::memory::desc& to) {
  if (from == to) return {data, nullptr};
  Bytes own = AllocateConstant(to.get_size());
  dnnl::memory source = At(from, data), target = At(to, own.get());
  dnnl::reorder(source, target).execute(Stream(), source, target);
  Stream().wait();
  const void* packed = own.get();
  return {packed, std::move(own)};
}

}  // namespace keel_cpu
