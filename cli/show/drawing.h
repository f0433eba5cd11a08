// drawing.h: parses a module's text form as far as needed, and draws it for Graphviz.
#ifndef KEEL_CLI_DRAWING_H
#define KEEL_CLI_DRAWING_H
#include <string>
#include <string_view>
#include <vector>

namespace cli {

struct DrawnNode {
  std::vector<std::string> out, in;  // names or literals
  std::string op, attrs, type;
};
struct DrawnGraph {
  std::string name;
  std::vector<std::pair<std::string, std::string>> params;  // name, type
  std::vector<DrawnNode> nodes;
  std::vector<std::string> results;
};

std::vector<DrawnGraph> read_graphs(std::string_view text);
std::string to_dot(const std::vector<DrawnGraph>& graphs);
std::string to_svg(const std::string& dot);  // with Graphviz's program `dot`

}  // namespace cli
#endif
