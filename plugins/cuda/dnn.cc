// dnn.cc: see dnn.h. A convolution is a graph of one operation. cuDNN's heuristics propose engines for it,
// best first; the first allowed engine makes the plan.
#include "dnn.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "dnn_library.h"

namespace keel_cuda {

// A shape with its execution plan, for one device.
struct Convolution final : LibraryCall {
  std::vector<Descriptor> parts;  // that the plan refers to
  Descriptor plan;
  keel_rc Encode(keel_queue q, const Addresses& at) override;
};

struct DnnState {
  std::mutex mutex;                // of the handle, which one thread may use at a time
  cudnnHandle_t handle = nullptr;  // NULL: cuDNN does not work on this device
  CUstream stream = nullptr;       // of the handle: a device has one compute queue
  std::map<ConvolutionShape, std::shared_ptr<Convolution>> convolutions;  // NULL: no engine
  ~DnnState() {
    convolutions.clear();
    if (handle) dnn().cudnnDestroy_(handle);
  }
};

namespace {

constexpr size_t kMostConvolutions = 1024;             // kept for each device
constexpr int64_t kLeft = 0, kRight = 1, kResult = 2;  // unique ids of the operands

// Names of an operation, and ids of its operands.
struct Operation {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, alpha, beta, x, w, y;
  int64_t x_id, w_id, y_id;
};
#define OPERATION(type, KIND, X, W, Y, x, w, y)                                                          \
  {                                                                                                      \
    CUDNN_BACKEND_OPERATION_CONVOLUTION_##type##_DESCRIPTOR,                                             \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##KIND##_CONV_DESC,                                             \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##KIND##_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_##KIND##_BETA, \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##KIND##_##X, CUDNN_ATTR_OPERATION_CONVOLUTION_##KIND##_##W,    \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##KIND##_##Y, x, w, y                                           \
  }
constexpr Operation kOperations[] = {
    OPERATION(FORWARD, FORWARD, X, W, Y, kRight, kLeft, kResult),
    OPERATION(BACKWARD_DATA, BWD_DATA, DX, W, DY, kResult, kLeft, kRight),
    OPERATION(BACKWARD_FILTER, BWD_FILTER, X, DW, DY, kRight, kResult, kLeft),
};
#undef OPERATION

cudnnDataType_t TypeOf(keel_dt dtype) {
  if (dtype == KEEL_F64) return CUDNN_DATA_DOUBLE;
  if (dtype == KEEL_F32) return CUDNN_DATA_FLOAT;
  return dtype == KEEL_F16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
}
cudnnDataType_t ComputedIn(keel_dt dtype) { return dtype == KEEL_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT; }

// Makes descriptors in turn and keeps them.
class Builder {
 public:
  Builder(const ConvolutionShape& shape, cudnnHandle_t handle, Convolution* into)
      : shape_(shape), handle_(handle), into_(into) {}
  // The operation graph; NULL after a failure.
  const Descriptor* Graph() {
    const Operation& names = kOperations[static_cast<size_t>(shape_.kind)];
    const size_t x = Tensor(shape_.x, names.x_id), w = Tensor(shape_.w, names.w_id),
                 y = Tensor(shape_.y, names.y_id), windows = Windows(),
                 operation = Apply(names, x, w, y, windows);
    const size_t graph = Keep(DescriptorMaker(&failure, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
                                  .Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle_)
                                  .Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, Part(operation)));
    return failure ? nullptr : &Part(graph);
  }

  DnnFailure failure;

 private:
  size_t Keep(DescriptorMaker& made) {
    into_->parts.push_back(made.Finalize());
    return into_->parts.size() - 1;
  }
  const Descriptor& Part(size_t i) const { return into_->parts[i]; }

