// window.h: maps window cells to image cells, for convolutions and pools.
#ifndef KEEL_REFERENCE_WINDOW_H
#define KEEL_REFERENCE_WINDOW_H
#include "call.h"

namespace reference {

struct Window {
  Dims stride, dil, lo;
  void read(Attributes& a) {
    stride = a.list("stride");
    dil = a.list("dil");
    lo = a.list("lo");
  }
  // The image coordinate along dim d of window cell k at result position s.
  int64_t at(int32_t d, const Dims& s, const Dims& k) const {
    return s[d] * stride[d] + k[d] * dil[d] - lo[d];
  }

  // The offset of that cell in an image of these dims; -1 if outside.
  int64_t offset(const Dims& s, const Dims& k, const Dims& image) const {
    int64_t offset = 0;
    for (int32_t d = 0; d < image.n; ++d) {
      const int64_t z = at(d, s, k);
      if (z < 0 || z >= image[d]) return -1;
      offset = offset * image[d] + z;
    }
    return offset;
  }
  // The inverse: the offset, among result positions of these dims, of the position whose window cell k is
  // image coordinate z; -1 if there is none.
  int64_t source(const Dims& z, const Dims& k, const Dims& places) const {
    int64_t offset = 0;
    for (int32_t d = 0; d < places.n; ++d) {
      const int64_t t = z[d] + lo[d] - k[d] * dil[d];
      if (t < 0 || t % stride[d] != 0 || t / stride[d] >= places[d]) return -1;
      offset = offset * places[d] + t / stride[d];
    }
    return offset;
  }
};

// The image dims of a tensor [n, c, image dims].
inline Dims image_of(const keel_tensor& t) { return part(dims_of(t), 2, t.ndim); }

}  // namespace reference
#endif
