// dnn.cc: a libcudnn.so.9 for tests: descriptors of its backend, with the rules that libcudnn 9.19 applies,
// and convolutions in double precision (dnn_run.h), encoded in streams of the fake driver. It proposes
// several engines that a caller must refuse and an exact engine.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>

#include "dnn_run.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace {

using Name = cudnnBackendAttributeName_t;
using Type = cudnnBackendAttributeType_t;

// Functions of the fake driver.
template <class F>
F* Driver(const char* name) {
  static void* const library = dlopen(std::getenv("KEEL_CUDA_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<F*>(dlsym(library, name));
}
cudnnStatus_t Enter(const char* function) {
  const int code = Driver<int(const char*)>("fake_enter")(function);
  return code == CUDA_ERROR_OUT_OF_MEMORY   ? CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED
         : code == CUDA_ERROR_NOT_SUPPORTED ? CUDNN_STATUS_NOT_SUPPORTED
         : code                             ? CUDNN_STATUS_EXECUTION_FAILED
                                            : CUDNN_STATUS_SUCCESS;
}
#define ENTER(name) \
  if (cudnnStatus_t planted_ = Enter(name)) return planted_

// Of an operand when it is used: a graph may keep the address of memory that is gone.
void CheckMemory(const void* at) {
  Driver<void(uint64_t, const char*)>("fake_check_memory")(reinterpret_cast<uint64_t>(at),
                                                           "an operand of a convolution");
}

size_t SizeOf(Type type) {
  switch (type) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;  // enums
  }
}

struct Fake {  // a descriptor
  cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::map<Name, std::vector<char>> set;
  std::map<Name, std::vector<std::shared_ptr<Fake>>> children;
  Engine engine{};             // of an engine, its configuration, a plan
  std::shared_ptr<Fake> root;  // of these: the operation graph

  template <class T>
  std::vector<T> All(Name name) const {
    const std::vector<char>& bytes = set.at(name);
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  template <class T>
  T One(Name name) const {
    return All<T>(name)[0];
  }
  const Fake& Child(Name name) const { return *children.at(name)[0]; }
};
std::atomic<long long> alive = 0;  // handles and descriptors that were created and are not destroyed

// Descriptors refer to others even after the caller has destroyed these.
struct Holder {
  std::shared_ptr<Fake> fake;
};
std::shared_ptr<Fake>& Of(void* descriptor) { return static_cast<Holder*>(descriptor)->fake; }

// An attribute that may be set: its types, and how many values it has. All are required, but the optional
// ones.
struct Rule {
  cudnnBackendDescriptorType_t of;
  Name name;
  Type type;
  int64_t least, most;
  bool optional = false;
};
#define OPERATION_RULES(type, KIND, X, W, Y)                                                        \
  {type, CUDNN_ATTR_OPERATION_CONVOLUTION_##KIND##_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1}, \
      {type, CUDNN_ATTR_OPERATION_CONVOLUTION_##KIND##_##X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},   \
      {type, CUDNN_ATTR_OPERATION_CONVOLUTION_##KIND##_##W, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},   \
      {type, CUDNN_ATTR_OPERATION_CONVOLUTION_##KIND##_##Y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},   \
      {type, CUDNN_ATTR_OPERATION_CONVOLUTION_##KIND##_ALPHA, CUDNN_TYPE_FLOAT, 1, 1}, {            \
    type, CUDNN_ATTR_OPERATION_CONVOLUTION_##KIND##_BETA, CUDNN_TYPE_FLOAT, 1, 1                    \
  }
constexpr auto kTensor = CUDNN_BACKEND_TENSOR_DESCRIPTOR, kWindows = CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
               kForward = CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
               kForImage = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
               kForWeights = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
               kGraph = CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
               kHeuristics = CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, kEngine = CUDNN_BACKEND_ENGINE_DESCRIPTOR,
               kConfig = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, kPlan = CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
               kPack = CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;
constexpr int64_t kMostDims = CUDNN_DIM_MAX;
const Rule kRules[] = {
    {kTensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, 1},
    {kTensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1},
    {kTensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, 1},
    {kTensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 1, kMostDims},
    {kTensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 1, kMostDims},
    {kWindows, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, 1},
    {kWindows, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1},
    {kWindows, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, 1},
    {kWindows, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 1, kMostDims},
    {kWindows, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 1, kMostDims},
    {kWindows, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 1, kMostDims},
    {kWindows, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 1, kMostDims},
    OPERATION_RULES(kForward, FORWARD, X, W, Y),
    OPERATION_RULES(kForImage, BWD_DATA, DX, W, DY),
    OPERATION_RULES(kForWeights, BWD_FILTER, X, DW, DY),
    {kGraph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, 1},
    {kGraph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {kHeuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {kHeuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, 1},
    {kPlan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, 1},
    {kPlan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {kPack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 1, 3},
    {kPack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 1, 3},
    {kPack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, 1, true},
};

// The three operations have the same attributes by other names.
struct Names {
  Name windows, x, w, y, alpha, beta;
};
const Names kNamesOf[] = {
    {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};
size_t KindOf(const Fake& operation) {
  return operation.type == kForward ? 0 : operation.type == kForImage ? 1 : 2;
}

FakeTensor TensorOf(const Fake& f) {
  return {f.One<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID), f.One<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE),
          f.All<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS), f.All<int64_t>(CUDNN_ATTR_TENSOR_STRIDES)};
}
FakeConvolution ConvolutionOf(const Fake& f) {
  const size_t kind = KindOf(f);
  const Names& names = kNamesOf[kind];
  const Fake& windows = f.Child(names.windows);
  FakeConvolution c;
  c.kind = static_cast<int>(kind);
  c.x = TensorOf(f.Child(names.x)), c.w = TensorOf(f.Child(names.w)), c.y = TensorOf(f.Child(names.y));
  c.compute = windows.One<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
  c.lo = windows.All<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  c.hi = windows.All<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  c.stride = windows.All<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  c.dilation = windows.All<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  c.flips = windows.One<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) == CUDNN_CONVOLUTION;
  const bool is_double = f.set.at(names.alpha).size() == 8;
  c.alpha = is_double ? f.One<double>(names.alpha) : f.One<float>(names.alpha);
  c.beta = is_double ? f.One<double>(names.beta) : f.One<float>(names.beta);
  return c;
}

// ---- the conditions for finalizing a descriptor
cudnnStatus_t CheckTensor(const Fake& f) {
  const FakeTensor t = TensorOf(f);
  const auto alignment = f.One<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  const bool positive = std::ranges::all_of(t.dims, [](int64_t each) { return each > 0; });
  return t.dims.size() == t.strides.size() && positive && alignment > 0 && alignment % t.size() == 0
             ? CUDNN_STATUS_SUCCESS
             : CUDNN_STATUS_BAD_PARAM;
}
cudnnStatus_t CheckWindows(const Fake& f) {
  const auto n = static_cast<size_t>(f.One<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
  for (Name name : {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
                    CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_ATTR_CONVOLUTION_DILATIONS}) {
    const bool is_padding =
        name == CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS || name == CUDNN_ATTR_CONVOLUTION_POST_PADDINGS;
    const auto values = f.All<int64_t>(name);
    if (values.size() != n || *std::ranges::min_element(values) < (is_padding ? 0 : 1))
      return CUDNN_STATUS_BAD_PARAM;
  }
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t CheckPack(const Fake& f) {
  return f.All<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).size() ==
                 f.All<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).size()
             ? CUDNN_STATUS_SUCCESS
             : CUDNN_STATUS_BAD_PARAM;
}
cudnnStatus_t CheckOperation(const Fake& f) {
  return ConvolutionOf(f).IsValid() ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}
cudnnStatus_t CheckHeuristics(const Fake& f) {
  const auto mode = f.One<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE);
  return mode == CUDNN_HEUR_MODE_A || mode == CUDNN_HEUR_MODE_FALLBACK ? CUDNN_STATUS_SUCCESS
                                                                       : CUDNN_STATUS_BAD_PARAM;
}
cudnnStatus_t FinishPlan(Fake& f) {
  const Fake& config = f.Child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  f.engine = config.engine, f.root = config.root;
  return f.engine.fails ? CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH : CUDNN_STATUS_SUCCESS;
}
const std::map<cudnnBackendDescriptorType_t, std::function<cudnnStatus_t(Fake&)>> kChecks = {
    {kTensor, CheckTensor},
    {kWindows, CheckWindows},
    {kForward, CheckOperation},
    {kForImage, CheckOperation},
    {kForWeights, CheckOperation},
    {kGraph, [](Fake&) { return CUDNN_STATUS_SUCCESS; }},
    {kHeuristics, CheckHeuristics},
    {kPlan, FinishPlan},
    {kPack, CheckPack}};

const FakeConvolution OperationOf(const Fake& graph) {
  return ConvolutionOf(graph.Child(CUDNN_ATTR_OPERATIONGRAPH_OPS));
}

// Fills descriptors that the caller has made.
template <class F>
cudnnStatus_t FillDescriptors(cudnnBackendDescriptorType_t type, int64_t room, void* array, int64_t* n,
                              size_t count, F fill) {
  auto* each = static_cast<void**>(array);
  *n = static_cast<int64_t>(count);
  for (int64_t i = 0; i < std::min(room, *n); i++) {
    Fake& f = *Of(each[i]);
    if (f.type != type || f.finalized) return CUDNN_STATUS_BAD_PARAM;
    fill(f, static_cast<size_t>(i));
    f.finalized = true;
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t* out) {
  ENTER("cudnnCreate");
  *out = new cudnnContext;
  alive++;
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  alive--;
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  ENTER("cudnnSetStream");
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
EXPORT const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED
             ? "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"
         : status == CUDNN_STATUS_EXECUTION_FAILED ? "CUDNN_STATUS_EXECUTION_FAILED"
                                                   : "CUDNN_STATUS_BAD_PARAM";
}

EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                  cudnnBackendDescriptor_t* out) {
  ENTER("cudnnBackendCreateDescriptor");
  if (!kChecks.contains(type) && type != kEngine && type != kConfig) return CUDNN_STATUS_NOT_SUPPORTED;
  *out = new Holder{std::make_shared<Fake>(type)};
  alive++;
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  alive--;
  delete static_cast<Holder*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, Name name, Type type,
                                              int64_t n, const void* values) {
  ENTER("cudnnBackendSetAttribute");
  if (!descriptor || !values) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  Fake& f = *Of(descriptor);
  const auto* rule =
      std::ranges::find_if(kRules, [&](const Rule& each) { return each.of == f.type && each.name == name; });
  if (rule == std::end(kRules) || f.finalized) return CUDNN_STATUS_BAD_PARAM;
  const bool is_scale = rule->type == CUDNN_TYPE_FLOAT;  // alpha and beta, which may be double
  if (type != rule->type && !(is_scale && type == CUDNN_TYPE_DOUBLE))
    return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
  if (n < rule->least || n > rule->most) return CUDNN_STATUS_BAD_PARAM;
  const auto* bytes = static_cast<const char*>(values);
  f.set[name].assign(bytes, bytes + static_cast<size_t>(n) * SizeOf(type));
  if (type == CUDNN_TYPE_HANDLE && !f.One<void*>(name)) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) return CUDNN_STATUS_SUCCESS;
  f.children[name].clear();
  for (void* each : f.All<void*>(name)) {
    if (!each) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (!Of(each)->finalized) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    f.children[name].push_back(Of(each));
  }
  return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  ENTER("cudnnBackendFinalize");
  Fake& f = *Of(descriptor);
  for (const Rule& rule : kRules)
    if (rule.of == f.type && !rule.optional && !f.set.contains(rule.name)) return CUDNN_STATUS_BAD_PARAM;
  if (!kChecks.contains(f.type)) return CUDNN_STATUS_BAD_PARAM;
  const cudnnStatus_t status = kChecks.at(f.type)(f);
  f.finalized = !status;
  return status;
}

EXPORT cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, Name name, Type type,
                                              int64_t room, int64_t* n, void* array) {
  ENTER("cudnnBackendGetAttribute");
  const std::shared_ptr<Fake>& f = Of(descriptor);
  if (!f->finalized) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS && type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    const std::shared_ptr<Fake>& graph = f->children.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)[0];
    const std::vector<Engine> engines =
        Engines(OperationOf(*graph), f->One<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE));
    return FillDescriptors(kConfig, room, array, n, engines.size(),
                           [&](Fake& config, size_t i) { config.engine = engines[i], config.root = graph; });
  }
  if (name == CUDNN_ATTR_ENGINECFG_ENGINE && type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    return FillDescriptors(kEngine, room, array, n, 1,
                           [&](Fake& engine, size_t) { engine.engine = f->engine; });
  if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && type == CUDNN_TYPE_NUMERICAL_NOTE) {
    const auto& notes = f->engine.notes;
    *n = static_cast<int64_t>(notes.size());
    if (room >= *n) std::ranges::copy(notes, static_cast<cudnnBackendNumericalNote_t*>(array));
    return room >= *n ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
  }
  if (name != CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE || type != CUDNN_TYPE_INT64 || room < 1)
    return CUDNN_STATUS_BAD_PARAM;
  *n = 1;
  *static_cast<int64_t*>(array) = f->engine.workspace;
  return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                         cudnnBackendDescriptor_t pack) {
  ENTER("cudnnBackendExecute");
  if (!handle || !plan || !pack) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  const Fake &of = *Of(plan), &with = *Of(pack);
  if (of.type != kPlan || with.type != kPack || !of.finalized || !with.finalized)
    return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  auto* run = new FakeRun{OperationOf(*of.root), of.engine, {}, nullptr};
  std::unique_ptr<FakeRun> owned(run);
  const auto ids = with.All<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = with.All<char*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  for (size_t i = 0; i < ids.size(); i++) run->at[ids[i]] = pointers[i];
  if (with.set.contains(CUDNN_ATTR_VARIANT_PACK_WORKSPACE))
    run->workspace = with.One<char*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (!run->IsComplete()) return CUDNN_STATUS_BAD_PARAM;
  Driver<void(cudaStream_t, void (*)(void*), void (*)(void*), void*)>("fake_encode")(
      handle->stream,
      [](void* arg) {
        auto& run = *static_cast<FakeRun*>(arg);
        for (const auto& [id, address] : run.at) CheckMemory(address);
        if (run.engine.workspace) CheckMemory(run.workspace);
        run.Run();
      },
      [](void* arg) { delete static_cast<FakeRun*>(arg); }, owned.release());
  return CUDNN_STATUS_SUCCESS;
}

EXPORT long long fake_dnn_alive() { return alive; }
