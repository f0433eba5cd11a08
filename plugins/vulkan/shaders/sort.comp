// sort.comp: top_k: a bitonic sort of the indices of each row, the row filled up to a power of two with indices past the end.
// LOCAL: a work group sorts a row in shared memory. Otherwise the indices are in scratch, and each step is one stage: step 0
// writes the indices, step 1 the results, step (k << 32 | j) compares indices j apart in blocks of k.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
#include "elements.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 2) const uint LARGEST = 1;
layout(constant_id = 3) const uint LOCAL = 0;
NUMBERS { uint rows, size, filled, k; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Indices { uint v[]; };
shared uint order[1024];

bool before(Numbers p, uint row, uint i, uint j) { // NaN first; of equal elements the first
  if (i >= p.size || j >= p.size) return i < j;
  A a = load(operand(0), row * p.size + i), b = load(operand(0), row * p.size + j);
  if (is_nan(a) != is_nan(b)) return is_nan(a);
  if (a < b || a > b) return (LARGEST != 0) == (a > b);
  return i < j;
}
// Whether indices at `low` and `high` of a row have to be exchanged in a stage with blocks of k.
bool exchanged(Numbers p, uint row, uint k, uint at, uint low, uint high) {
  return before(p, row, high, low) == ((at & k) == 0);
}
uint lower_of(uint pair, uint j) { return 2 * j * (pair / j) + pair % j; }
void save(Numbers p, uint row, uint i, uint index) {
  store(operand(1), row * p.k + i, load(operand(0), row * p.size + index));
  Longs(operand(2)).v[row * p.k + i] = int64_t(index);
}

void sort_locally(Numbers p, uint row) {
  uint thread = gl_LocalInvocationID.x;
  for (uint i = thread; i < p.filled; i += 64) order[i] = i;
  for (uint k = 2; k <= p.filled; k *= 2)
    for (uint j = k / 2; j > 0; j /= 2) {
      barrier();
      for (uint pair = thread; pair < p.filled / 2; pair += 64) {
        uint at = lower_of(pair, j), low = order[at], high = order[at + j];
        if (!exchanged(p, row, k, at, low, high)) continue;
        order[at] = high;
        order[at + j] = low;
      }
    }
  barrier();
  for (uint i = thread; i < p.k; i += 64) save(p, row, i, order[i]);
  barrier();
}
void stage(Numbers p, uint i) {
  uint k = uint(push.step >> 32), j = uint(push.step);
  Indices indices = Indices(SCRATCH);
  if (k == 0 && j == 0) indices.v[i] = i % p.filled;
  if (k == 0 && j == 1 && i % p.filled < p.k) save(p, i / p.filled, i % p.filled, indices.v[i]);
  if (k == 0 || i >= p.rows * p.filled / 2) return;
  uint row = i / (p.filled / 2), base = row * p.filled, at = lower_of(i % (p.filled / 2), j);
  uint low = indices.v[base + at], high = indices.v[base + at + j];
  if (!exchanged(p, row, k, at, low, high)) return;
  indices.v[base + at] = high;
  indices.v[base + at + j] = low;
}

void main() {
  Numbers p = READ_NUMBERS;
  if (LOCAL != 0)
    for (uint row = gl_WorkGroupID.x; row < p.rows; row += gl_NumWorkGroups.x) sort_locally(p, row);
  else
    for (uint i = first_element(); i < p.rows * p.filled; i += grid_size()) stage(p, i);
}
