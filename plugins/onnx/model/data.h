// data.h: the numbers of a tensor: in the model file, in another mapped file, or owned. See tensor.h.
#pragma once
#include <memory>
#include <vector>

#include "abi/keel_plugin.h"

namespace onnx_import {

struct Data {
  keel_dt dtype = KEEL_F32;
  std::vector<int64_t> dims;
  const uint8_t* bytes = nullptr;
  uint64_t size = 0;
  bool in_source = false;         // bytes are in the model file
  std::shared_ptr<void> mapping;  // or in this mapped file
  std::vector<uint8_t> own;       // or here
  int64_t count() const;
};

}  // namespace onnx_import
