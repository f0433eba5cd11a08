// simt_warp.h: plugins/cuda/kernels/warp.cuh for the host's compiler, which includes it after scalar.cuh.
// Threads put their parts into a buffer, and meet; all threads of a block must call each function equally
// often, which on a GPU only those of a warp must. What simt.h includes is there.
#pragma once

// `mine` of all threads of the caller's warp. Two buffers in turn: a thread reaches the next but one meeting
// only when all have read this one.
template <class T>
inline const T* simt_of_warp(const T& mine) {
  constexpr unsigned kMost = 1024, kWarp = 32;
  static T buffers[2][kMost];
  static unsigned char turns[kMost];
  const unsigned thread = keel_simt->thread.x, turn = ++turns[thread] & 1;
  buffers[turn][thread] = mine;
  keel_simt->meet();
  return &buffers[turn][keel_simt->thread.x / kWarp * kWarp];
}
inline unsigned simt_lane() { return keel_simt->thread.x % 32; }

template <class S>
struct Halves {
  static f32 value(u32 both, unsigned which) {
    return Number<S>::from(S{static_cast<u16>(both >> 16 * which)});
  }
  static u32 of(f32 low, f32 high) {
    return Number<S>::to(low).bits | static_cast<u32>(Number<S>::to(high).bits) << 16;
  }

  struct Parts {
    u32 a[4], b[2];
  };
  static void multiply(f32* c, const u32* a, const u32* b) {
    Parts mine;
    std::memcpy(mine.a, a, sizeof mine.a), std::memcpy(mine.b, b, sizeof mine.b);
    const Parts* all = simt_of_warp(mine);
    const unsigned g = simt_lane() / 4, t = simt_lane() % 4;
    for (unsigned i = 0; i < 4; i++) {
      const unsigned row = g + i / 2 * 8, column = 2 * t + i % 2;
      for (unsigned k = 0; k < 16; k++) {
        const Parts &left = all[row % 8 * 4 + k % 8 / 2], &right = all[column * 4 + k % 8 / 2];
        c[i] += value(left.a[row / 8 + k / 8 * 2], k % 2) * value(right.b[k / 8], k % 2);
      }
    }
  }
};

inline void simt_load_matrices(u32* out, const void* row, bool transposed) {
  if (reinterpret_cast<uintptr_t>(row) % 16)
    keel_simt->complain("a row of a matrix at an address that is no multiple of 16");
  const void* const* rows = simt_of_warp(row);
  const unsigned g = simt_lane() / 4, t = simt_lane() % 4;
  for (unsigned m = 0; m < 4; m++) {
    u16 pair[2];
    for (unsigned i = 0; i < 2; i++) {
      const unsigned at = transposed ? 2 * t + i : g, element = transposed ? g : 2 * t + i;
      std::memcpy(&pair[i], static_cast<const char*>(rows[8 * m + at]) + 2 * element, sizeof pair[i]);
    }
    out[m] = pair[0] | static_cast<u32>(pair[1]) << 16;
  }
}
inline void load_matrices(u32* out, const void* row) { simt_load_matrices(out, row, false); }
inline void load_matrices_transposed(u32* out, const void* row) { simt_load_matrices(out, row, true); }

struct SimtBytes {
  u32 a[4], b[2];
};
inline void multiply_bytes(i32* c, const u32* a, u32 b0, u32 b1) {
  SimtBytes mine = {{}, {b0, b1}};
  std::memcpy(mine.a, a, sizeof mine.a);
  const SimtBytes* all = simt_of_warp(mine);
  const unsigned g = simt_lane() / 4, t = simt_lane() % 4;
  const auto byte = [](u32 word, unsigned i) { return static_cast<i8>(word >> i * 8); };
  for (unsigned i = 0; i < 4; i++) {
    const unsigned row = g + i / 2 * 8, column = 2 * t + i % 2;
    for (unsigned k = 0; k < 32; k++) {
      const SimtBytes &left = all[row % 8 * 4 + k % 16 / 4], &right = all[column * 4 + k % 16 / 4];
      const i32 term = byte(left.a[row / 8 + k / 16 * 2], k % 4) * byte(right.b[k / 16], k % 4);
      c[i] = static_cast<i32>(static_cast<u32>(c[i]) + static_cast<u32>(term));
    }
  }
}
inline i32 add_bytes(u32 word, i32 x) {
  for (int i = 0; i < 4; i++) x += static_cast<i8>(word >> i * 8);
  return x;
}
inline u32 choose_bytes(u32 low, u32 high, u32 places) {
  const u64 all = (u64{high} << 32) | low;
  u32 word = 0;
  for (int i = 0; i < 4; i++) word |= static_cast<u32>(all >> (places >> i * 4 & 7) * 8 & 255) << i * 8;
  return word;
}

inline f32 power_of_2(f32 x) { return x < -126 ? 0.0f : std::exp2(x); }
