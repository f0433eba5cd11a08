#include "kernel/base/unpack.h"

#include <zlib.h>

#include <new>

namespace keel {

std::string Unpack(const PackedTexts& texts) {
  uLongf size = 0;
  for (const PackedFile& file : texts.files) size += file.size;
  std::string out(size, '\0');
  // Of bytes from the build only memory can be missing.
  if (uncompress(reinterpret_cast<Bytef*>(out.data()), &size, texts.bytes.data(), texts.bytes.size()) != Z_OK)
    throw std::bad_alloc();
  return out;
}

}  // namespace keel
