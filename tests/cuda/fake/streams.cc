// streams.cc: streams, events, graphs, libraries of kernels and launches.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "fake.h"

EXPORT CUresult cuStreamCreate(CUstream* out, unsigned) {
  ENTER("cuStreamCreate");
  *out = new CUstream_st;
  fake::state().streams.push_back(*out);
  fake::state().alive++;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  ENTER("cuStreamSynchronize");
  if (CUresult forbidden = fake::NotInCapture()) return forbidden;
  const bool done = fake::RunUntil([&] { return stream->commands.empty(); });
  return done ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_TIMEOUT;
}
EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  ENTER("cuStreamDestroy");
  if (!stream->commands.empty()) fake::Complain("a stream was destroyed before its work was done");
  std::erase(fake::state().streams, stream);
  fake::state().alive--;
  delete stream;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  ENTER("cuStreamWaitEvent");
  if (stream->capture) return stream->broken = true, CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  if (event->occurred) stream->commands.push_back({nullptr, event->occurred});
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventCreate(CUevent* out, unsigned) {
  ENTER("cuEventCreate");
  *out = new CUevent_st;
  fake::state().alive++;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  ENTER("cuEventDestroy");
  fake::state().alive--;
  delete event;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  ENTER("cuEventRecord");
  if (stream->capture) return stream->broken = true, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  auto occurred = std::make_shared<bool>(false);
  event->occurred = occurred;
  fake::EncodeMark(stream, occurred);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventQuery(CUevent event) {
  ENTER("cuEventQuery");
  if (CUresult forbidden = fake::NotInCapture()) return forbidden;
  if (event->occurred && !*event->occurred) fake::RunSome(1 + static_cast<int>(fake::state().random() % 8));
  return !event->occurred || *event->occurred ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  ENTER("cuMemcpyAsync");
  if (!fake::IsKnown(to, bytes) || !fake::IsKnown(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture) return stream->broken = true, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  fake::Encode(stream,
               [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes); });
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                  CUcontext from_context, size_t bytes, CUstream stream) {
  ENTER("cuMemcpyPeerAsync");
  if (!fake::IsKnown(to, bytes) || !fake::IsKnown(from, bytes) ||
      fake::OwnerOf(to) != fake::DeviceOf(to_context) || fake::OwnerOf(from) != fake::DeviceOf(from_context))
    return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture) return stream->broken = true, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  fake::Encode(stream,
               [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes); });
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream stream) {
  ENTER("cuMemsetD32Async");
  if (!fake::IsKnown(to, 4 * n) || to % 4) return CUDA_ERROR_INVALID_VALUE;
  fake::Encode(stream, [=] { std::fill_n(reinterpret_cast<unsigned*>(to), n, value); });
  return CUDA_SUCCESS;
}

// ---- kernels
EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                               CUstream stream, void** parameters, void**) {
  ENTER("cuLaunchKernel");
  if (!grid_x || grid_y != 1 || grid_z != 1 || !block_x || block_x > 1024 || block_y != 1 || block_z != 1 ||
      shared)
    return CUDA_ERROR_INVALID_VALUE;
  const auto* kernel = reinterpret_cast<const CUkern_st*>(function);
  if (block_x > kernel->code->most) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  const auto* bytes = static_cast<const char*>(parameters[0]);
  std::vector<char> args(bytes, bytes + kernel->code->bytes);
  Simt sizes;
  sizes.grid_size.x = grid_x, sizes.block_size.x = block_x;
  auto run = [kernel, sizes, args = std::move(args)] { fake::RunKernel(*kernel, sizes, args); };
  if (stream->capture)
    stream->capture->launches.push_back(std::move(run));
  else
    fake::Encode(stream, std::move(run));
  return CUDA_SUCCESS;
}

namespace {

constexpr unsigned kFatbin = 0xba55ed50;

// This library, which contains all kernels of the plugin.
void* Self() {
  Dl_info self;
  dladdr(reinterpret_cast<void*>(&Self), &self);
  return dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
}

}  // namespace

EXPORT CUresult cuLibraryLoadData(CUlibrary* out, const void* image, CUjit_option*, void**, unsigned,
                                  CUlibraryOption*, void**, unsigned) {
  ENTER("cuLibraryLoadData");
  if (CUresult forbidden = fake::NotInCapture()) return forbidden;
  unsigned magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  void* library = magic == kFatbin ? Self() : fake::CompiledLibrary(static_cast<const char*>(image));
  if (!library) return CUDA_ERROR_INVALID_IMAGE;
  *out = new CUlib_st{library, {}};
  fake::state().alive++;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuLibraryUnload(CUlibrary library) {
  ENTER("cuLibraryUnload");
  fake::state().alive--;
  delete library;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuLibraryGetKernel(CUkernel* out, CUlibrary library, const char* name) {
  ENTER("cuLibraryGetKernel");
  auto& kernel = library->kernels[name];
  if (!kernel) {
    const auto* code =
        static_cast<const SimtKernel*>(dlsym(library->library, (std::string("simt_") + name).c_str()));
    if (!code) return CUDA_ERROR_NOT_FOUND;
    kernel.reset(new CUkern_st{code, static_cast<Simt**>(dlsym(library->library, "keel_simt"))});
  }
  *out = kernel.get();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuKernelGetFunction(CUfunction* out, CUkernel kernel) {
  ENTER("cuKernelGetFunction");
  *out = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}

// ---- graphs
EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode) {
  ENTER("cuStreamBeginCapture");
  stream->capture = new CUgraph_st;
  stream->broken = false;
  fake::SetCapturing(stream);
  fake::state().alive++;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph* out) {
  std::lock_guard lock(fake::state().mutex);
  const CUresult planted = fake::Enter("cuStreamEndCapture");
  fake::SetCapturing(nullptr);
  *out = std::exchange(stream->capture, nullptr);
  if (!stream->broken && !planted) return CUDA_SUCCESS;
  delete *out;
  *out = nullptr;
  fake::state().alive--;
  return planted ? planted : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}
EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long) {
  ENTER("cuGraphInstantiate");
  *out = new CUgraphExec_st{graph->launches};
  fake::state().alive++;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  ENTER("cuGraphDestroy");
  fake::state().alive--;
  delete graph;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphExecDestroy(CUgraphExec graph) {
  ENTER("cuGraphExecDestroy");
  fake::state().alive--;
  delete graph;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  ENTER("cuGraphLaunch");
  for (const auto& launch : graph->launches) fake::Encode(stream, launch);
  return CUDA_SUCCESS;
}

// ---- for the fake cuBLASLt (blas.cc)
EXPORT int fake_enter(const char* function) {
  std::lock_guard lock(fake::state().mutex);
  return fake::Enter(function);
}
// `drop` frees arg after the last run: a graph may run it many times.
EXPORT void fake_encode(CUstream stream, void (*run)(void*), void (*drop)(void*), void* arg) {
  std::lock_guard lock(fake::state().mutex);
  auto held = std::shared_ptr<void>(arg, drop);
  auto launch = [run, held] { run(held.get()); };
  if (stream->capture)
    stream->capture->launches.push_back(std::move(launch));
  else
    fake::Encode(stream, std::move(launch));
}
// Of a product that runs: finds graphs that keep the address of memory that is gone.
EXPORT void fake_check_memory(uint64_t address, const char* what) {
  if (!fake::IsKnown(address, 1)) fake::Complain(std::string(what) + " is in no memory of the device");
}
