// cut.cc: see cut.h.
#include "plugins/cpu/onednn/cut.h"

#include <algorithm>

#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {
namespace {

void Split(const Box& box, size_t d, int64_t work, int64_t grain, std::vector<Box>* out) {
  if (work <= PartWork() || d == box.size.size()) return out->push_back(box);
  // Rounds the step down: a part slightly above the limit would be cut along the next dim too.
  const int64_t n = box.size[d], parts = (work + PartWork() - 1) / PartWork();
  int64_t step = std::max<int64_t>(1, n / parts);
  if (step > grain) step = step / grain * grain;
  for (int64_t i = 0; i < n; i += step) {
    Box part = box;
    part.lo[d] = i;
    part.size[d] = std::min(step, n - i);
    Split(part, d + 1, work / n * part.size[d], grain, out);
  }
}

}  // namespace

int64_t PartWork() {
  constexpr int64_t kWork[] = {int64_t{1} << 28, int64_t{3} << 28, int64_t{1} << 31};
  return kWork[SimdLevel()];
}

std::vector<Box> Boxes(const Dims& dims, int64_t work, int64_t grain) {
  std::vector<Box> boxes;
  Split({Dims(dims.size()), dims}, 0, work, grain, &boxes);
  return boxes;
}

dnnl::memory::desc PartOf(const dnnl::memory::desc& whole, const Box& box, size_t leading, uint64_t* offset) {
  Dims dims = whole.get_dims();
  const Dims strides = whole.get_strides();
  int64_t at = 0;
  for (size_t d = 0; d < leading; d++) {
    if (dims[d] == 1) continue;
    int64_t block = 1;  // elements in one block; strides count blocks
    for (int i = 0; i < whole.get_inner_nblks(); i++)
      if (whole.get_inner_idxs()[static_cast<size_t>(i)] == static_cast<int64_t>(d))
        block *= whole.get_inner_blks()[static_cast<size_t>(i)];
    if (box.lo[d] % block != 0) throw dnnl::error(dnnl_unimplemented, "a part begins within a block");
    dims[d] = box.size[d];
    at += box.lo[d] / block * strides[d];
  }
  *offset = static_cast<uint64_t>(at) * dnnl::memory::data_type_size(whole.get_data_type());
  if (whole.get_inner_nblks() > 0) return whole.submemory_desc(dims, Dims(dims.size()));
  // The stride of a dim of size 1 is arbitrary, but oneDNN compares it with the dense stride.
  Dims steps = strides;
  for (size_t d = 0; d < leading; d++) {
    if (dims[d] != 1) continue;
    steps[d] = 1;
    for (size_t i = d + 1; i < dims.size(); i++) steps[d] = std::max(steps[d], dims[i] * strides[i]);
  }
  return Strided(dims, steps, whole.get_data_type());
}

}  // namespace keel_cpu
