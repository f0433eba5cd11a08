// blas.cc: a libcublasLt.so.13 for tests: column-major products in double precision, encoded in streams of
// the fake driver. Like the real library, it refuses other layouts, misaligned operands, a small
// workspace; and it writes garbage to the workspace, which belongs to it.
#include <cublasLt.h>
#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "floats.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr size_t kWorkspace = 4096;  // of every algorithm

struct Attributes {
  std::map<int, std::vector<char>> set;
  cublasStatus_t Set(int name, const void* value, size_t bytes) {
    const auto* from = static_cast<const char*>(value);
    set[name].assign(from, from + bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
  template <class T>
  T Get(int name, T otherwise) const {
    const auto at = set.find(name);
    if (at == set.end()) return otherwise;
    T value{};
    std::memcpy(&value, at->second.data(), std::min(sizeof value, at->second.size()));
    return value;
  }
};
struct Desc : Attributes {
  cublasComputeType_t compute{};
  cudaDataType_t scale{};
};
struct Layout : Attributes {
  cudaDataType_t type{};
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0;
  int64_t stride() const { return Get<int64_t>(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 0); }
  int32_t batches() const { return Get<int32_t>(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1); }
};
struct Algorithm {  // in cublasLtMatmulAlgo_t
  uint64_t magic, alignment;
};
constexpr uint64_t kMagic = 0x6b65656c626c6173;
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

const Desc& Of(cublasLtMatmulDesc_t desc) { return *reinterpret_cast<const Desc*>(desc); }
const Layout& Of(cublasLtMatrixLayout_t layout) { return *reinterpret_cast<const Layout*>(layout); }

// Functions of the fake driver.
template <class F>
F* Driver(const char* name) {
  static void* const library = dlopen(std::getenv("KEEL_CUDA_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<F*>(dlsym(library, name));
}
cublasStatus_t Enter(const char* function) {
  const int code = Driver<int(const char*)>("fake_enter")(function);
  return code == CUDA_ERROR_OUT_OF_MEMORY ? CUBLAS_STATUS_ALLOC_FAILED
         : code                           ? CUBLAS_STATUS_EXECUTION_FAILED
                                          : CUBLAS_STATUS_SUCCESS;
}
#define ENTER(name) \
  if (cublasStatus_t planted_ = Enter(name)) return planted_

size_t Bytes(cudaDataType_t type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }

Float FloatOf(cudaDataType_t type) {
  return type == CUDA_R_64F   ? Float::f64
         : type == CUDA_R_32F ? Float::f32
         : type == CUDA_R_16F ? Float::f16
                              : Float::bf16;
}
double Load(cudaDataType_t type, const char* at) { return LoadFloat(FloatOf(type), at); }
void Store(cudaDataType_t type, char* at, double v) { StoreFloat(FloatOf(type), at, v); }

struct Product {
  Desc desc;
  Layout a, b, c;
  const char *at_a, *at_b, *added;  // added: a matrix like c; NULL: none
  char *at_c, *workspace;
  size_t workspace_bytes;

  // The matrix of a batch, op(m) with its columns one after another.
  std::vector<double> Matrix(const Layout& m, const char* at, int64_t batch, bool transposed) const {
    const bool rounds = desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    std::vector<double> values(m.rows * m.columns);
    at += batch * m.stride() * static_cast<int64_t>(Bytes(m.type));
    for (uint64_t column = 0; column < m.columns; column++)
      for (uint64_t row = 0; row < m.rows; row++) {
        const double v = Load(m.type, at + (column * static_cast<uint64_t>(m.leading) + row) * Bytes(m.type));
        values[transposed ? row * m.columns + column : column * m.rows + row] =
            rounds ? ToTf32(static_cast<float>(v)) : v;
      }
    return values;
  }
  void CheckMemory() const {
    for (const void* at : {static_cast<const void*>(at_a), static_cast<const void*>(at_b),
                           static_cast<const void*>(added ? added : at_c), static_cast<const void*>(at_c),
                           static_cast<const void*>(workspace)})
      Driver<void(uint64_t, const char*)>("fake_check_memory")(reinterpret_cast<uint64_t>(at),
                                                               "an operand of a product");
  }
  void RunBatch(int64_t batch, bool ta, bool tb) {
    const std::vector<double> left = Matrix(a, at_a, batch, !ta);  // its rows one after another
    const std::vector<double> right = Matrix(b, at_b, batch, tb);
    const auto* bias = desc.Get<const char*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, nullptr);
    const uint64_t inner = ta ? a.rows : a.columns;
    const int64_t before = batch * c.stride() * static_cast<int64_t>(Bytes(c.type));
    for (uint64_t column = 0; column < c.columns; column++)
      for (uint64_t row = 0; row < c.rows; row++) {
        double sum = 0;
        for (uint64_t k = 0; k < inner; k++) sum += left[row * inner + k] * right[column * inner + k];
        if (bias) sum += Load(c.type, bias + row * Bytes(c.type));
        const int64_t at = before + (static_cast<int64_t>(column) * c.leading + static_cast<int64_t>(row)) *
                                        static_cast<int64_t>(Bytes(c.type));
        if (added) sum += Load(c.type, added + at);
        Store(c.type, at_c + at, sum);
      }
  }
  void Run() {
    CheckMemory();
    std::memset(workspace, 0xa7, workspace_bytes);
    const bool ta = desc.Get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_N) == CUBLAS_OP_T;
    const bool tb = desc.Get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N) == CUBLAS_OP_T;
    for (int32_t batch = 0; batch < c.batches(); batch++) RunBatch(batch, ta, tb);
  }
};

// Whether shapes, dtypes and the epilogue fit a product that this library has.
bool IsSupported(const Desc& desc, const Layout& a, const Layout& b, const Layout& c) {
  const bool ta = desc.Get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_N) == CUBLAS_OP_T;
  const bool tb = desc.Get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N) == CUBLAS_OP_T;
  const auto epilogue = desc.Get<int32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
  const bool is_double = c.type == CUDA_R_64F;
  for (const Layout* each : {&a, &b, &c})
    if (each->type != c.type || each->leading < static_cast<int64_t>(each->rows) ||
        each->batches() != c.batches())
      return false;
  return (ta ? a.columns : a.rows) == c.rows && (tb ? b.rows : b.columns) == c.columns &&
         (ta ? a.rows : a.columns) == (tb ? b.columns : b.rows) &&
         (desc.compute == (is_double ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F) ||
          (desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && c.type == CUDA_R_32F)) &&
         desc.scale == (is_double ? CUDA_R_64F : CUDA_R_32F) &&
         (epilogue == CUBLASLT_EPILOGUE_DEFAULT || epilogue == CUBLASLT_EPILOGUE_BIAS);
}

