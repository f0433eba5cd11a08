// tensor.h: the numbers of a tensor: where they lie, and whether they can stay there.
//
// How to read it: decode() turns the view of model.h into Data: a pointer into the model file, or
// into a file beside it (external.h), or to bytes of its own where they had to be converted.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "abi/keel_plugin.h"
#include "plugins/onnx/model/model.h"

namespace onnx_import {

struct Data {
  keel_dt dtype = KEEL_F32;
  std::vector<int64_t> dims;
  const uint8_t* bytes = nullptr;
  uint64_t size = 0;
  bool in_source = false;         // bytes lie in the model file
  std::shared_ptr<void> mapping;  // or in this file beside it
  std::vector<uint8_t> own;       // or here
  int64_t count() const;
};

// The dtype for an ONNX element type; refuses those that Keel does not have, by name.
keel_dt dtype_of(int64_t element_type, const std::string& what);
inline uint64_t width_of(keel_dt t) { return ((t >> 8) & 0xff) / 8; }
inline bool is_float(keel_dt t) { return (t & 0xff) == 2 || (t & 0xff) == 4; }
inline bool is_unsigned(keel_dt t) { return (t & 0xff) == 1; }
inline bool is_integer(keel_dt t) { return (t & 0xff) == 0 || (t & 0xff) == 1; }
std::string dtype_name(keel_dt t);

// Elements of dims; refuses negative dims, overflow and more than 8 dims.
int64_t checked_count(const std::vector<int64_t>& dims, const std::string& what);
Data decode(const Tensor& t, const keel_source& source);
// Element i of integers and bools (false: another dtype); of any but u64.
bool integer_at(const Data& d, int64_t i, int64_t* out);
bool number_at(const Data& d, int64_t i, double* out);

// Numbers made at import: f32, f64 or i64.
std::shared_ptr<Data> store(keel_dt dtype, const std::vector<int64_t>& dims,
                            const std::vector<double>& numbers);

}  // namespace onnx_import
