// cpu_impls.h: for tests of the CPU plugin's impls: its plugin, the oracle, shapes, one comparison by one
// thread and by two.
#pragma once

#include "bare_values.h"

namespace cpu_impls {

using bare::NodeBuilder;
using bare::Plugin;
using bare::Rng;
using Dims = std::vector<int64_t>;

inline const Plugin& Cpu() {
  static const Plugin plugin("cpu");
  return plugin;
}
inline const Plugin& Reference() {
  static const Plugin plugin("reference");
  return plugin;
}

inline const Dims kShapes[] = {{},      {1},    {0},    {7},    {16},      {33},   {1000},
                               {70001}, {3, 5}, {0, 3}, {3, 0}, {2, 3, 4}, {1, 1}, {129, 65}};

struct Bounds {
  double ulps = 0, floor = 0;
};

inline void Check(const keel_node& node, const std::vector<std::string>& operands,
                  const std::vector<std::string>& want, Bounds b) {
  for (bare::Options o : {bare::Options{1, true}, bare::Options{2, false}}) {
    const std::vector<std::string> got = bare::Run(Cpu(), node, operands, o);
    ASSERT_EQ(got.size(), want.size());
    for (size_t r = 0; r < got.size(); r++) bare::ExpectClose(got[r], want[r], node.out[r], b.ulps, b.floor);
  }
}
inline void Compare(const keel_node& node, const std::vector<std::string>& operands, Bounds b = {}) {
  SCOPED_TRACE(testing::Message() << node.op << " dtype " << node.in[0].dtype << " dims "
                                  << testing::PrintToString(node.in[0].dims) << " to "
                                  << testing::PrintToString(node.out[0].dims));
  Check(node, operands, bare::Run(Reference(), node, operands), b);
}

inline Dims Broadcast(Dims a, const Dims& b) {
  if (a.size() < b.size()) return Broadcast(b, a);
  for (size_t i = 0; i < b.size(); i++)
    if (int64_t& d = a[a.size() - 1 - i]; d == 1) d = b[b.size() - 1 - i];
  return a;
}

template <class T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace cpu_impls
