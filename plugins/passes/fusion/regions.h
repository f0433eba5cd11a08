// regions.h: groups of nodes that may become one call, and giving them to the device.
//
// How to read it: Regions starts with every node alone and fuses two regions where no path would leave
// the result and come back (then it could not run as one). Claims outlines a region and asks the device.
#pragma once
#include "plugins/passes/edit/edit.h"

namespace keel_passes {

class Regions {
 public:
  explicit Regions(const Edit& e);
  size_t size() const { return nodes_.size(); }  // places in program order
  NodeId node(size_t place) const { return nodes_[place]; }
  const std::vector<uint32_t>& producers(size_t place) const { return producers_[place]; }
  uint32_t place_of(NodeId n) const { return place_[n]; }
  uint32_t region(uint32_t place) const;  // the number of its region: a place
  const std::vector<uint32_t>& members(uint32_t region) const { return members_[region]; }  // sorted
  bool fuse(uint32_t place, uint32_t other);  // true: they are one region now
  // Places outside of two regions by whose way the second needs the first, in program order.
  std::vector<uint32_t> between(uint32_t first, uint32_t second) const;

 private:
  bool detours(uint32_t from, uint32_t to);
  std::vector<NodeId> nodes_;
  std::vector<uint32_t> place_;                   // by node
  std::vector<std::vector<uint32_t>> producers_;  // places, each once
  std::vector<uint32_t> parent_;
  std::vector<std::vector<uint32_t>> members_;
  std::vector<uint32_t> seen_;  // the last search that met a region
  uint32_t search_ = 0;
};

class Claims {
 public:
  Claims(Edit& e, const char* name, size_t least) : e_(e), name_(name), least_(least) {}
  // Nodes in program order, of which each beginning may run as one. Outlines all, or the longest beginning
  // that the device takes, and so on with the others, without the first of them where it takes none; at least
  // `least` nodes each.
  void claim(std::vector<NodeId> nodes);
  // All or none: whether the device took them. If not, they are the nodes as they are now.
  bool whole(std::vector<NodeId>* nodes);
  // Only the longest beginning.
  void beginning(std::vector<NodeId> nodes);

 private:
  std::vector<NodeId> take(
      const std::vector<NodeId>& nodes);  // empty: taken; else the nodes, as they are now
  NodeId outline(const std::vector<NodeId>& nodes);
  bool hopeless() const { return taken_ == 0 && refused_ > kPatience; }
  static constexpr int kPatience = 48;  // a device that refuses that many and takes none takes none
  Edit& e_;
  std::string name_;
  size_t least_;
  int tried_ = 0, taken_ = 0, refused_ = 0;
};

}  // namespace keel_passes
