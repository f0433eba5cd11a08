// node_names.h: node names of an imported model. Keel names a node after its first result in the model; the
// importer stores the model's node names in the metadata "onnx.nodes", one line NODE <tab> RESULT each.
#ifndef KEEL_CLI_NODE_NAMES_H
#define KEEL_CLI_NODE_NAMES_H
#include <map>
#include <string>
#include <vector>

#include "cli/data/model.h"

namespace cli {

constexpr const char* kNodeNames = "onnx.nodes";

class NodeNames {
 public:
  explicit NodeNames(const Model& model);
  const std::string& result_of(const std::string& node) const;  // else the name itself
  const std::string& node_of(const std::string& result) const;  // "": none
  std::vector<std::string> nodes() const;
  // The rule PATTERN=DEVICE for all matching nodes: model nodes, including unnamed nodes that the importer
  // inserted before them, and Keel nodes.
  std::vector<std::string> place_rules(const std::string& rule, keel::Module& module,
                                       const std::string& entry) const;

 private:
  std::map<std::string, std::string> results_, nodes_;
};

bool matches(const std::string& pattern, const std::string& text);  // with * and ?

}  // namespace cli
#endif
