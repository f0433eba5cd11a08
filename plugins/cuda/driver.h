// driver.h: the functions of libcuda.so.1, found by dlopen, and the devices that it lists.
#ifndef KEEL_PLUGINS_CUDA_DRIVER_H
#define KEEL_PLUGINS_CUDA_DRIVER_H
#include <cuda.h>

#include <string>
#include <vector>

#include "abi/keel_plugin.h"

namespace keel_cuda {

struct Api {
  std::vector<CUdevice> devices;  // the ones in settings().devices, in its order
  std::string why;                // set if there are none
  int version = 0;                // of the driver: 13000 is CUDA 13.0
  decltype(&::cuInit) cuInit_ = nullptr;
  decltype(&::cuDriverGetVersion) cuDriverGetVersion_ = nullptr;
#define CUDA_FUNCTION(name) decltype(&::name) name##_ = nullptr;
#include "functions.inc"
#undef CUDA_FUNCTION
};

// Loads libcuda.so.1 and lists devices at the first call; no context is made. Thread-safe.
const Api& cuda();

// Switches, from environment variables; read once (README.md).
struct Settings {
  std::string library;         // path of another libcuda.so.1
  std::string devices;         // indices, UUIDs and parts of names of the devices to list; "": all
  std::string cache;           // folder of compiled bodies; "": none
  std::string nvrtc;           // path of another libnvrtc.so.13; "0": fused bodies run op by op
  std::string blas;            // path of another libcublasLt.so.13; "0": products run by own kernels
  std::string dnn;             // path of another libcudnn.so.9; "0": convolutions run by own kernels
  bool no_recordings = false;  // each run encodes its launches
  bool tf32 = false;           // cuBLASLt may round f32 operands to tf32
};
const Settings& settings();

// "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"
std::string Describe(const Api& api, CUresult result);

struct Capability {
  int major = 0, minor = 0;
};
Capability CapabilityOf(CUdevice device);
void DescribeDevice(CUdevice device, keel_device_info* out);

}  // namespace keel_cuda
#endif
