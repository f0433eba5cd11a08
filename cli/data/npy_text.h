// npy_text.h: NumPy's strings, dtypes S and U of .npy files, as UTF-8 bytes u8[dims.., width] padded with
// zeros.
#ifndef KEEL_CLI_NPY_TEXT_H
#define KEEL_CLI_NPY_TEXT_H
#include <optional>
#include <string>
#include <string_view>

namespace cli {

struct TextDtype {
  bool code_points, big_endian;  // of 4 bytes each; else bytes
  size_t length;                 // of each string, in code points or bytes
  size_t bytes() const { return length * (code_points ? 4 : 1); }
};
// "|S12", "<U3"; none: another dtype.
std::optional<TextDtype> text_dtype(std::string_view descr);

struct TextRows {
  std::string bytes;
  size_t width;
};
// Refuses bytes that are not UTF-8, code points that are none and a zero within a string.
TextRows text_rows(std::string_view data, const TextDtype& dtype, const std::string& where);

}  // namespace cli
#endif
