// dnn_run.h: the engines of the fake cuDNN (dnn.cc), and the convolution that they compute.
#pragma once
#include <cuda.h>
#include <cudnn_graph.h>

#include <cstdint>
#include <map>
#include <vector>

struct FakeTensor {
  int64_t id = 0;
  cudnnDataType_t type{};
  std::vector<int64_t> dims, strides;
  int64_t size() const;  // bytes of an element
};
struct FakeConvolution {
  int kind = 0;  // forward, for the image, for the weights
  FakeTensor x, w, y;
  std::vector<int64_t> lo, hi, stride, dilation;
  cudnnDataType_t compute{};
  bool flips = false;  // the window
  double alpha = 1, beta = 0;

  bool IsValid() const;  // for the real library
  int64_t groups() const { return x.dims[1] / w.dims[1]; }
  const FakeTensor& result() const { return kind == 0 ? y : kind == 1 ? x : w; }
};

struct Engine {
  std::vector<cudnnBackendNumericalNote_t> notes;
  int64_t workspace;
  bool fails;           // to make a plan
  double factor;        // of results: not 1 in engines that no caller may take
  bool rounds = false;  // operands to tf32
};
// As the heuristics of a mode propose them, best first.
std::vector<Engine> Engines(const FakeConvolution& c, cudnnBackendHeurMode_t mode);

struct FakeRun {
  FakeConvolution convolution;
  Engine engine;
  std::map<int64_t, char*> at;  // addresses by id
  char* workspace;

  bool IsComplete() const;  // all operands, aligned, and a workspace
  void Run();
};
