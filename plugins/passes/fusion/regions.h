// regions.h: groups of nodes that may become one call, and offering them to the device.
//
// Regions starts with one region per node and fuses two of them unless a path would leave the result and
// return (it could not run as one node). Claims outlines a region and offers it to the device.
#pragma once
#include "plugins/passes/edit/edit.h"

namespace keel_passes {

class Regions {
 public:
  explicit Regions(const Edit& e);
  size_t size() const { return nodes_.size(); }  // positions in program order
  NodeId node(size_t place) const { return nodes_[place]; }
  const std::vector<uint32_t>& producers(size_t place) const { return producers_[place]; }
  uint32_t place_of(NodeId n) const { return place_[n]; }
  uint32_t region(uint32_t place) const;  // its region's number, a position
  const std::vector<uint32_t>& members(uint32_t region) const { return members_[region]; }  // sorted
  bool fuse(uint32_t place, uint32_t other);  // true: both are in one region now
  // Positions outside two regions on paths from the first to the second, in program order.
  std::vector<uint32_t> between(uint32_t first, uint32_t second) const;

 private:
  bool detours(uint32_t from, uint32_t to);
  std::vector<NodeId> nodes_;
  std::vector<uint32_t> place_;                   // by node
  std::vector<std::vector<uint32_t>> producers_;  // positions, deduplicated
  std::vector<uint32_t> parent_;
  std::vector<std::vector<uint32_t>> members_;
  std::vector<uint32_t> seen_;  // the last search that reached a region
  uint32_t search_ = 0;
};

class Claims {
 public:
  Claims(Edit& e, const char* name, size_t least) : e_(e), name_(name), least_(least) {}
  // Nodes in program order, such that each prefix may run as one. Outlines all, or the longest prefix that
  // the device accepts, and continues with the rest (without its first node if nothing is accepted); at least
  // `least` nodes each.
  void claim(std::vector<NodeId> nodes);
  // All or none; returns whether the device accepted. If not, *nodes are the nodes as they are now.
  bool whole(std::vector<NodeId>* nodes);
  // The longest accepted prefix only.
  void beginning(std::vector<NodeId> nodes);

 private:
  std::vector<NodeId> take(
      const std::vector<NodeId>& nodes);  // empty: accepted; else the nodes as they are now
  NodeId outline(const std::vector<NodeId>& nodes);
  bool has_given_up() const { return taken_ == 0 && refused_ > kPatience; }
  // after so many refusals without an acceptance, the device gets no further offers
  static constexpr int kPatience = 48;
  Edit& e_;
  std::string name_;
  size_t least_;
  int tried_ = 0, taken_ = 0, refused_ = 0;
};

}  // namespace keel_passes
