// regions.h: the model's nodes in each fused launch.
#ifndef KEEL_CLI_REGIONS_H
#define KEEL_CLI_REGIONS_H
#include <map>
#include <string>
#include <vector>

#include "cli/data/load.h"

namespace cli {

struct RegionNode {
  std::string name, op;  // by its name, or the name of its first named consumer
  double flops = 0;
};
struct Region {
  std::vector<RegionNode> nodes;
  double flops = 0;  // in total; NaN: unknown size
};
using Regions = std::map<std::string, Region>;  // by the name of the launch

// For the graph after the passes for this device. `dims`: the sizes of symbols.
Regions find_regions(Model& model, const Entry& entry, const std::string& device,
                     const keel::Options& options, const Dims& dims);
std::string ops_in(const Region& region);  // "conv 12, add 20, relu 3"

}  // namespace cli
#endif
