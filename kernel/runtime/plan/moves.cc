// moves.cc: see moves.h. Prepare turns a node into a list of fills and copies of blocks.
#include "kernel/runtime/plan/moves.h"

#include <algorithm>
#include <cstring>

#include "kernel/language/graph/element.h"
#include "kernel/runtime/plan/core.h"
#include "kernel/runtime/plan/fold.h"
#include "kernel/runtime/plan/run_state.h"
#include "kernel/runtime/plugin/host.h"

namespace keel {
namespace {

constexpr size_t kMostMoves = 64;  // keel_device.h

struct BlockMove {
  enum Kind : uint8_t { kFill, kCopy, kRepeat } kind;  // kRepeat: within the result
  uint16_t from, to;                                   // numbers of operand and result
  uint64_t from_at, to_at, bytes;                      // kFill: from_at is the value
};
using BlockMoves = std::vector<BlockMove>;

// A block of elements: its dims, and per dim the strides in the two tensors.
struct Box {
  const std::vector<int64_t>& sizes;
  const std::vector<int64_t> from, to;
  int64_t from_at = 0, to_at = 0;
};

std::vector<int64_t> RowMajor(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size());
  int64_t step = 1;
  for (size_t d = dims.size(); d-- > 0; step *= dims[d]) strides[d] = step;
  return strides;
}

int64_t CountOfDims(const std::vector<int64_t>& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

// Appends the copies of a box; false: too many.
bool AddBox(const Box& box, uint64_t size, BlockMove like, BlockMoves* moves) {
  if (std::ranges::find(box.sizes, 0) != box.sizes.end()) return true;
  int64_t run = 1;  // contiguous elements in both tensors
  size_t outer = box.sizes.size();
  for (; outer > 0; outer--) {
    const size_t d = outer - 1;
    if (box.sizes[d] != 1 && (box.from[d] != run || box.to[d] != run)) break;
    run *= box.sizes[d];
  }
  int64_t blocks = 1;
  for (size_t d = 0; d < outer; d++)
    if ((blocks *= box.sizes[d]) > static_cast<int64_t>(kMostMoves)) return false;
  for (int64_t i = 0; i < blocks; i++) {
    int64_t from = box.from_at, to = box.to_at, rest = i;
    for (size_t d = outer; d-- > 0; rest /= box.sizes[d]) {
      from += rest % box.sizes[d] * box.from[d];
      to += rest % box.sizes[d] * box.to[d];
    }
    like.from_at = static_cast<uint64_t>(from) * size;
    like.to_at = static_cast<uint64_t>(to) * size;
    like.bytes = static_cast<uint64_t>(run) * size;
    moves->push_back(like);
  }
  return moves->size() <= kMostMoves;
}

// Repeats the first `have` bytes of a result until it has `bytes`.
void AddRepeats(uint64_t have, uint64_t bytes, BlockMoves* moves) {
  for (; have < bytes; have *= 2)
    moves->push_back({BlockMove::kRepeat, 0, 0, 0, have, std::min(have, bytes - have)});
}

uint32_t WordAt(const char* bytes) {
  uint32_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// Fills result 0 with the scalar operand `number`. A fill repeats whole words.
void AddFill(const keel_node& node, uint16_t number, BlockMoves* moves) {
  const keel_node::Side &v = node.in[number], &y = node.out[0];
  const uint64_t size = SizeOf(v.dtype), bytes = static_cast<uint64_t>(CountOfDims(y.dims)) * size;
  if (!bytes) return;
  char element[16];
  bool words = v.data && size >= 4;  // smaller elements may lie within a word
  for (uint64_t at = 0; words && at < sizeof element; at += size) std::memcpy(element + at, v.data, size);
  for (int i = 1; i < 4; i++) words = words && WordAt(element + 4 * i) == WordAt(element);
  if (words) return moves->push_back({BlockMove::kFill, 0, 0, WordAt(element), 0, bytes});
  moves->push_back({BlockMove::kCopy, number, 0, 0, 0, size});
  AddRepeats(size, bytes, moves);
}

const std::vector<int64_t>& ListOf(const keel_node& node, std::string_view name) {
  return FindAttr(node.attrs, name)->list;
}

bool AddFillMoves(const keel_node& node, BlockMoves* moves) {
  AddFill(node, 0, moves);
  return true;
}

// x repeated along leading dims.
bool AddBroadcastMoves(const keel_node& node, BlockMoves* moves) {
  const keel_node::Side &x = node.in[0], &y = node.out[0];
  std::vector<int64_t> dims(y.dims.size() - x.dims.size(), 1);
  dims.insert(dims.end(), x.dims.begin(), x.dims.end());
  size_t same = dims.size();
  while (same > 0 && dims[same - 1] == y.dims[same - 1]) same--;
  const uint64_t have = static_cast<uint64_t>(CountOfDims(x.dims)) * SizeOf(x.dtype);
  const uint64_t bytes = static_cast<uint64_t>(CountOfDims(y.dims)) * SizeOf(x.dtype);
  if (!bytes) return true;
  if (std::any_of(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(same),
                  [](int64_t d) { return d != 1; }))
    return false;
  moves->push_back({BlockMove::kCopy, 0, 0, 0, 0, have});
  AddRepeats(have, bytes, moves);
  return moves->size() <= kMostMoves;
}

bool AddSliceMoves(const keel_node& node, BlockMoves* moves) {
  const std::vector<int64_t>&start = ListOf(node, "start"), &step = ListOf(node, "step");
  std::vector<int64_t> from = RowMajor(node.in[0].dims);
  int64_t at = 0;
  for (size_t d = 0; d < from.size(); d++) {
    at += start[d] * from[d];
    from[d] *= step[d];
  }
  const auto& sizes = node.out[0].dims;
  return AddBox({sizes, std::move(from), RowMajor(sizes), at, 0}, SizeOf(node.in[0].dtype),
                {BlockMove::kCopy, 0, 0, 0, 0, 0}, moves);
}

// Of concat, and in reverse of split: the parts of a whole along an axis.
bool AddPartMoves(const std::vector<keel_node::Side>& parts, const keel_node::Side& whole,
                  const keel_node& node, bool split, BlockMoves* moves) {
  const auto axis = static_cast<size_t>(FindAttr(node.attrs, "axis")->i);
  const std::vector<int64_t> of_whole = RowMajor(whole.dims);
  int64_t at = 0;
  for (uint16_t i = 0; i < parts.size(); i++) {
    const auto& sizes = parts[i].dims;
    BlockMove like{BlockMove::kCopy, i, 0, 0, 0, 0};
    if (split) std::swap(like.from, like.to);
    const std::vector<int64_t> of_part = RowMajor(sizes);
    const Box box = split ? Box{sizes, of_whole, of_part, at, 0} : Box{sizes, of_part, of_whole, 0, at};
    if (!AddBox(box, SizeOf(whole.dtype), like, moves)) return false;
    at += sizes[axis] * of_whole[axis];
  }
  return true;
}
bool AddConcatMoves(const keel_node& node, BlockMoves* moves) {
  return AddPartMoves(node.in, node.out[0], node, false, moves);
}
bool AddSplitMoves(const keel_node& node, BlockMoves* moves) {
  return AddPartMoves(node.out, node.in[0], node, true, moves);
}

bool AddPadMoves(const keel_node& node, BlockMoves* moves) {
  AddFill(node, 1, moves);
  std::vector<int64_t> to = RowMajor(node.out[0].dims);
  int64_t at = 0;
  for (size_t d = 0; d < to.size(); d++) {
    at += ListOf(node, "lo")[d] * to[d];
    to[d] *= ListOf(node, "gap")[d] + 1;
  }
  const auto& sizes = node.in[0].dims;
  return AddBox({sizes, RowMajor(sizes), std::move(to), 0, at}, SizeOf(node.in[0].dtype),
                {BlockMove::kCopy, 0, 0, 0, 0, 0}, moves);
}

// The number itself, word by word.
bool AddDimMoves(const keel_node& node, BlockMoves* moves) {
  const DType dtype = node.out[0].dtype;
  char element[16] = {};
  if (SizeOf(dtype) % 4 ||
      !ElementFromDouble(dtype, static_cast<double>(FindAttr(node.attrs, "of")->i), element).ok())
    return false;
  for (uint64_t at = 0; at < SizeOf(dtype); at += 4)
    moves->push_back({BlockMove::kFill, 0, 0, WordAt(element + at), at, 4});
  return true;
}

struct MovesOp {
  const char* name;
  bool (*add)(const keel_node& node, BlockMoves* moves);  // false: too many
};
constexpr MovesOp kMovesOps[] = {{"fill", AddFillMoves},     {"broadcast_to", AddBroadcastMoves},
                                 {"slice", AddSliceMoves},   {"split", AddSplitMoves},
                                 {"concat", AddConcatMoves}, {"pad", AddPadMoves},
                                 {"dim", AddDimMoves}};

const MovesOp& OpOf(const keel_node& node) {
  return *std::ranges::find(kMovesOps, OpName(*node.op), &MovesOp::name);
}

bool KnowsDims(const keel_node& node) {
  for (const auto* sides : {&node.in, &node.out})
    for (const keel_node::Side& side : *sides)
      if (std::ranges::find(side.dims, -1) != side.dims.end()) return false;
  return true;
}

// Nodes of unknown dims are taken: prepare declines dims that need too many copies.
int32_t MatchMoves(keel_dev, const keel_host*, const keel_node* node) {
  BlockMoves moves;
  if (const AttrValue* of = FindAttr(node->attrs, "of")) return of->i == -1;  // other sizes are literals
  return !KnowsDims(*node) || OpOf(*node).add(*node, &moves);
}

void* At(const keel_tensor& t, uint64_t offset) {
  return static_cast<char*>(t.data) + t.byte_offset + offset;
}

class MovesLaunch : public OwnLaunch {
 public:
  MovesLaunch(const BlockMoves& moves, const RunState& state) : moves_(moves), state_(state) {}
  keel_rc Run(const keel_call& call) override {
    for (const BlockMove& move : moves_)
      if (absl::Status status = Encode(call, move); !status.ok()) return HostFail(status);
    return KEEL_OK;
  }

 private:
  absl::Status Encode(const keel_call& call, const BlockMove& move) {
    const keel_tensor& y = *call.out[move.to];
    void* to = At(y, move.to_at);
    if (move.kind == BlockMove::kFill)
      return state_.machine->Fill(to, move.bytes, static_cast<uint32_t>(move.from_at));
    const keel_tensor& from = move.kind == BlockMove::kRepeat ? y : *call.in[move.from];
    return state_.machine->Copy(to, At(from, move.from_at), move.bytes);
  }

  const BlockMoves& moves_;
  const RunState& state_;
};

keel_rc PrepareMoves(keel_dev, const keel_host*, const keel_node* node, keel_launch* launch) {
  auto moves = std::make_unique<BlockMoves>();
  if (!OpOf(*node).add(*node, moves.get()))
    return HostFail(Unimplemented("with these dims it needs more than ", kMostMoves,
                                  " copies, and the device has no impl for it"));
  launch->state = moves.release();
  launch->run = OwnLaunch::RunCall;
  launch->release = [](keel_dev, void* state) { delete static_cast<BlockMoves*>(state); };
  return KEEL_OK;
}

std::vector<Impl> MakeMovesImpls() {
  std::vector<Impl> all;
  for (const MovesOp& op : kMovesOps) {
    Impl impl{};
    impl.table = {op.name, 1, UINT32_MAX, nullptr, "copies", 0, 0, MatchMoves, PrepareMoves, nullptr};
    impl.plugin = CoreImpl()->plugin;
    all.push_back(std::move(impl));
  }
  return all;
}

const Impl* MovesImpl(const OpDef& op) {
  static const std::vector<Impl> kImpls = MakeMovesImpls();
  auto found = std::ranges::find_if(kImpls, [&](const Impl& impl) { return impl.table.op == OpName(op); });
  return found == kImpls.end() ? nullptr : &*found;
}

}  // namespace

bool IsMoves(const Step& step) { return step.impl->table.prepare == PrepareMoves; }

std::unique_ptr<OwnLaunch> MakeMoves(const keel_launch& launch, RunState& state) {
  return std::make_unique<MovesLaunch>(*static_cast<const BlockMoves*>(launch.state), state);
}

bool HasMovesImpl(const OpDef& op) { return MovesImpl(op); }

absl::StatusOr<const Impl*> ChooseImplOrMoves(Device& device, const OpDef& op, const Inferred& inferred,
                                              const NodeView& view, const Impl* after) {
  ASSIGN_OR_RETURN(const Impl* impl, ChooseImpl(device, op, inferred, view, after));
  const Impl* moves = impl || device.host_memory() ? nullptr : MovesImpl(op);
  if (!moves || moves == after) return impl;
  ASSIGN_OR_RETURN(keel_node node, view());
  return MatchMoves(nullptr, nullptr, &node) ? moves : nullptr;
}

}  // namespace keel
