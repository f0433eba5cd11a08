// tensor.h: the data of a tensor.
//
// decode() turns the view of model.h into Data: a pointer into the model file, into a file next to it
// (external.h), or to converted bytes of its own.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "abi/keel_plugin.h"
#include "plugins/onnx/model/data.h"
#include "plugins/onnx/model/model.h"
#include "sdk/cpp/keel/storage.hpp"

namespace onnx_import {

// The dtype of an ONNX element type; throws, with its name, if Keel has none.
keel_dt dtype_of(int64_t element_type, const std::string& what);
int64_t element_type(keel_dt dtype);                              // the reverse; 0: none
inline uint64_t width_of(keel_dt t) { return keel_bytes(t, 1); }  // of one element alone
inline bool is_float(keel_dt t) { return (t & 0xff) == 2 || (t & 0xff) == 4; }
inline bool is_unsigned(keel_dt t) { return (t & 0xff) == 1; }
inline bool is_integer(keel_dt t) { return ((t & 0xff) == 0 || (t & 0xff) == 1) && !keel::is_storage(t); }
std::string dtype_name(keel_dt t);  // of storage dtypes: ONNX's

// The element count; throws on negative dims, overflow and more than 8 dims.
int64_t checked_count(const std::vector<int64_t>& dims, const std::string& what);
Data decode(const Tensor& t, const keel_source& source);
std::vector<std::string> words_in(const Tensor& t);  // of a tensor of strings
// integer_at: element i of integers and bools; number_at: of any dtype but u64. False: another dtype.
bool integer_at(const Data& d, int64_t i, int64_t* out);
bool number_at(const Data& d, int64_t i, double* out);

// Data computed at import: f32, f64, i32 or i64.
std::shared_ptr<Data> store(keel_dt dtype, const std::vector<int64_t>& dims,
                            const std::vector<double>& numbers);
std::shared_ptr<Data> store(const std::vector<int64_t>& dims, const std::vector<int64_t>& numbers);

}  // namespace onnx_import
