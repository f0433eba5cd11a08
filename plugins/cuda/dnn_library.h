// dnn_library.h: the functions of cuDNN's backend, and descriptors that free themselves.
#ifndef KEEL_PLUGINS_CUDA_DNN_LIBRARY_H
#define KEEL_PLUGINS_CUDA_DNN_LIBRARY_H
#include <cudnn_graph.h>

#include <memory>
#include <string>
#include <vector>

#include "device.h"

namespace keel_cuda {

#define DNN_FUNCTIONS                         \
  DNN_FUNCTION(cudnnCreate)                   \
  DNN_FUNCTION(cudnnDestroy)                  \
  DNN_FUNCTION(cudnnGetErrorString)           \
  DNN_FUNCTION(cudnnSetStream)                \
  DNN_FUNCTION(cudnnBackendCreateDescriptor)  \
  DNN_FUNCTION(cudnnBackendDestroyDescriptor) \
  DNN_FUNCTION(cudnnBackendExecute)           \
  DNN_FUNCTION(cudnnBackendFinalize)          \
  DNN_FUNCTION(cudnnBackendGetAttribute)      \
  DNN_FUNCTION(cudnnBackendSetAttribute)

struct Dnn {
  std::string why;  // set if it is missing
#define DNN_FUNCTION(name) decltype(&::name) name##_ = nullptr;
  DNN_FUNCTIONS
#undef DNN_FUNCTION
};
// Opens the library at the first call. Thread-safe.
const Dnn& dnn();

// The first failure of a sequence of calls; later calls of the sequence do nothing.
struct DnnFailure {
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  const char* function = nullptr;

  explicit operator bool() const { return status != CUDNN_STATUS_SUCCESS; }
  void Note(cudnnStatus_t result, const char* of) {
    if (result && !status) status = result, function = of;
  }
  // cuDNN does not do this here, but its memory and the device are sound.
  bool IsRefusal() const;
  bool IsOutOfMemory() const;
  keel_rc Report(keel_dev d) const;  // KEEL_OK, or a failure that names the function
};

struct DestroyDescriptor {
  void operator()(void* made) const { dnn().cudnnBackendDestroyDescriptor_(made); }
};
using Descriptor = std::unique_ptr<void, DestroyDescriptor>;
Descriptor NewDescriptor(DnnFailure* failure, cudnnBackendDescriptorType_t type);

// A descriptor whose attributes are set, one after another.
class DescriptorMaker {
 public:
  using Name = cudnnBackendAttributeName_t;
  DescriptorMaker(DnnFailure* failure, cudnnBackendDescriptorType_t type)
      : failure_(failure), made_(NewDescriptor(failure, type)) {}
  DescriptorMaker& Set(Name name, cudnnBackendAttributeType_t type, size_t n, const void* values);
  DescriptorMaker& Set(Name name, cudnnBackendAttributeType_t type, const auto& value) {
    return Set(name, type, 1, &value);
  }
  DescriptorMaker& Set(Name name, const std::vector<int64_t>& values) {
    return Set(name, CUDNN_TYPE_INT64, values.size(), values.data());
  }
  DescriptorMaker& Set(Name name, const Descriptor& value) {
    return Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.get());
  }
  Descriptor Finalize();

 private:
  DnnFailure* failure_;
  Descriptor made_;
};

}  // namespace keel_cuda
#endif