  size_t Tensor(const std::vector<int64_t>& dims, int64_t id) {
    std::vector<int64_t> strides(dims.size(), 1);
    std::partial_sum(dims.rbegin(), dims.rend() - 1, strides.rbegin() + 1, std::multiplies<>());
    return Keep(DescriptorMaker(&failure, CUDNN_BACKEND_TENSOR_DESCRIPTOR)
                    .Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id)
                    .Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, TypeOf(shape_.dtype))
                    .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, int64_t{LibraryCall::kAlignment})
                    .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims)
                    .Set(CUDNN_ATTR_TENSOR_STRIDES, strides));
  }
  size_t Windows() {
    return Keep(
        DescriptorMaker(&failure, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
            .Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64,
                 static_cast<int64_t>(shape_.lo.size()))
            .Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, ComputedIn(shape_.dtype))
            .Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
            .Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, shape_.lo)
            .Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, shape_.hi)
            .Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, shape_.stride)
            .Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, shape_.dilation));
  }
  size_t Apply(const Operation& names, size_t x, size_t w, size_t y, size_t windows) {
    DescriptorMaker made(&failure, names.type);
    made.Set(names.convolution, Part(windows))
        .Set(names.x, Part(x))
        .Set(names.w, Part(w))
        .Set(names.y, Part(y));
    if (shape_.dtype == KEEL_F64)
      made.Set(names.alpha, CUDNN_TYPE_DOUBLE, 1.0).Set(names.beta, CUDNN_TYPE_DOUBLE, 0.0);
    else
      made.Set(names.alpha, CUDNN_TYPE_FLOAT, 1.0F).Set(names.beta, CUDNN_TYPE_FLOAT, 0.0F);
    return Keep(made);
  }

  const ConvolutionShape& shape_;
  cudnnHandle_t handle_;
  Convolution* into_;
};

template <class T>
std::vector<T> Attribute(DnnFailure* failure, const Descriptor& of, cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, std::vector<T> room) {
  int64_t n = 0;
  if (!*failure)
    failure->Note(dnn().cudnnBackendGetAttribute_(of.get(), name, type, static_cast<int64_t>(room.size()), &n,
                                                  room.data()),
                  "cudnnBackendGetAttribute");
  room.resize(*failure ? 0 : std::min(static_cast<size_t>(n), room.size()));
  return room;
}

