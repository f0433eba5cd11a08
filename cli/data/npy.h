// npy.h: reads and writes NumPy's array files, .npy and .npz (a zip of .npy files).
#ifndef KEEL_CLI_NPY_H
#define KEEL_CLI_NPY_H
#include <keel/session.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cli {

bool is_npy(std::string_view bytes);
bool is_zip(std::string_view bytes);

// `where` names the source in messages. NumPy has no bf16: two-byte void ('V2', as ml_dtypes writes it) is
// read as bf16, and with `as` = KEEL_BF16 so is u2. Big-endian data is converted, Fortran order too.
// Strings become bytes (npy_text.h).
keel::Array read_npy(const keel::Context& context, std::string_view bytes, const std::string& where,
                     keel_dt as = 0);
std::string write_npy(const keel::Array& array);

using NamedArrays = std::vector<std::pair<std::string, keel::Array>>;
// `only`: reads a single member.
NamedArrays read_npz(const keel::Context& context, std::string_view bytes, const std::string& where,
                     const std::string* only = nullptr);
std::string write_npz(const NamedArrays& arrays);

}  // namespace cli
#endif
