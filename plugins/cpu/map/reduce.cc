// reduce.cc: elementwise ops and a reduction of their result as one launch, an impl of `call`. The
// elementwise program produces a few tiles at a time (tiles.h), and the reduction consumes them from L1 in
// its own order (reduce/reduce.h). So the bits equal those of two launches, and the intermediate tensor is
// never stored.
//
// Only reductions over adjacent dims are supported; with others, short rows would be produced one by one.
// Columns whose sums must be sequential (f64) are declined: they would run on one thread, and the elementwise
// program alone uses several.
#include <algorithm>
#include <cstring>

#include "plugins/cpu/map/tiles.h"
#include "plugins/cpu/reduce/reduce.h"

namespace keel_cpu {
namespace {

struct MapReduce {
  Map map;
  const ReduceOp* op;
  Dims axes;
};

// A body whose last node reduces the result of the other nodes and is the only result.
struct Reduced {
  explicit Reduced(const Node& call) : map{call.host, OperandsOf(call), &body, 0, {}} {
    body.struct_size = sizeof(body);
    if (call.host->node_body(call.node, &body) != KEEL_OK || body.n_nodes < 2 || body.n_results != 1) return;
    const keel_body_node& last = body.nodes[body.n_nodes - 1];
    if (last.n_in != 1 || last.n_out != 1 || last.out != body.results[0] || last.in[0] < call.InCount())
      return;
    const Node node{call.host, last.node};
    const keel_tensor x = node.In(0);
    op = FindReduction(call.host->node_op(last.node), TypeOf(x));
    if (op == nullptr) return;
    axes = node.List("axes");
    map.n_nodes = body.n_nodes - 1;
    map.outputs.push_back({last.in[0], x});
  }
  bool Fits() const {
    return op != nullptr && AxesAreAdjacent() && (LastReduced() || op->splits_columns) && FitsMap(map);
  }

  keel_body body = {};
  MapBody map;
  const ReduceOp* op = nullptr;
  Dims axes;

 private:
  bool IsReduced(int d) const { return std::find(axes.begin(), axes.end(), d) != axes.end(); }
  // Dims of size 1 are ignored.
  bool AxesAreAdjacent() const {
    const keel_tensor& x = map.outputs[0].type;
    int begun = 0;
    bool before = false;
    for (int d = 0; d < x.ndim; d++) {
      if (x.shape[d] == 1) continue;
      begun += IsReduced(d) && !before;
      before = IsReduced(d);
    }
    return begun == 1;
  }
  bool LastReduced() const {
    const keel_tensor& x = map.outputs[0].type;
    int d = x.ndim - 1;
    while (d > 0 && x.shape[d] == 1) d--;
    return IsReduced(d);
  }
};

// The elementwise program as the reduction's operand.
struct MapSource {
  static constexpr int64_t kBytes = 16 * 1024, kRowBytes = 8 * 1024;
  MapSource(const MapLayout& layout, MapFailure* f, int64_t item)
      : l(layout),
        failure(f),
        size(item),
        cost(l.code->cost + (l.way == MapLayout::kBits ? 2 : 0)),
        most(std::max(kReduceTile, kRowBytes / size)),
        deep(kBytes / size),
        columns(std::min(kReduceColumns, deep / kReduceDeep)) {}
  const MapLayout& l;
  MapFailure* failure;
  int64_t size, cost, most, deep, columns;

  class Part {
   public:
    explicit Part(const MapSource& m) : source_(m), ranges_(m.l, m.failure) {}
    const char* Get(int64_t first, int64_t rows, int64_t n, int64_t* stride) {
      const int64_t step = std::exchange(*stride, n);
      if (step == n || rows == 1) {
        ranges_.Run(first, rows * n, out_);
      } else {
        for (int64_t r = 0; r < rows; r++) ranges_.Run(first + r * step, n, out_ + r * n * source_.size);
      }
      return out_;
    }

   private:
    const MapSource& source_;
    MapRanges ranges_;
    alignas(64) char out_[kBytes];
  };
};

keel_rc RunMapReduce(const keel_call* call) {
  const MapReduce& r = State<MapReduce>(call);
  if (call->count == 0) return KEEL_OK;
  const MapLayout l(call, &r.map, &r.map.all);
  const ReduceShape shape = ShapeOfReduction(l.shape, l.ndim, r.axes);
  MapFailure failure;
  Reducer(call, *r.op, shape, MapSource(l, &failure, r.op->size)).Run();
  return failure.Report(l);
}

int32_t MatchMapReduce(keel_dev, const keel_host* host, const keel_node* node) {
  try {
    return Reduced(Node{host, node}).Fits();
  } catch (...) {
    return 0;  // declined: unreadable body, or a dtype without loops
  }
}
keel_rc PrepareMapReduce(const Node& node, keel_launch* launch) {
  const Reduced r(node);
  std::optional<Map> map = r.op != nullptr ? CompileMap(r.map) : std::nullopt;
  if (!map)
    Throw(KEEL_UNIMPLEMENTED, "the body of this call is not a sequence of elementwise ops and one reduction");
  return Keep(launch, MapReduce{std::move(*map), r.op, r.axes}, Guard<RunMapReduce>);
}

constexpr keel_impl kImpls[] = {{"call", 1, 1, nullptr, "map and reduction", 0, KEEL_IMPL_ANY_DIMS,
                                 MatchMapReduce, Prepare<PrepareMapReduce>, nullptr}};

}  // namespace

Impls MapReduceImpls() { return kImpls; }

}  // namespace keel_cpu
