// elements.glsl: elements of all dtypes as numbers A to compute with: load, store, comparisons. NARROW: 8 and 16 bits, computed
// in 32; HALF: f16 and bf16, computed in f32. Half floats are converted with integer instructions, because conversions of Vulkan
// may round towards zero and flush denormals.
layout(constant_id = 1) const uint STORAGE = 0; // 0: 8 bits, or f16; 1: 16 bits, or bf16; 2: bool
#if defined(NARROW)
layout(buffer_reference, scalar, buffer_reference_align = 1) buffer Bytes { T8 v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 2) buffer Shorts { T16 v[]; };
A load(uint64_t at, uint i) { return STORAGE == 1 ? A(Shorts(at).v[i]) : A(Bytes(at).v[i]); }
void store(uint64_t at, uint i, A x) {
  if (STORAGE == 2) x = min(x, A(1)); // unsigned
  if (STORAGE == 1) Shorts(at).v[i] = T16(x);
  else Bytes(at).v[i] = T8(x);
}
#elif defined(HALF)
layout(buffer_reference, scalar, buffer_reference_align = 2) buffer Halves { uint16_t v[]; };
float from_half(uint h) {
  uint magnitude = h & 0x7fffu, bits = (magnitude << 13) + (112u << 23);
  if (magnitude >= 0x7c00u) bits = magnitude << 13 | 0x7f800000u;
  if (magnitude < 0x400u) bits = floatBitsToUint(float(magnitude) * 5.9604644775390625e-8); // 2^-24
  return uintBitsToFloat(bits | (h & 0x8000u) << 16);
}
uint to_half(float x) { // to nearest, ties to even
  uint bits = floatBitsToUint(x), magnitude = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;
  if (magnitude >= 0x38800000u) return sign | (magnitude + 0xfffu + (magnitude >> 13 & 1u) >> 13) - (112u << 10);
  uint exponent = magnitude >> 23; // denormal: the significand is shifted, and the bits lost decide
  if (exponent < 102u) return sign;
  uint shift = 126u - exponent, full = magnitude & 0x7fffffu | 0x800000u, cut = full >> shift, lost = full - (cut << shift);
  uint half_unit = 1u << shift - 1u;
  return sign | cut + uint(lost > half_unit || lost == half_unit && (cut & 1u) == 1u);
}
uint to_brain(float x) {
  uint bits = floatBitsToUint(x);
  return (bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : bits + 0x7fffu + (bits >> 16 & 1u) >> 16;
}
A load(uint64_t at, uint i) {
  uint bits = uint(Halves(at).v[i]);
  return STORAGE == 1 ? uintBitsToFloat(bits << 16) : from_half(bits);
}
void store(uint64_t at, uint i, A x) { Halves(at).v[i] = uint16_t(STORAGE == 1 ? to_brain(x) : to_half(x)); }
#else
layout(buffer_reference, scalar, buffer_reference_align = BYTES) buffer Elements { A v[]; };
A load(uint64_t at, uint i) { return Elements(at).v[i]; }
void store(uint64_t at, uint i, A x) { Elements(at).v[i] = x; }
#endif

// E: an element in a tile of a product.
#ifdef COOPERATIVE
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define E float16_t
layout(buffer_reference, scalar, buffer_reference_align = 2) buffer TileElements { E v[]; };
E load_tile(uint64_t at, uint i) { return TileElements(at).v[i]; }
#else
#define E A
#define load_tile load
#endif

#ifdef V4 // 2 and 4 elements; 2 are aligned together
#if !defined(NARROW) && !defined(HALF) && BYTES == 4
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Pairs { uint64_t v; }; // one load: see product.comp
V2 load2(uint64_t at, uint i) {
#ifdef FLOATING
  return uintBitsToFloat(unpackUint2x32(Pairs(at + uint64_t(i) * 4).v));
#else
  return unpackUint2x32(Pairs(at + uint64_t(i) * 4).v);
#endif
}
void store2(uint64_t at, uint i, V2 x) {
#ifdef FLOATING
  Pairs(at + uint64_t(i) * 4).v = packUint2x32(floatBitsToUint(x));
#else
  Pairs(at + uint64_t(i) * 4).v = packUint2x32(x);
#endif
}
#else
void store2(uint64_t at, uint i, V2 x) {
  store(at, i, x.x);
  store(at, i + 1, x.y);
}
V2 load2(uint64_t at, uint i) { return V2(load(at, i), load(at, i + 1)); }
#endif
#if defined(NARROW) || defined(HALF)
V4 load4(uint64_t at, uint i) { return V4(load(at, i), load(at, i + 1), load(at, i + 2), load(at, i + 3)); }
#else
layout(buffer_reference, scalar, buffer_reference_align = BYTES) buffer Vectors { V4 v; };
V4 load4(uint64_t at, uint i) { return Vectors(at + uint64_t(i) * BYTES).v; }
#endif
#endif

// Numbers A in scratch.
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Wide { A v[]; };

#ifdef FLOATING
bool is_nan(A x) { return isnan(x); }
bool is_negative_zero(A x) { return x == A(0) && A(1) / x < A(0); }
#define MULTIPLY_ADD(a, b, c) fma(a, b, c)
#else
bool is_nan(A x) { return false; }
bool is_negative_zero(A x) { return false; }
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#endif
// NaN wins, and 0 is greater than -0.
A greater(A a, A b) {
  if (is_nan(a) || is_nan(b)) return is_nan(a) ? a : b;
  return a < b || (a == b && is_negative_zero(a)) ? b : a;
}
A lesser(A a, A b) {
  if (is_nan(a) || is_nan(b)) return is_nan(a) ? a : b;
  return b < a || (a == b && is_negative_zero(b)) ? b : a;
}
// From the bits of a number in 64 bits (ops/shader_op.h).
A from_bits(uint64_t bits) {
#if BYTES == 8 && defined(FLOATING)
  return packDouble2x32(unpackUint2x32(bits));
#elif defined(FLOATING)
  return uintBitsToFloat(uint(bits));
#else
  return A(bits);
#endif
}
