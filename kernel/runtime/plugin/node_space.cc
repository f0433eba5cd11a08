// node_space.cc: members of the host table for code generators: the hash of a node, the iteration space of
// tensors that are broadcast to each other, and memory for the state of a launch.
#include <algorithm>
#include <bit>
#include <span>

#include "kernel/runtime/plugin/host.h"

namespace keel {
namespace {

// FNV-1a over 64-bit words, mixed at the end (MurmurHash3's finalizer): equal in every process.
class StableHash {
 public:
  void Add(uint64_t word) { state_ = (state_ ^ word) * 0x100000001b3u; }
  void Add(std::string_view text) {
    Add(text.size());
    for (char c : text) Add(static_cast<unsigned char>(c));
  }
  template <typename T>
  void AddList(std::span<const T> list) {
    Add(list.size());
    for (T entry : list) Add(std::bit_cast<uint64_t>(entry));
  }
  uint64_t Get() const {
    uint64_t h = state_;
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
  }

 private:
  uint64_t state_ = 0xcbf29ce484222325u;
};

class NodeHash {
 public:
  explicit NodeHash(bool dims) : dims_(dims) {}

  // data: the operands' data count, too.
  void AddNode(const keel_node& node, bool data) {
    hash_.Add(OpName(*node.op));
    hash_.Add(OpVersion(*node.op));
    hash_.Add(node.exact_convolution);
    for (const auto* sides : {&node.in, &node.out}) {
      hash_.Add(sides->size());
      for (const keel_node::Side& side : *sides) AddSide(side, data);
    }
    for (const Attr& attr : node.attrs) AddAttr(attr);
    if (node.body) AddBody(*node.body);
    for (const auto& graph : node.graphs) AddBody(*graph);
  }
  uint64_t Get() const { return hash_.Get(); }

 private:
  void AddSide(const keel_node::Side& side, bool data) {
    hash_.Add(static_cast<uint64_t>(side.dtype));
    hash_.Add(side.dims.size());
    int64_t count = 1;
    for (int64_t d : side.dims) {
      if (dims_) hash_.Add(static_cast<uint64_t>(d));
      count *= d;
    }
    hash_.Add(side.data != nullptr);
    if (data && side.data)
      hash_.Add(std::string_view(static_cast<const char*>(side.data), BytesOf(side.dtype, count)));
  }
  // Numbers of graphs differ between modules; the graphs themselves count.
  void AddAttr(const Attr& attr) {
    hash_.Add(attr.name);
    hash_.Add(attr.value.kind);
    if (attr.value.kind == KEEL_ATTR_GRAPH || attr.value.kind == KEEL_ATTR_GRAPHS) return;
    hash_.Add(static_cast<uint64_t>(attr.value.i));
    hash_.Add(std::bit_cast<uint64_t>(attr.value.f));
    hash_.Add(attr.value.s);
    hash_.AddList(std::span<const int64_t>(attr.value.list));
    hash_.AddList(std::span<const double>(attr.value.floats));
  }
  void AddBody(const BodyView& body) {
    for (size_t i = 0; i < body.nodes.size(); i++) {
      AddNode(body.nodes[i], true);
      for (uint32_t v : body.in[i]) hash_.Add(v);
    }
    for (uint32_t v : body.results) hash_.Add(v);
  }

  const bool dims_;
  StableHash hash_;
};

uint64_t HashNode(const keel_node* n, uint32_t flags) {
  if (n->fill) {
    uint32_t in = 0, out = 0;
    HostTable().node_arity(n, &in, &out);  // fills the node
  }
  NodeHash hash(flags & KEEL_HASH_DIMS);
  hash.AddNode(*n, false);
  return hash.Get();
}

using Strides = int64_t[KEEL_MAX_RANK];

// Sizes of the broadcast of all tensors, as many as the largest rank.
keel_rc BroadcastSizes(std::span<const keel_tensor* const> tensors, int64_t* sizes, int32_t* rank) {
  *rank = 0;
  for (const keel_tensor* t : tensors) {
    if (t && (t->ndim < 0 || t->ndim > KEEL_MAX_RANK))
      return HostFail(Invalid("merge_dims: a tensor of ", t->ndim, " dims"));
    if (t) *rank = std::max(*rank, t->ndim);
  }
  std::fill_n(sizes, *rank, 1);
  for (const keel_tensor* t : tensors)
    for (int32_t d = 0; t && d < t->ndim; d++) {
      int64_t &all = sizes[*rank - t->ndim + d], n = t->shape[d];
      if (n < 0)
        return HostFail(Error(absl::StatusCode::kFailedPrecondition, "merge_dims: a dim is not known"));
      if (n != 1 && all != 1 && n != all)
        return HostFail(Invalid("merge_dims: dims ", all, " and ", n, " do not broadcast"));
      if (n != 1) all = n;
    }
  return KEEL_OK;
}

void FullStrides(const keel_tensor* t, int32_t rank, int64_t* strides) {
  std::fill_n(strides, KEEL_MAX_RANK, 0);
  int64_t step = 1;
  for (int32_t d = t ? t->ndim : 0; d-- > 0; step *= t->shape[d])
    if (t->shape[d] != 1) strides[rank - t->ndim + d] = t->strides ? t->strides[d] : step;
}

keel_rc MergeDims(const keel_tensor* const* tensors, uint32_t n, int64_t* sizes, int64_t* strides,
                  int32_t* ndim) {
  const std::span<const keel_tensor* const> all(tensors, n);
  int32_t rank = 0, made = 0;
  if (keel_rc rc = BroadcastSizes(all, sizes, &rank); rc != KEEL_OK) return rc;
  auto* rows = reinterpret_cast<Strides*>(strides);
  for (uint32_t i = 0; i < n; i++) FullStrides(all[i], rank, rows[i]);
  const bool empty = std::find(sizes, sizes + rank, 0) != sizes + rank;
  for (int32_t d = 0; d < rank && !empty; d++) {
    if (sizes[d] == 1) continue;
    bool merges = made > 0;  // dim `d` continues the dim before
    for (uint32_t i = 0; i < n; i++) merges = merges && rows[i][made - 1] == rows[i][d] * sizes[d];
    if (!merges) made++;
    const int64_t size = sizes[d];
    sizes[made - 1] = merges ? sizes[made - 1] * size : size;
    for (uint32_t i = 0; i < n; i++) rows[i][made - 1] = rows[i][d];
  }
  if (empty) sizes[made++] = 0;
  for (uint32_t i = 0; i < n; i++) std::fill(rows[i] + (empty ? 0 : made), rows[i] + KEEL_MAX_RANK, 0);
  *ndim = made;
  return KEEL_OK;
}

keel_rc NewMemory(const keel_node* n, const void* data, uint64_t bytes, keel_memory** out,
                  uint64_t* address) {
  if (!n->memory)
    return HostFail(Error(absl::StatusCode::kFailedPrecondition,
                          "memory_new: only in prepare, for a device with memory of its own"));
  absl::StatusOr<keel_memory*> made = n->memory->NewMemory(data, bytes, address);
  if (!made.ok()) return HostFail(made.status());
  *out = *made;
  return KEEL_OK;
}

void FreeMemory(keel_memory* memory) { delete memory; }

}  // namespace

void FillSpaceMembers(keel_host* t) {
  t->node_hash = Guarded<HashNode, 0>;
  t->merge_dims = Guarded<MergeDims>;
  t->memory_new = Guarded<NewMemory>;
  t->memory_free = FreeMemory;
}

}  // namespace keel
