// int8_bins.h: products of rows of unsigned bytes and constant weights of signed ones, with rows as the lanes
// of vectors and broadcast weights, for AVX2: another class of processor has better loops.
//
// A group is four bytes along the depth. vpmaddubsw adds up its products in pairs of 16 bits. A bin is a set
// of groups whose pairs may be added in 16 bits before they are widened: their weights add up to at most 128
// on each side of 0, and 255 * 128 < 2^15. As weights are broadcast, each channel has bins of its own. A
// group that exceeds a bin alone is halved: each half is in a bin.
#pragma once

#include "plugins/cpu/matmul/int8.h"

namespace keel_cpu {

inline constexpr int64_t kQuad = 4;         // channels of a packed block of weights
inline constexpr int64_t kPlaces = 8;       // rows of a vector
inline constexpr int64_t kMostVectors = 8;  // of a panel, as many as a core has registers for their sums
inline constexpr int64_t kGroupBytes = kMostVectors * kPlaces * 4;  // of a panel
inline constexpr int64_t kMostInBin = 4;
inline constexpr int64_t kBlockGroups = 96;  // whose cells, of all vectors, stay in the first cache

// The first bytes of a block of weights. Then for each channel its bins, smallest first:
// uint8_t places[], in the block's groups, and int8_t weights[][4].
struct QuadHead {
  int32_t sums[kQuad];              // of all weights of a channel, in the first block only
  uint8_t bins[kQuad][kMostInBin];  // their counts by size
};

inline constexpr int64_t kChunk = 64;  // quads whose sums stay in the second cache

// Packed weights: int64_t offsets[quads][blocks], and the blocks in the order of the products: kChunk quads
// at a time, the first block of each, then the second.
struct BinShape {
  int64_t depth, channels;
  int64_t Groups() const { return (depth + 3) / 4; }
  int64_t Quads() const { return (channels + kQuad - 1) / kQuad; }
  int64_t Blocks() const { return (Groups() + kBlockGroups - 1) / kBlockGroups; }
  int64_t Begin(int64_t block) const { return Groups() * block / Blocks(); }  // a group
};

// rows: int8_t[channels][4 * Groups()], with zeros after the depth. No bytes: too many groups exceed a bin.
uint64_t BinBytes(const BinShape& s, const int8_t* rows);
void PackBins(const BinShape& s, const int8_t* rows, char* to);

// A panel of up to kMostVectors * kPlaces rows: uint8_t[groups][kMostVectors][kPlaces][4].
struct BinLoopTable {
  // Up to kPlaces rows of bytes, `step` apart, into a vector of a panel. `flip` is xored with each group.
  void (*columns)(const char* rows, int64_t step, int64_t count, int64_t groups, uint32_t flip, char* to);
  // The sums of a block for `vectors` vectors, int32_t[kQuad][vectors][kPlaces]. Sums of the first block
  // begin with the part of the zero point, others with `to`.
  void (*sums)(const char* cells, int64_t vectors, const char* block, bool first, int32_t zero, int32_t* to);
  // Sums to results of 8 bits of channels from `channel` on: uint8_t[vectors * kPlaces][kQuad].
  void (*bytes)(const int32_t* sums, int64_t vectors, const Int8Result& result, int64_t channel, void* to);
  // uint32_t[n][vectors][kPlaces] into `count` rows of `bytes` bytes, at most 4 * n.
  void (*rows)(const uint32_t* from, int64_t vectors, int64_t count, int64_t bytes, char* to, int64_t step);
};
// Null: another class of processor.
const BinLoopTable* BinLoops();

}  // namespace keel_cpu
