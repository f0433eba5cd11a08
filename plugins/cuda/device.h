// device.h: an opened device: its primary context, memory, kernels. Queues are in queue.h.
#ifndef KEEL_PLUGINS_CUDA_DEVICE_H
#define KEEL_PLUGINS_CUDA_DEVICE_H
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "driver.h"

namespace keel_cuda {
struct BlasState;
struct DnnState;
}  // namespace keel_cuda

struct keel_dev_s {
  const keel_host* host = nullptr;
  CUdevice device = 0;
  CUcontext context = nullptr;  // the primary one, which other libraries of the process share
  keel_cuda::Capability capability;
  std::atomic<bool> lost = false;
  std::mutex lost_mutex;
  std::string why_lost;                        // guarded by lost_mutex
  std::mutex loading;                          // of the members below
  std::map<const void*, CUlibrary> libraries;  // by image
  std::map<std::string, CUlibrary> compiled;   // by source
  std::set<CUdevice> peers;                    // whose memory this device may access, or cannot
  std::shared_ptr<keel_cuda::BlasState> blas;  // of blas.cc; NULL until a product needs it
  std::shared_ptr<keel_cuda::DnnState> dnn;    // of dnn.cc; NULL until a convolution needs it

  // KEEL_OK, or a failure that names the function. After an error that destroys the context the device stays
  // lost.
  keel_rc Check(CUresult result, const char* function);
  // Makes the context the thread's current one; fails if the device is lost.
  keel_rc Enter();
  // false: the device is lost, and its objects with it. Objects are destroyed even if the driver does not
  // make the context current now: else they would be left.
  bool EnterToDestroy() { return Enter() == KEEL_OK || !lost; }
  // A kernel of kernels/FILE.cu; loaded at first use.
  keel_rc Kernel(const std::string& file, const std::string& name, CUfunction* out);
};

#define CUDA_TRY(dev, name, ...)                                                               \
  do {                                                                                         \
    if (keel_rc rc_ = (dev)->Check(keel_cuda::cuda().name##_(__VA_ARGS__), #name)) return rc_; \
  } while (0)

namespace keel_cuda {

keel_rc DeviceOpen(const keel_host* host, uint32_t i, const keel_kv*, uint32_t, keel_dev* out);
void DeviceClose(keel_dev d);
keel_rc SegmentAlloc(keel_dev d, uint32_t kind, uint64_t bytes, keel_segment* out);
void SegmentFree(keel_dev d, const keel_segment* segment);
// Memory of this device that another library has made.
keel_rc SegmentWrap(keel_dev d, uint32_t kind, void* memory, uint64_t bytes, keel_segment* out);
void SegmentUnwrap(keel_dev d, const keel_segment* segment);
// A kernel of code that the driver loads: a fatbin or a cubin. Requires d->loading.
keel_rc FindKernel(keel_dev d, CUlibrary library, const std::string& name, CUfunction* out);

}  // namespace keel_cuda
#endif
