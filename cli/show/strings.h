// strings.h: results that hold strings: UTF-8 bytes u8[dims.., width], padded with zeros.
#ifndef KEEL_CLI_STRINGS_H
#define KEEL_CLI_STRINGS_H
#include <keel/session.hpp>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "cli/data/load.h"

namespace cli {

// The results that the importer marked, in the metadata "onnx.string_outputs".
std::set<std::string> string_results(const Model& model);
// ["cat", "dog"]; arrays of more strings than `whole` show the first and last three along each dim.
std::string strings_text(const keel::Array& array, int64_t whole = 1000);
// {"dtype": "string", "shape": [2], "data": ["cat", "dog"]}
nlohmann::ordered_json strings_json(const keel::Array& array);

}  // namespace cli
#endif
