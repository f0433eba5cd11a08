// cse.cc: merges nodes with the same op and operands into the first of them.
//
// Constants of equal type and bytes are equal operands. If the host refuses a merge (for example because a
// variable is written between two reads), later nodes may be merged with the second node. Each node is
// visited once.
#include <cstring>
#include <functional>
#include <string_view>
#include <unordered_map>

#include "plugins/passes/passes.h"

namespace keel_passes {
namespace {

using Buckets = std::unordered_map<uint64_t, std::vector<uint32_t>>;
constexpr size_t kMostTried = 8;  // candidates tried per bucket; further nodes count as different

uint64_t mixed(uint64_t hash, uint64_t more) {
  hash = (hash ^ more) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 32;
}

// Hashes only both ends of large constants: equal weights are rare, and reading all would page in mapped
// files.
uint64_t hash_of(const Type& type, size_t bytes) {
  constexpr size_t kEnd = 256;
  const std::string_view all(static_cast<const char*>(type.data), bytes);
  uint64_t hash = mixed(type.dtype, bytes);
  for (keel_dim d : type.dims) hash = mixed(hash, static_cast<uint64_t>(d));
  hash = mixed(hash, std::hash<std::string_view>()(all.substr(0, kEnd)));
  return mixed(hash, std::hash<std::string_view>()(all.substr(bytes - std::min(bytes, kEnd))));
}

class Merger {
 public:
  explicit Merger(Edit& e) : e_(e) {}

  void node(NodeId n) {
    uint64_t hash = e_.hash(n);
    if (hash == 0) return;
    Ids in = e_.ins(n);
    for (keel_value& v : in) hash = mixed(hash, v = representative(v));
    std::vector<uint32_t>& twins = nodes_[hash];
    for (size_t i = 0; i < twins.size() && i < kMostTried; i++) {
      if (operands_[twins[i]] != in || !e_.same(twins[i], n)) continue;
      if (!merged(n, twins[i])) operands_[twins[i] = n] = std::move(in);
      return;
    }
    twins.push_back(n);
    operands_[n] = std::move(in);
  }

 private:
  bool merged(NodeId n, NodeId first) {
    const Ids out = e_.outs(n), wanted = e_.outs(first);
    bool all = true;
    for (size_t i = 0; i < out.size(); i++)
      if (e_.alive(n)) all = e_.same_type(out[i], wanted[i]) && e_.redirect(out[i], wanted[i]) && all;
    return all;
  }

  // The first equal constant, or the value itself.
  keel_value representative(keel_value v) {
    if (v == KEEL_NO_VALUE || e_.producer(v) != kNone) return v;
    const auto [known, added] = constants_.emplace(v, v);
    if (!added) return known->second;
    const Type type = e_.type(v);
    if (type.data == nullptr || type.rank() == 0) return v;  // the host deduplicates scalars
    const size_t bytes = keel_bytes(type.dtype, type.count());
    std::vector<uint32_t>& alike = bytes_[hash_of(type, bytes)];
    for (size_t i = 0; i < alike.size() && i < kMostTried; i++) {
      const Type other = e_.type(alike[i]);
      if (other.dtype == type.dtype && other.dims == type.dims &&
          std::memcmp(other.data, type.data, bytes) == 0)
        return known->second = alike[i];
    }
    alike.push_back(v);
    return v;
  }

  Edit& e_;
  Buckets nodes_, bytes_;
  std::unordered_map<keel_value, keel_value> constants_;
  std::unordered_map<NodeId, Ids> operands_;
};

}  // namespace

void cse(Edit& e) {
  Merger merger(e);
  for (NodeId n : e.nodes())
    if (e.alive(n)) merger.node(n);
}

}  // namespace keel_passes
