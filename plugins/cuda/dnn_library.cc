// dnn_library.cc: see dnn_library.h.
#include "dnn_library.h"

#include "library.h"

namespace keel_cuda {
namespace {

std::string Open(Dnn* b) {
#define DNN_FUNCTION(name) {#name, reinterpret_cast<void**>(&b->name##_)},
  const LibraryFunction functions[] = {DNN_FUNCTIONS};
#undef DNN_FUNCTION
  return OpenLibrary({"cuDNN", "libcudnn.so.9", "KEEL_CUDA_CUDNN", settings().dnn}, functions);
}

int CategoryOf(cudnnStatus_t status) { return status / 1000; }

}  // namespace

const Dnn& dnn() {
  static const Dnn& opened = *[] {
    auto* b = new Dnn;
    b->why = Open(b);
    return b;
  }();
  return opened;
}

bool DnnFailure::IsRefusal() const {
  constexpr int kNotInitialized = 1, kBadParameter = 2, kNotSupported = 3;
  const int category = CategoryOf(status);
  return category == kNotInitialized || category == kBadParameter || category == kNotSupported;
}

bool DnnFailure::IsOutOfMemory() const {
  return status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
         status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
}

keel_rc DnnFailure::Report(keel_dev d) const {
  if (!status) return KEEL_OK;
  const std::string text = std::string(function) + " gave " + dnn().cudnnGetErrorString_(status);
  return d->host->fail(IsOutOfMemory() ? KEEL_OOM : KEEL_UNAVAILABLE, text.c_str());
}

Descriptor NewDescriptor(DnnFailure* failure, cudnnBackendDescriptorType_t type) {
  void* made = nullptr;
  if (!*failure)
    failure->Note(dnn().cudnnBackendCreateDescriptor_(type, &made), "cudnnBackendCreateDescriptor");
  return Descriptor(made);
}

DescriptorMaker& DescriptorMaker::Set(Name name, cudnnBackendAttributeType_t type, size_t n,
                                      const void* values) {
  if (!*failure_)
    failure_->Note(dnn().cudnnBackendSetAttribute_(made_.get(), name, type, static_cast<int64_t>(n), values),
                   "cudnnBackendSetAttribute");
  return *this;
}

Descriptor DescriptorMaker::Finalize() {
  if (!*failure_) failure_->Note(dnn().cudnnBackendFinalize_(made_.get()), "cudnnBackendFinalize");
  return std::move(made_);
}

}  // namespace keel_cuda
