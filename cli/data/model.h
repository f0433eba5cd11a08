// model.h: an opened file: module, entries, test cases and sizes.
#ifndef KEEL_CLI_MODEL_H
#define KEEL_CLI_MODEL_H
#include <keel/session.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/data/spec.h"

namespace cli {

using Json = nlohmann::ordered_json;

struct Port {  // a parameter or a result
  std::string name;
  Type type;
};
struct Entry {
  std::string name;
  std::vector<Port> params, results;
};
struct StoredCase {
  std::string name, entry;
  std::optional<double> rtol, atol;
};
// nullopt: an open size
using Shape = std::vector<std::optional<int64_t>>;
struct Sizes {  // --dim, --shape and --length
  Dims dims;
  std::map<std::string, Shape> shapes;         // by input
  std::map<std::string, std::string> lengths;  // by input
  std::optional<std::string> cut;              // --cut: the part that is imported
};
struct Model {
  keel::Module module;
  Json info;  // the report "info" of the module
  std::vector<Entry> entries;
  std::vector<StoredCase> cases;
  std::vector<std::string> fixed;  // inputs that the import turned into constants
  Sizes sizes;                     // sizes that no import has consumed
};

}  // namespace cli
#endif
