// fake.h: a driver of CUDA for tests, which runs kernels on the processor. It is hostile where a real driver
// may be: a stream executes only when the host looks at it, streams in a random order, fresh memory is full
// of NaN, and host memory is read late.
#pragma once
#include <cuda.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "simt_kernel.h"

struct CUevent_st {
  std::shared_ptr<bool> occurred;  // of the last cuEventRecord; NULL: none
};
struct CUgraph_st {
  std::vector<std::function<void()>> launches;
};
struct CUgraphExec_st {
  std::vector<std::function<void()>> launches;
};
struct CUstream_st {
  struct Command {
    std::function<void()> run;
    std::shared_ptr<bool> after;  // NULL: nothing
    bool is_work = false;         // else it only marks an event
  };
  std::deque<Command> commands;
  CUgraph capture = nullptr;  // between cuStreamBeginCapture and cuStreamEndCapture
  bool broken = false;        // a call that capture forbids was made
};
struct CUlib_st {
  void* library = nullptr;
  std::map<std::string, std::unique_ptr<CUkern_st>> kernels;
};
struct CUkern_st {
  const SimtKernel* code = nullptr;
  Simt** simt = nullptr;  // the library's
};

namespace fake {

// All state is guarded by this mutex; every function of the driver holds it.
struct State {
  std::recursive_mutex mutex;
  std::vector<CUstream> streams;
  std::map<uintptr_t, size_t> memory;  // address to bytes, of all kinds
  std::map<uintptr_t, int> owners;     // address to device, of device memory
  std::mt19937 random;
  std::map<std::string, uint64_t> calls;
  std::string failing;  // function; "": none
  uint64_t left = 0;    // calls of it until it fails
  CUresult code = CUDA_SUCCESS;
  std::string fired;
  long long alive = 0;  // objects that were created and are not destroyed
};
State& state();

// A number from the environment.
long long Variable(const char* name, long long otherwise);
// Counts the call; the error that a test planted, or that this process and thread deserve.
CUresult Enter(const char* function);
// Of calls that capture forbids: breaks the thread's capture.
CUresult NotInCapture();
void SetCapturing(CUstream stream);  // of this thread; NULL: none
bool IsKnown(uintptr_t address, size_t bytes);
int OwnerOf(uintptr_t address);  // the device; -1: not device memory
int DeviceOf(CUcontext context);
void Complain(const std::string& text);  // on stderr; fails the test

// Executes commands, streams in a random order, until the condition holds; false: it never will.
bool RunUntil(const std::function<bool()>& holds);
// Executes up to n commands.
void RunSome(int n);
void Encode(CUstream stream, std::function<void()> run);
void EncodeMark(CUstream stream, std::shared_ptr<bool> occurred);

// The library for the text that the fake compiler (nvrtc.cc) took for code; NULL: it is none.
void* CompiledLibrary(const char* image);
// Runs a kernel with a copy of its parameter.
void RunKernel(const CUkern_st& kernel, const Simt& sizes, const std::vector<char>& args);

}  // namespace fake

#define EXPORT extern "C" __attribute__((visibility("default")))
#define ENTER(name)                           \
  std::lock_guard lock_(fake::state().mutex); \
  if (CUresult planted_ = fake::Enter(name)) return planted_
