// regions.h: what is in the launches that a device makes of many nodes, by the model's own nodes.
#ifndef KEEL_CLI_REGIONS_H
#define KEEL_CLI_REGIONS_H
#include <map>
#include <string>
#include <vector>

#include "cli/data/load.h"

namespace cli {

struct RegionNode {
  std::string name, op;  // by its name, or that of the node that reads it and has one
  double flops = 0;
};
struct Region {
  std::vector<RegionNode> nodes;
  double flops = 0;  // of all; NaN: a size is not known
};
using Regions = std::map<std::string, Region>;  // by the name of the launch

// Of the graph as passes leave it for this device. `dims`: the sizes of symbols.
Regions find_regions(Model& model, const Entry& entry, const std::string& device,
                     const keel::Options& options, const Dims& dims);
std::string ops_in(const Region& region);  // "conv 12, add 20, relu 3"

}  // namespace cli
#endif
