// regions.cc: union-find over nodes with a cycle test, and the search for the nodes that the device accepts.
#include "plugins/passes/fusion/regions.h"

#include <algorithm>

namespace keel_passes {

Regions::Regions(const Edit& e) : nodes_(e.nodes()) {
  const auto n = static_cast<uint32_t>(nodes_.size());
  const NodeId most = n > 0 ? *std::max_element(nodes_.begin(), nodes_.end()) : 0;
  place_.assign(most + 1, 0);
  parent_.resize(n);
  members_.resize(n);
  producers_.resize(n);
  seen_.assign(n, 0);
  for (uint32_t p = 0; p < n; p++) {
    place_[nodes_[p]] = parent_[p] = p;
    members_[p] = {p};
    for (keel_value v : e.ins(nodes_[p]))
      if (const NodeId from = e.producer(v); from != kNone) producers_[p].push_back(place_[from]);
    std::sort(producers_[p].begin(), producers_[p].end());
    producers_[p].erase(std::unique(producers_[p].begin(), producers_[p].end()), producers_[p].end());
  }
}

uint32_t Regions::region(uint32_t place) const {
  while (parent_[place] != place) place = parent_[place];
  return place;
}

// Whether `from` depends on `to` through a third region. Regions that end before `to` cannot.
bool Regions::detours(uint32_t from, uint32_t to) {
  constexpr size_t kMostVisits = 1 << 14;  // beyond that, assume that it does
  std::vector<uint32_t> open = {from};
  search_++;
  seen_[from] = search_;
  size_t visits = 0;
  while (!open.empty()) {
    const uint32_t r = open.back();
    open.pop_back();
    for (uint32_t member : members_[r])
      for (uint32_t p : producers_[member]) {
        const uint32_t next = region(p);
        if (next == to && r != from) return true;
        if (next == to || seen_[next] == search_ || members_[next].back() < members_[to].front()) continue;
        if (++visits > kMostVisits) return true;
        seen_[next] = search_;
        open.push_back(next);
      }
  }
  return false;
}

bool Regions::fuse(uint32_t place, uint32_t other) {
  uint32_t a = region(place), b = region(other);
  if (a == b) return true;
  if (detours(a, b) || detours(b, a)) return false;
  if (members_[a].size() < members_[b].size()) std::swap(a, b);
  parent_[b] = a;
  std::vector<uint32_t> all;
  std::merge(members_[a].begin(), members_[a].end(), members_[b].begin(), members_[b].end(),
             std::back_inserter(all));
  members_[a] = std::move(all);
  members_[b].clear();
  return true;
}

std::vector<uint32_t> Regions::between(uint32_t first, uint32_t second) const {
  const uint32_t begin = members_[first].front(), end = members_[second].back() + 1;
  std::vector<bool> needs(end), needed(end);  // depends on the first region; the second depends on it
  std::vector<uint32_t> places;
  for (uint32_t p = begin; p < end; p++) {
    needs[p] = region(p) == first;
    for (uint32_t from : producers_[p]) needs[p] = needs[p] || needs[from];
  }
  for (uint32_t p = end; p-- > begin;) {
    needed[p] = needed[p] || region(p) == second;
    if (needed[p] && needs[p])
      for (uint32_t from : producers_[p]) needed[from] = true;
    if (needed[p] && needs[p] && region(p) != first && region(p) != second) places.push_back(p);
  }
  std::reverse(places.begin(), places.end());
  return places;
}

NodeId Claims::outline(const std::vector<NodeId>& nodes) {
  return e_.outline(nodes, (name_ + ("_" + std::to_string(++tried_))).c_str());
}

std::vector<NodeId> Claims::take(const std::vector<NodeId>& nodes) {
  if (nodes.size() < least_ || has_given_up()) return nodes;
  const NodeId call = outline(nodes);
  if (call == kNone) return nodes;
  if (e_.supported(call)) {
    taken_++;
    return {};
  }
  refused_++;
  return e_.inlined(call, nodes.size());
}

void Claims::claim(std::vector<NodeId> nodes) {
  while (nodes.size() >= least_ && !has_given_up()) {
    nodes = take(nodes);
    if (nodes.empty()) return;
    size_t good = 0, bad = nodes.size();  // the device accepts the first `good` nodes, not the first `bad`
    std::vector<NodeId> rest;
    while (bad - good > 1) {
      const size_t half = good + (bad - good) / 2;
      const auto middle = nodes.begin() + static_cast<ptrdiff_t>(half);
      const NodeId call = half < least_ ? kNone : outline({nodes.begin(), middle});
      const bool taken = call != kNone && e_.supported(call);
      if (call != kNone) {
        std::vector<NodeId> back = e_.inlined(call, half);
        std::copy(back.begin(), back.end(), nodes.begin());
      }
      (taken || half < least_ ? good : bad) = half;
    }
    const auto end = nodes.begin() + static_cast<ptrdiff_t>(good);
    if (good >= least_) take({nodes.begin(), end});
    nodes.erase(nodes.begin(), good >= least_ ? end : nodes.begin() + 1);
  }
}

bool Claims::whole(std::vector<NodeId>* nodes) {
  std::vector<NodeId> left = take(*nodes);
  const bool taken = left.empty();
  if (!taken) *nodes = std::move(left);
  return taken;
}

void Claims::beginning(std::vector<NodeId> nodes) {
  while (nodes.size() >= least_ && !has_given_up()) {
    nodes = take(nodes);
    if (!nodes.empty()) nodes.pop_back();
  }
}

}  // namespace keel_passes
