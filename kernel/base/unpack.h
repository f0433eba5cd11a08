// unpack.h: texts that are part of the library, which tools/cmake/embed.py compresses to a quarter of their
// size.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace keel {

struct PackedFile {
  std::string_view name;
  size_t size;  // bytes of its text
};
struct PackedTexts {
  std::span<const PackedFile> files;
  std::span<const unsigned char> bytes;  // of all texts, one after another, in zlib's format
};

// The texts, one after another. The bytes are trusted: they come from the build.
std::string Unpack(const PackedTexts& texts);

}  // namespace keel
