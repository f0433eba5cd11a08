// node.h: reading a node in match and prepare, and row-major strides.
#ifndef KEEL_PLUGIN_NODE_H
#define KEEL_PLUGIN_NODE_H
#include <keel/keel_host.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

namespace keel::plugin {

// The first failure is kept in `rc`; later reads return nothing. An omitted operand has dtype.bits 0.
class Node {
 public:
  Node(const keel_host* host, const keel_node* node) : host(host), node(node) {}
  keel_tensor In(uint32_t i) { return Tensor(host->node_in, i); }
  keel_tensor Out(uint32_t i) { return Tensor(host->node_out, i); }
  int64_t Int(const char* name) { return Attribute(name).i; }
  double Float(const char* name) { return Attribute(name).f; }
  std::string_view Text(const char* name) {
    const keel_attr a = Attribute(name);
    return {static_cast<const char*>(a.p), a.count};
  }
  std::span<const int64_t> List(const char* name) {
    const keel_attr a = Attribute(name);
    return {static_cast<const int64_t*>(a.p), a.count};
  }

  const keel_host* host;
  const keel_node* node;
  keel_rc rc = KEEL_OK;

 private:
  using Read = keel_rc (*)(const keel_node*, uint32_t, keel_tensor*);
  keel_tensor Tensor(Read read, uint32_t i) {
    keel_tensor t{};
    const keel_rc got = rc ? rc : read(node, i, &t);
    if (got != KEEL_NOT_FOUND) rc = got;
    return t;
  }
  keel_attr Attribute(const char* name) {
    keel_attr a{};
    if (!rc) rc = host->node_attr(node, name, &a);
    return a;
  }
};

// Whether lack(tensor) gives no reason against any operand and result; omitted operands are left out.
template <class Lack>
bool takes_all(Node& node, Lack&& lack) {
  uint32_t n_in = 0, n_out = 0;
  node.host->node_arity(node.node, &n_in, &n_out);
  for (uint32_t i = 0; i < n_in + n_out; i++) {
    const keel_tensor t = i < n_in ? node.In(i) : node.Out(i - n_in);
    if (t.dtype.bits && lack(t)) return false;
  }
  return !node.rc;
}

inline int64_t product(const int64_t* begin, const int64_t* end) {
  int64_t all = 1;
  for (; begin != end; begin++) all *= *begin;
  return all;
}
// A dim counted from the end: 1 is the last.
template <typename T = int64_t>
T dim_from_end(const keel_tensor& t, int from_end) {
  return static_cast<T>(t.shape[t.ndim - from_end]);
}
// Strides of a row-major tensor, in elements.
inline void row_major(const keel_tensor& t, int64_t* strides) {
  int64_t step = 1;
  for (int d = t.ndim - 1; d >= 0; step *= t.shape[d--]) strides[d] = step;
}
// The same in the dims of `over`, to which t is broadcast: 0 where it has one element or no dim.
template <typename T>
void broadcast_strides(const keel_tensor& t, const keel_tensor& over, T* strides) {
  int64_t of[KEEL_MAX_RANK] = {};
  row_major(t, of);
  std::fill_n(strides, over.ndim, 0);
  for (int d = 0; d < t.ndim; d++)
    strides[d + over.ndim - t.ndim] = t.shape[d] == 1 ? 0 : static_cast<T>(of[d]);
}

}  // namespace keel::plugin
#endif
