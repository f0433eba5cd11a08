// blas.cc: see blas.h. cuBLASLt has column-major matrices: a row-major product is computed as its transpose,
// with a and b exchanged.
#include "blas.h"

#include <cublasLt.h>

#include <map>

#include "library.h"

namespace keel_cuda {
namespace {

constexpr uint64_t kMostWorkspace = uint64_t{32} << 20;  // NVIDIA's advice for Hopper
constexpr size_t kMostProducts = 1024;                   // kept for each device

struct Blas {
  std::string why;  // set if it is missing
#define BLAS_FUNCTION(name) decltype(&::name) name##_ = nullptr;
#define BLAS_FUNCTIONS                                \
  BLAS_FUNCTION(cublasLtCreate)                       \
  BLAS_FUNCTION(cublasLtDestroy)                      \
  BLAS_FUNCTION(cublasLtGetStatusString)              \
  BLAS_FUNCTION(cublasLtMatmul)                       \
  BLAS_FUNCTION(cublasLtMatmulAlgoGetHeuristic)       \
  BLAS_FUNCTION(cublasLtMatmulDescCreate)             \
  BLAS_FUNCTION(cublasLtMatmulDescDestroy)            \
  BLAS_FUNCTION(cublasLtMatmulDescSetAttribute)       \
  BLAS_FUNCTION(cublasLtMatmulPreferenceCreate)       \
  BLAS_FUNCTION(cublasLtMatmulPreferenceDestroy)      \
  BLAS_FUNCTION(cublasLtMatmulPreferenceSetAttribute) \
  BLAS_FUNCTION(cublasLtMatrixLayoutCreate)           \
  BLAS_FUNCTION(cublasLtMatrixLayoutDestroy)          \
  BLAS_FUNCTION(cublasLtMatrixLayoutSetAttribute)
  BLAS_FUNCTIONS
#undef BLAS_FUNCTION
};

std::string Open(Blas* b) {
#define BLAS_FUNCTION(name) {#name, reinterpret_cast<void**>(&b->name##_)},
  const LibraryFunction functions[] = {BLAS_FUNCTIONS};
#undef BLAS_FUNCTION
  return OpenLibrary({"cuBLASLt", "libcublasLt.so.13", "KEEL_CUDA_CUBLASLT", settings().blas}, functions);
}

const Blas& blas() {
  static const Blas& opened = *[] {
    auto* b = new Blas;
    b->why = Open(b);
    return b;
  }();
  return opened;
}

keel_rc Check(keel_dev d, cublasStatus_t status, const char* function) {
  if (!status) return KEEL_OK;
  const std::string text = std::string(function) + " gave " + blas().cublasLtGetStatusString_(status);
  return d->host->fail(status == CUBLAS_STATUS_ALLOC_FAILED ? KEEL_OOM : KEEL_UNAVAILABLE, text.c_str());
}
#define BLAS_TRY(d, name, ...)                                                    \
  do {                                                                            \
    if (keel_rc rc_ = Check((d), blas().name##_(__VA_ARGS__), #name)) return rc_; \
  } while (0)

struct Destroy {
  void operator()(cublasLtMatmulDesc_t made) const { blas().cublasLtMatmulDescDestroy_(made); }
  void operator()(cublasLtMatrixLayout_t made) const { blas().cublasLtMatrixLayoutDestroy_(made); }
  void operator()(cublasLtMatmulPreference_t made) const { blas().cublasLtMatmulPreferenceDestroy_(made); }
};
template <class T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, Destroy>;
using Layout = Owned<cublasLtMatrixLayout_t>;

struct Types {
  cudaDataType_t data, scale;
  cublasComputeType_t compute;
};
Types TypesOf(keel_dt dtype) {
  if (dtype == KEEL_F64) return {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
  if (dtype == KEEL_F32)
    return {CUDA_R_32F, CUDA_R_32F, settings().tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
  return {dtype == KEEL_F16 ? CUDA_R_16F : CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
}

}  // namespace

// A shape with its algorithm, for one device.
struct BlasProduct final : LibraryCall {
  Owned<cublasLtMatmulDesc_t> desc;
  Layout b, a, c;  // in the order of cuBLASLt's operands
  cublasLtMatmulAlgo_t algorithm{};
  uint64_t workspace = 0;
  bool is_double = false, has_bias = false, has_matrix = false;

  keel_rc Encode(keel_queue q, const Addresses& at) override;
};

struct BlasState {
  cublasLtHandle_t handle = nullptr;
  std::map<ProductShape, std::shared_ptr<BlasProduct>> products;  // NULL: no algorithm
  // Of all products: a device has one compute queue, which executes them one after another. In the scratch
  // of the launches each idle run of a plan would keep one.
  CUdeviceptr workspace = 0;
  ~BlasState() {
    if (handle) blas().cublasLtDestroy_(handle);
    if (workspace) cuda().cuMemFree_(workspace);
  }
};

namespace {

// Requires d->loading.
keel_rc OpenState(keel_dev d) {
  if (d->blas) return KEEL_OK;
  auto state = std::make_shared<BlasState>();
  if (keel_rc rc = d->Enter()) return rc;
  BLAS_TRY(d, cublasLtCreate, &state->handle);
  d->blas = std::move(state);
  return KEEL_OK;
}

// rows, columns: as stored, row-major.
keel_rc MakeLayout(keel_dev d, const ProductShape& s, int64_t rows, int64_t columns, int64_t stride,
                   Layout* out) {
  cublasLtMatrixLayout_t made = nullptr;
  BLAS_TRY(d, cublasLtMatrixLayoutCreate, &made, TypesOf(s.dtype).data, static_cast<uint64_t>(columns),
           static_cast<uint64_t>(rows), columns);
  out->reset(made);
  const auto batches = static_cast<int32_t>(s.batches);
  BLAS_TRY(d, cublasLtMatrixLayoutSetAttribute, made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches,
           sizeof batches);
  BLAS_TRY(d, cublasLtMatrixLayoutSetAttribute, made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
           sizeof stride);
  return KEEL_OK;
}

keel_rc MakeDesc(keel_dev d, const ProductShape& s, Owned<cublasLtMatmulDesc_t>* out) {
  const Types types = TypesOf(s.dtype);
  cublasLtMatmulDesc_t made = nullptr;
  BLAS_TRY(d, cublasLtMatmulDescCreate, &made, types.compute, types.scale);
  out->reset(made);
  const auto set = [&](cublasLtMatmulDescAttributes_t name, int32_t value) {
    return Check(d, blas().cublasLtMatmulDescSetAttribute_(made, name, &value, sizeof value),
                 "cublasLtMatmulDescSetAttribute");
  };
  if (keel_rc rc = set(CUBLASLT_MATMUL_DESC_TRANSA, s.tb ? CUBLAS_OP_T : CUBLAS_OP_N)) return rc;
  if (keel_rc rc = set(CUBLASLT_MATMUL_DESC_TRANSB, s.ta ? CUBLAS_OP_T : CUBLAS_OP_N)) return rc;
  return s.bias ? set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS) : KEEL_OK;
}

keel_rc MakePreference(keel_dev d, Owned<cublasLtMatmulPreference_t>* out) {
  cublasLtMatmulPreference_t made = nullptr;
  BLAS_TRY(d, cublasLtMatmulPreferenceCreate, &made);
  out->reset(made);
  BLAS_TRY(d, cublasLtMatmulPreferenceSetAttribute, made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
           &kMostWorkspace, sizeof kMostWorkspace);
  const auto bytes = static_cast<uint32_t>(LibraryCall::kAlignment);
  for (auto operand :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    BLAS_TRY(d, cublasLtMatmulPreferenceSetAttribute, made, operand, &bytes, sizeof bytes);
  return KEEL_OK;
}

// *found: whether the library has an algorithm.
keel_rc ChooseAlgorithm(keel_dev d, BlasProduct* p, bool* found) {
  Owned<cublasLtMatmulPreference_t> preference;
  if (keel_rc rc = MakePreference(d, &preference)) return rc;
  cublasLtMatmulHeuristicResult_t best{};
  int n = 0;
  const cublasStatus_t status =
      blas().cublasLtMatmulAlgoGetHeuristic_(d->blas->handle, p->desc.get(), p->b.get(), p->a.get(),
                                             p->c.get(), p->c.get(), preference.get(), 1, &best, &n);
  *found = !status && n > 0 && !best.state;
  if (status && status != CUBLAS_STATUS_NOT_SUPPORTED)
    return Check(d, status, "cublasLtMatmulAlgoGetHeuristic");
  p->algorithm = best.algo;
  p->workspace = best.workspaceSize;
  return KEEL_OK;
}

// Before the first product that needs it is encoded: during a stream capture it would be too late.
keel_rc TakeWorkspace(keel_dev d, const BlasProduct& p) {
  if (p.workspace && !d->blas->workspace) CUDA_TRY(d, cuMemAlloc, &d->blas->workspace, kMostWorkspace);
  return KEEL_OK;
}

LibraryCall::Addresses BytesOf(const ProductShape& s) {
  const auto bytes = [&](int64_t stride, int64_t one) {
    return static_cast<uint64_t>((s.batches - 1) * stride + one) * (s.dtype >> 8 & 255) / 8;
  };
  const uint64_t c = bytes(s.rows * s.columns, s.rows * s.columns);
  return {bytes(s.a_stride, s.rows * s.inner), bytes(s.b_stride, s.inner * s.columns), c,
          s.bias ? bytes(0, s.columns) : c, c};
}

keel_rc MakeProduct(keel_dev d, const ProductShape& s, std::shared_ptr<BlasProduct>* out) {
  auto p = std::make_shared<BlasProduct>();
  p->is_double = s.dtype == KEEL_F64;
  p->has_bias = s.bias;
  p->has_matrix = s.matrix;
  p->bytes = BytesOf(s);
  if (keel_rc rc = MakeDesc(d, s, &p->desc)) return rc;
  if (keel_rc rc =
          MakeLayout(d, s, s.tb ? s.columns : s.inner, s.tb ? s.inner : s.columns, s.b_stride, &p->b))
    return rc;
  if (keel_rc rc = MakeLayout(d, s, s.ta ? s.inner : s.rows, s.ta ? s.rows : s.inner, s.a_stride, &p->a))
    return rc;
  if (keel_rc rc = MakeLayout(d, s, s.rows, s.columns, s.rows * s.columns, &p->c)) return rc;
  bool found = false;
  if (keel_rc rc = ChooseAlgorithm(d, p.get(), &found)) return rc;
  if (!found) return KEEL_OK;
  if (keel_rc rc = TakeWorkspace(d, *p)) return rc;
  *out = std::move(p);
  return KEEL_OK;
}

}  // namespace

bool HasBlas() { return blas().why.empty(); }

keel_rc FindProduct(keel_dev d, const ProductShape& shape, std::shared_ptr<LibraryCall>* out) {
  out->reset();
  if (!HasBlas()) return KEEL_OK;
  std::lock_guard lock(d->loading);
  if (keel_rc rc = OpenState(d)) return rc;
  auto& products = d->blas->products;
  if (products.size() >= kMostProducts) products.clear();
  auto [at, is_new] = products.try_emplace(shape);
  if (is_new)
    if (keel_rc rc = MakeProduct(d, shape, &at->second)) return products.erase(at), rc;
  *out = at->second;
  return KEEL_OK;
}

// The encoder holds the queue's lock, so the address of the bias may be set in the shared descriptor.
keel_rc BlasProduct::Encode(keel_queue q, const Addresses& at) {
  keel_dev d = q->device;
  const auto [at_a, at_b, at_c, at_bias, at_last] = at;
  if (has_bias)
    BLAS_TRY(d, cublasLtMatmulDescSetAttribute, desc.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, &at_bias,
             sizeof at_bias);
  const uint64_t added = !has_matrix ? at_c : has_bias ? at_last : at_bias;
  const std::array<float, 2> factors = {1, has_matrix ? 1.0F : 0};  // of the product, and of the matrix
  const std::array<double, 2> doubles = {factors[0], factors[1]};
  const auto factor = [&](size_t i) {
    return is_double ? static_cast<const void*>(&doubles[i]) : &factors[i];
  };
  const auto pointer = [](uint64_t address) { return reinterpret_cast<void*>(address); };
  BLAS_TRY(d, cublasLtMatmul, d->blas->handle, desc.get(), factor(0), pointer(at_b), b.get(), pointer(at_a),
           a.get(), factor(1), pointer(added), c.get(), pointer(at_c), c.get(), &algorithm,
           pointer(d->blas->workspace), workspace, q->stream);
  return KEEL_OK;
}

}  // namespace keel_cuda
