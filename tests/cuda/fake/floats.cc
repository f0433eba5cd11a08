// floats.cc: see floats.h.
#include "floats.h"

#include "simt.h"
//
#include "args.h"
#include "scalar.cuh"

double LoadFloat(Float type, const char* at) {
  if (type == Float::f64) return *reinterpret_cast<const double*>(at);
  if (type == Float::f32) return *reinterpret_cast<const float*>(at);
  return type == Float::f16 ? Number<f16>::from(*reinterpret_cast<const f16*>(at))
                            : Number<bf16>::from(*reinterpret_cast<const bf16*>(at));
}

void StoreFloat(Float type, char* at, double v) {
  const auto single = static_cast<float>(v);
  if (type == Float::f64) *reinterpret_cast<double*>(at) = v;
  if (type == Float::f32) *reinterpret_cast<float*>(at) = single;
  if (type == Float::f16) *reinterpret_cast<f16*>(at) = Number<f16>::to(single);
  if (type == Float::bf16) *reinterpret_cast<bf16*>(at) = Number<bf16>::to(single);
}

float ToTf32(float v) {
  const unsigned bits = __float_as_uint(v);
  return isfinite(v) ? __uint_as_float((bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu) : v;
}
