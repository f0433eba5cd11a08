// node_names.h: names that an imported model gave its nodes. Keel calls a node after its first result, as the
// model calls that; what the model calls the node itself an importer leaves in the metadata "onnx.nodes", a
// line NODE <tab> RESULT for each.
#ifndef KEEL_CLI_NODE_NAMES_H
#define KEEL_CLI_NODE_NAMES_H
#include <map>
#include <string>
#include <vector>

#include "cli/data/load.h"

namespace cli {

constexpr const char* kNodeNames = "onnx.nodes";

class NodeNames {
 public:
  explicit NodeNames(const Model& model);
  const std::string& result_of(const std::string& node) const;  // the name itself, if it is none of these
  const std::string& node_of(const std::string& result) const;  // "": none
  std::vector<std::string> nodes() const;
  // The rule PATTERN=DEVICE for the nodes that it means: those of the model, with the unnamed ones that an
  // importer put before them, and those of Keel.
  std::vector<std::string> place_rules(const std::string& rule, keel::Module& module,
                                       const std::string& entry) const;

 private:
  std::map<std::string, std::string> results_, nodes_;
};

bool matches(const std::string& pattern, const std::string& text);  // with * and ?

}  // namespace cli
#endif
