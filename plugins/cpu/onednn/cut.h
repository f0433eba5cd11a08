// cut.h: splits long contractions into parts, as a run can only be cancelled between oneDNN primitives. A
// part is a box of the result: a range of the batch, or a range of rows of one batch entry.
#pragma once

#include "plugins/cpu/onednn/onednn.h"

namespace keel_cpu {

// Upper limit of multiplications in one part (unless a single row has more): about 20 ms on one thread.
int64_t PartWork();

struct Box {
  Dims lo, size;
};
// Splits `dims`, outermost first; `work` is that of all dims together. Ranges longer than `grain` are cut at
// multiples of it. A single box means that no cut is needed.
std::vector<Box> Boxes(const Dims& dims, int64_t work, int64_t grain = 48);
// The cost, in multiplications, of reading or writing so many f32 elements from memory.
inline int64_t TouchWork(int64_t elements) { return 32 * elements; }

// The part of `whole` that the box covers, and its offset. The first `leading` dims are those of the box, or
// 1 (broadcast).
dnnl::memory::desc PartOf(const dnnl::memory::desc& whole, const Box& box, size_t leading, uint64_t* offset);

}  // namespace keel_cpu
