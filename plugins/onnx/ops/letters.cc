// letters.cc: see letters.h.
#include "plugins/onnx/ops/letters.h"

#include <locale.h>
#include <clocale>
#include <cwctype>

#include "plugins/onnx/import/failure.h"

namespace onnx_import {
namespace {

size_t bytes_of(CodePoint c) { return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4; }

std::vector<CodePoint> mapping(Case to) {
  const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (!locale) refuse(KEEL_UNIMPLEMENTED, "letters of either case need the locale C.UTF-8 of the C library");
  std::vector<CodePoint> all(kCased);
  for (CodePoint c = 0; c < kCased; c++) {
    const auto w = static_cast<wint_t>(c);
    const auto made =
        static_cast<CodePoint>(to == Case::kLower ? towlower_l(w, locale) : towupper_l(w, locale));
    // converters reserve half as many bytes again
    all[c] = made > 0 && made < kCased && bytes_of(made) * 2 <= bytes_of(c) * 3 ? made : c;
  }
  freelocale(locale);
  return all;
}

}  // namespace

void append_utf8(std::string& to, CodePoint c) {
  const size_t n = bytes_of(c);
  if (n == 1) return to.push_back(static_cast<char>(c));
  constexpr uint32_t kLead[] = {0, 0, 0xc0, 0xe0, 0xf0};
  to.push_back(static_cast<char>(kLead[n] | c >> (6 * (n - 1))));
  for (size_t k = n - 1; k-- > 0;) to.push_back(static_cast<char>(0x80 | (c >> (6 * k) & 0x3f)));
}

std::vector<CodePoint> code_points(Text s) {
  std::vector<CodePoint> all;
  for (size_t i = 0; i < s.size();) {
    const auto lead = static_cast<uint8_t>(s[i++]);
    CodePoint c = lead < 0x80 ? lead : lead < 0xe0 ? lead & 0x1f : lead < 0xf0 ? lead & 0x0f : lead & 0x07;
    for (; i < s.size() && (s[i] & 0xc0) == 0x80; i++) c = c << 6 | (static_cast<uint8_t>(s[i]) & 0x3f);
    all.push_back(c);
  }
  return all;
}

const std::vector<CodePoint>& case_mapping(Case to) {
  static const std::vector<CodePoint> lower = mapping(Case::kLower), upper = mapping(Case::kUpper);
  return to == Case::kLower ? lower : upper;
}

std::string in_case(Text s, Case to) {
  std::string made;
  for (CodePoint c : code_points(s)) append_utf8(made, c < kCased ? case_mapping(to)[c] : c);
  return made;
}

}  // namespace onnx_import
