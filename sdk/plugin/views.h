// views.h: ops that read the elements of their operand in another order, some of them, or repeatedly: the
// operand by strides in the dims of the result.
#ifndef KEEL_PLUGIN_VIEWS_H
#define KEEL_PLUGIN_VIEWS_H
#include <keel/keel_plugin.h>

#include <vector>

#include "node.h"

namespace keel::plugin {

struct View {  // in elements
  int64_t start = 0;
  int64_t strides[KEEL_MAX_RANK] = {};
};

inline View repeated(Node&) { return {}; }  // of one element
inline View whole(Node& node) {
  View view;
  row_major(node.Out(0), view.strides);
  return view;
}
inline View transposed(Node& node) {
  int64_t of_x[KEEL_MAX_RANK];
  row_major(node.In(0), of_x);
  View view;
  int64_t* stride = view.strides;
  for (int64_t d : node.List("perm")) *stride++ = of_x[d];
  return view;
}
inline View broadcast(Node& node) {
  View view;
  broadcast_strides(node.In(0), node.Out(0), view.strides);
  return view;
}
inline View sliced(Node& node) {
  const auto start = node.List("start"), step = node.List("step");
  View view;
  row_major(node.In(0), view.strides);
  for (size_t i = 0; i < start.size(); i++) {
    view.start += start[i] * view.strides[i];
    view.strides[i] *= step[i];
  }
  return view;
}
inline View reversed(Node& node) {
  const keel_tensor x = node.In(0);
  View view;
  row_major(x, view.strides);
  for (int64_t axis : node.List("axes")) {
    view.start += (x.shape[axis] - 1) * view.strides[axis];
    view.strides[axis] = -view.strides[axis];
  }
  return view;
}

/// An impl of each op that copies by a view, made by row.operator()<VIEW>(op, flags).
template <class Row>
std::vector<keel_impl> view_impls(const Row& row) {
  return {row.template operator()<transposed>("transpose", 0u),
          row.template operator()<broadcast>("broadcast_to", 0u),
          row.template operator()<sliced>("slice", 0u),
          row.template operator()<reversed>("reverse", 0u),
          row.template operator()<repeated>("fill", 0u),
          row.template operator()<whole>("identity", KEEL_IMPL_INPLACE),
          row.template operator()<whole>("stop_gradient", KEEL_IMPL_INPLACE),
          row.template operator()<whole>("reshape", KEEL_IMPL_INPLACE)};
}

}  // namespace keel::plugin
#endif
