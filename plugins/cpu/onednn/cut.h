// cut.h: long contractions are cut into parts, for a run can only be stopped between oneDNN's primitives. A
// part is a box of the result: some of the batch, or of one entry of the batch some rows.
#pragma once

#include "plugins/cpu/onednn/onednn.h"

namespace keel_cpu {

// Multiplications in one part, at most (but for a single row): some 20 ms of one thread.
int64_t PartWork();

struct Box {
  Dims lo, size;
};
// The dims that may be cut, outermost first; `work` is that of all. One box: no need to cut. What is more
// than `grain` is cut at multiples of it.
std::vector<Box> Boxes(const Dims& dims, int64_t work, int64_t grain = 48);
// In multiplications: what reading and writing so many numbers of f32 takes, where they are not in the cache.
inline int64_t TouchWork(int64_t elements) { return 32 * elements; }

// The part of a layout whose leading dims are those of the boxes (or 1, which repeats), and where it begins.
dnnl::memory::desc PartOf(const dnnl::memory::desc& whole, const Box& box, size_t leading, uint64_t* offset);

}  // namespace keel_cpu
