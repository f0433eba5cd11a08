#include "kernel/base/unpack.h"

#include <algorithm>
#include <cstddef>

namespace keel {

std::string Unpack(const PackedTexts& texts) {
  size_t size = 0;
  for (const PackedFile& file : texts.files) size += file.size;
  std::string out(size, '\0');
  char* to = out.data();
  for (const unsigned char *at = texts.steps.data(), *end = at + texts.steps.size(); at < end;) {
    unsigned step = *at++;
    if (step < 128) {
      to = std::copy_n(at, step + 1, to);
      at += step + 1;
      continue;
    }
    size_t distance = *at & 127;
    for (int shift = 7; *at++ & 128; shift += 7) distance |= size_t{*at & 127u} << shift;
    for (const char* stop = to + step - 125; to < stop; to++) *to = to[-static_cast<ptrdiff_t>(distance)];
  }
  return out;
}

}  // namespace keel