bool Is(cudaDataType_t scale, const void* factor, double value) {
  return (scale == CUDA_R_64F ? *static_cast<const double*>(factor) : *static_cast<const float*>(factor)) ==
         value;
}

}  // namespace

EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t* out) {
  ENTER("cublasLtCreate");
  *out = reinterpret_cast<cublasLtHandle_t>(new int);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_ALLOC_FAILED ? "CUBLAS_STATUS_ALLOC_FAILED"
                                              : "CUBLAS_STATUS_EXECUTION_FAILED";
}

EXPORT cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* out, cublasComputeType_t compute,
                                               cudaDataType_t scale) {
  ENTER("cublasLtMatmulDescCreate");
  *out = reinterpret_cast<cublasLtMatmulDesc_t>(new Desc{{}, compute, scale});
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete reinterpret_cast<Desc*>(desc);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                                     cublasLtMatmulDescAttributes_t name, const void* value,
                                                     size_t bytes) {
  return reinterpret_cast<Desc*>(desc)->Set(name, value, bytes);
}
EXPORT cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* out, cudaDataType type,
                                                 uint64_t rows, uint64_t columns, int64_t leading) {
  ENTER("cublasLtMatrixLayoutCreate");
  *out = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{{}, type, rows, columns, leading});
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete reinterpret_cast<Layout*>(layout);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                       cublasLtMatrixLayoutAttribute_t name,
                                                       const void* value, size_t bytes) {
  return reinterpret_cast<Layout*>(layout)->Set(name, value, bytes);
}
EXPORT cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* out) {
  *out = reinterpret_cast<cublasLtMatmulPreference_t>(new Attributes);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete reinterpret_cast<Attributes*>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                           cublasLtMatmulPreferenceAttributes_t name,
                                                           const void* value, size_t bytes) {
  return reinterpret_cast<Attributes*>(preference)->Set(name, value, bytes);
}

EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                                     cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                     cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t,
                                                     cublasLtMatmulPreference_t preference, int wanted,
                                                     cublasLtMatmulHeuristicResult_t results[], int* n) {
  ENTER("cublasLtMatmulAlgoGetHeuristic");
  const auto& told = *reinterpret_cast<const Attributes*>(preference);
  *n = 0;
  if (wanted < 1 || told.Get<uint64_t>(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 0) < kWorkspace ||
      !IsSupported(Of(desc), Of(a), Of(b), Of(c)))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const Algorithm made = {kMagic, told.Get<uint32_t>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 256)};
  results[0] = {};
  std::memcpy(&results[0].algo, &made, sizeof made);
  results[0].workspaceSize = kWorkspace;
  *n = 1;
  return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha,
                                     const void* at_a, cublasLtMatrixLayout_t a, const void* at_b,
                                     cublasLtMatrixLayout_t b, const void* beta, const void* at_c,
                                     cublasLtMatrixLayout_t c, void* at_d, cublasLtMatrixLayout_t,
                                     const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t bytes,
                                     cudaStream_t stream) {
  ENTER("cublasLtMatmul");
  Algorithm chosen{};
  std::memcpy(&chosen, algorithm, sizeof chosen);
  const Desc& of = Of(desc);
  if (chosen.magic != kMagic || bytes < kWorkspace || !workspace || !Is(of.scale, alpha, 1) ||
      !Is(of.scale, beta, at_c == at_d ? 0 : 1) || !IsSupported(of, Of(a), Of(b), Of(c)))
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto bias = of.Get<uint64_t>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 0);
  for (uint64_t at : {reinterpret_cast<uint64_t>(at_a), reinterpret_cast<uint64_t>(at_b),
                      reinterpret_cast<uint64_t>(at_c), reinterpret_cast<uint64_t>(at_d), bias})
    if (at % chosen.alignment) return CUBLAS_STATUS_INVALID_VALUE;
  auto* product = new Product{of,
                              Of(a),
                              Of(b),
                              Of(c),
                              static_cast<const char*>(at_a),
                              static_cast<const char*>(at_b),
                              at_c == at_d ? nullptr : static_cast<const char*>(at_c),
                              static_cast<char*>(at_d),
                              static_cast<char*>(workspace),
                              bytes};
  Driver<void(cudaStream_t, void (*)(void*), void (*)(void*), void*)>("fake_encode")(
      stream, [](void* arg) { static_cast<Product*>(arg)->Run(); },
      [](void* arg) { delete static_cast<Product*>(arg); }, product);
  return CUBLAS_STATUS_SUCCESS;
}
