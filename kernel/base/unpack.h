// unpack.h: texts that are part of the library, which tools/cmake/embed.py packs to a third of their size.
//
// Steps follow each other; each begins with a byte c. c < 128: the next c + 1 bytes are text. Otherwise c -
// 125 bytes of the text so far are repeated, beginning d bytes before its end; d follows in groups of 7 bits,
// the lowest first, with 128 added to all but the last. A copy may be longer than d: then it repeats itself.
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
  std::span<const unsigned char> steps;  // of all texts, one after another
};

// The texts, one after another. The steps are trusted: they come from the build.
std::string Unpack(const PackedTexts& texts);

}  // namespace keel
