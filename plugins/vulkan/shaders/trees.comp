// trees.comp: tree_ensemble. Step 0 checks all indices; y starts as 0, -inf or inf. Then a work group takes a row, and a step
// `batch` trees of up to kMostGroups rows: each thread walks a tree; the leaves are combined with y in the order of the trees, by
// the threads that own the columns.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
#include "elements.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 2) const uint INDEX_BYTES = 4;
layout(constant_id = 3) const uint MODE = 0; // add, max, min: ops/trees.cc
const uint kX = 0, kSplit = 1, kFeature = 2, kTest = 3, kNext = 4, kRoot = 5, kTarget = 6, kWeight = 7;
const uint kThreads = 64, kMostGroups = 65535u, kNone = 0xffffffffu;
NUMBERS { uint64_t start; uint rows, features, nodes, trees, leaves, width, size, batch, batches; };
shared uint leaf[kThreads], target[kThreads];
shared A first_weight[kThreads];

int64_t index_at(uint o, uint i) { return read_index(operand(o), i, INDEX_BYTES); }
A combined(A a, A b) { return MODE == 0 ? a + b : MODE == 1 ? greater(a, b) : lesser(a, b); }

void begin(Numbers p, uint i) {
  if (i < p.rows * p.size) store(RESULT, i, from_bits(p.start));
  if (i < p.nodes) {
    fails(index_at(kFeature, i), p.features);
    for (uint k = 0; k < 2; k++) fails(index_at(kNext, 2 * i + k), p.nodes + p.leaves - i - 1);
  }
  if (i < p.trees) {
    fails(index_at(kRoot, i), p.nodes + p.leaves);
    fails(index_at(kTarget, i), p.size - p.width + 1);
  }
}
uint leaf_of(Numbers p, uint row, uint tree) { // kNone: an index is out of range
  if (fails(index_at(kRoot, tree), p.nodes + p.leaves) || fails(index_at(kTarget, tree), p.size - p.width + 1)) return kNone;
  uint at = uint(index_at(kRoot, tree));
  while (at < p.nodes) {
    int64_t feature = index_at(kFeature, at);
    if (fails(feature, p.features)) return kNone;
    A value = load(operand(kX), row * p.features + uint(feature)), split = load(operand(kSplit), at);
    uint relation = value < split ? 1 : value == split ? 2 : value > split ? 4 : 8;
    bool yes = (uint(index_at(kTest, at)) & relation) != 0;
    int64_t next = index_at(kNext, 2 * at + uint(yes));
    if (fails(next, p.nodes + p.leaves - at - 1)) return kNone;
    at += 1 + uint(next);
  }
  return at - p.nodes;
}
void walk(Numbers p, uint row, uint first, uint end) {
  uint thread = gl_LocalInvocationID.x, tree = first + thread;
  barrier();
  leaf[thread] = kNone;
  if (tree < end) {
    leaf[thread] = leaf_of(p, row, tree);
    target[thread] = uint(index_at(kTarget, tree));
    if (leaf[thread] != kNone && p.width > 0) first_weight[thread] = load(operand(kWeight), leaf[thread] * p.width);
  }
  barrier();
  for (uint j = 0; j < kThreads && first + j < end; j++)
    for (uint k = (thread - target[j]) % kThreads; leaf[j] != kNone && k < p.width; k += kThreads) {
      uint at = row * p.size + target[j] + k;
      store(RESULT, at, combined(load(RESULT, at), k == 0 ? first_weight[j] : load(operand(kWeight), leaf[j] * p.width + k)));
    }
}

void main() {
  Numbers p = READ_NUMBERS;
  if (push.step == 0) {
    for (uint i = first_element(); i < max(p.rows * p.size, max(p.nodes, p.trees)); i += grid_size()) begin(p, i);
    return;
  }
  uint step = uint(push.step) - 1, row = step / p.batches * kMostGroups + gl_WorkGroupID.x, begin_at = step % p.batches * p.batch;
  if (row >= p.rows) return;
  for (uint first = begin_at; first < min(begin_at + p.batch, p.trees); first += kThreads) walk(p, row, first, p.trees);
}