// Configurations of engines, best first.
std::vector<Descriptor> Proposals(DnnFailure* failure, const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  const Descriptor heuristics = DescriptorMaker(failure, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
                                    .Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
                                    .Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode)
                                    .Finalize();
  constexpr size_t kMost = 100;
  std::vector<Descriptor> made(kMost);
  std::vector<void*> room;
  for (Descriptor& each : made) {
    each = NewDescriptor(failure, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    room.push_back(each.get());
  }
  made.resize(
      Attribute(failure, heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, room)
          .size());
  return made;
}

// Whether sums are of f32 or f64 in a fixed order, of the operands as they are, so that an infinity reaches
// no other result. Tensor cores would round f32 to tf32.
bool IsAllowed(DnnFailure* failure, const Descriptor& config, keel_dt dtype) {
  const Descriptor engine = NewDescriptor(failure, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  Attribute<void*>(failure, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                   {engine.get()});
  const std::vector<cudnnBackendNumericalNote_t> room(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  const auto notes =
      Attribute(failure, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, room);
  return !*failure && std::ranges::all_of(notes, [&](cudnnBackendNumericalNote_t note) {
    return note == CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP ||
           (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && (dtype != KEEL_F32 || settings().tf32));
  });
}

// Of the operands, by id.
LibraryCall::Addresses BytesOf(const ConvolutionShape& s) {
  const Operation& names = kOperations[static_cast<size_t>(s.kind)];
  LibraryCall::Addresses bytes{};
  for (auto [id, dims] : {std::pair(names.x_id, &s.x), {names.w_id, &s.w}, {names.y_id, &s.y}})
    bytes[static_cast<size_t>(id)] = static_cast<uint64_t>(
        std::accumulate(dims->begin(), dims->end(), int64_t{s.dtype >> 8 & 255}, std::multiplies<>()) / 8);
  return bytes;
}

// Sets out's plan, if the engine can make a plan with a workspace that is small enough.
bool TryPlan(DnnFailure* failure, cudnnHandle_t handle, const Descriptor& config, Convolution* out) {
  Descriptor plan = DescriptorMaker(failure, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
                        .Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle)
                        .Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config)
                        .Finalize();
  const auto workspace =
      Attribute<int64_t>(failure, plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, {0});
  // NVIDIA's engines for half floats transpose images in it.
  const uint64_t most = 2 * std::accumulate(out->bytes.begin(), out->bytes.end(), uint64_t{32} << 20);
  if (*failure || workspace.empty() || static_cast<uint64_t>(workspace[0]) > most) return false;
  out->plan = std::move(plan);
  out->bytes[3] = kMendBytes + static_cast<uint64_t>(workspace[0]);
  return true;
}

// *failure is set only if nothing else is worth a try.
bool ChoosePlan(DnnFailure* failure, cudnnHandle_t handle, const ConvolutionShape& shape,
                const Descriptor& graph, Convolution* out) {
  for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    DnnFailure of_mode;
    for (Descriptor& config : Proposals(&of_mode, graph, mode)) {
      DnnFailure of_engine;
      if (IsAllowed(&of_engine, config, shape.dtype) && TryPlan(&of_engine, handle, config, out)) {
        out->parts.push_back(std::move(config));
        return true;
      }
      if (of_engine.IsOutOfMemory()) return *failure = of_engine, false;
    }
    if (of_mode && !of_mode.IsRefusal()) return *failure = of_mode, false;
  }
  return false;
}

keel_rc MakeConvolution(keel_dev d, const ConvolutionShape& shape, std::shared_ptr<Convolution>* out) {
  auto made = std::make_shared<Convolution>();
  made->bytes = BytesOf(shape);
  Builder builder(shape, d->dnn->handle, made.get());
  const Descriptor* graph = builder.Graph();
  if (graph && ChoosePlan(&builder.failure, d->dnn->handle, shape, *graph, made.get()))
    *out = std::move(made);
  return builder.failure.IsRefusal() ? KEEL_OK : builder.failure.Report(d);
}

// Requires d->loading.
keel_rc OpenState(keel_dev d) {
  if (d->dnn) return KEEL_OK;
  auto state = std::make_shared<DnnState>();
  DnnFailure failure;
  failure.Note(dnn().cudnnCreate_(&state->handle), "cudnnCreate");
  if (failure && !failure.IsRefusal()) return failure.Report(d);
  d->dnn = std::move(state);
  return KEEL_OK;
}

}  // namespace

keel_rc FindConvolution(keel_dev d, const ConvolutionShape& shape, std::shared_ptr<LibraryCall>* out) {
  out->reset();
  if (!dnn().why.empty()) return KEEL_OK;
  std::lock_guard loading(d->loading);
  if (keel_rc rc = d->Enter()) return rc;
  if (keel_rc rc = OpenState(d)) return rc;
  if (!d->dnn->handle) return KEEL_OK;
  std::lock_guard lock(d->dnn->mutex);
  auto& all = d->dnn->convolutions;
  if (all.size() >= kMostConvolutions) all.clear();
  auto [at, is_new] = all.try_emplace(shape);
  if (is_new)
    if (keel_rc rc = MakeConvolution(d, shape, &at->second)) return all.erase(at), rc;
  *out = at->second;
  return KEEL_OK;
}

keel_rc Convolution::Encode(keel_queue q, const Addresses& at) {
  DnnState& state = *q->device->dnn;
  const int64_t ids[] = {kLeft, kRight, kResult};
  DnnFailure failure;
  const Descriptor pack =
      DescriptorMaker(&failure, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
          .Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, std::size(ids), ids)
          .Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::size(ids), at.data())
          .Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, at[3] + kMendBytes)
          .Finalize();
  std::lock_guard lock(state.mutex);
  if (!failure && state.stream != q->stream)
    failure.Note(dnn().cudnnSetStream_(state.handle, q->stream), "cudnnSetStream");
  if (!failure) state.stream = q->stream;
  if (!failure)
    failure.Note(dnn().cudnnBackendExecute_(state.handle, plan.get(), pack.get()), "cudnnBackendExecute");
  return failure.Report(q->device);
}

}  // namespace keel_cuda
