// suppress.comp: non_max_suppression; a row is a class of a batch, with a work group. Step 0 finds the candidates. The steps up
// to `last` run rounds: the best candidate is chosen, and those that it overlaps are dropped. Step `last` writes the results.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
#include "elements.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 2) const uint MOST_BYTES = 8;
layout(constant_id = 3) const uint CENTER = 0;
const uint kNone = 0xffffffffu, kThreads = 64;
NUMBERS { uint rows, classes, n, size, rounds, last; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Places { uint v[]; }; // candidates, counts, chosen: SCRATCH
struct Box { vec2 low, high; };
struct Best { float score; uint at; };
shared Best partial[kThreads];
shared uint sums[kThreads];

uint count_at(Numbers p, uint row) { return p.rows * p.n + row; }
uint chosen_at(Numbers p, uint row) { return p.rows * (p.n + 1) + row * p.size; }

Box box_at(uint i) { // without NaN; an empty box overlaps none
  vec2 a = vec2(load(operand(0), 4 * i), load(operand(0), 4 * i + 1)), b = vec2(load(operand(0), 4 * i + 2), load(operand(0), 4 * i + 3));
  Box box = CENTER != 0 ? Box(a - b * 0.5, a + b * 0.5) : Box(min(a, b), max(a, b));
  if (any(isnan(a)) || any(isnan(b)) || any(isnan(box.low)) || any(isnan(box.high))) return Box(vec2(0), vec2(0));
  return box;
}
bool overlap(Box a, Box b, float limit) {
  vec2 extent = min(a.high, b.high) - max(a.low, b.low), of_a = a.high - a.low, of_b = b.high - b.low;
  if (!(extent.x > 0) || !(extent.y > 0)) return false;
  precise float both = extent.x * extent.y, area_a = of_a.x * of_a.y, area_b = of_b.x * of_b.y, whole = area_a + area_b - both;
  return both > 0 && both / whole > limit;
}
Best better(Best a, Best b) {
  if (a.at == kNone || b.at == kNone) return a.at == kNone ? b : a;
  if (a.score != b.score) return a.score > b.score ? a : b;
  return a.at < b.at ? a : b;
}

void begin(Numbers p, uint i) {
  Places places = Places(SCRATCH);
  if (i == 0) Longs(operand(6)).v[0] = 0;
  if (i < p.rows) places.v[count_at(p, i)] = 0;
  if (i < p.rows * p.size * 3) Longs(operand(5)).v[i] = 0;
  if (i >= p.rows * p.n) return;
  float score = load(operand(1), i), low = load(operand(4), 0);
  places.v[i] = uint(!isnan(score) && (isnan(low) || score > low));
}
uint best_of(Numbers p, uint row) {
  uint thread = gl_LocalInvocationID.x;
  Best best = Best(0, kNone);
  for (uint i = thread; i < p.n; i += kThreads)
    if (Places(SCRATCH).v[row * p.n + i] != 0) best = better(best, Best(load(operand(1), row * p.n + i), i));
  partial[thread] = best;
  for (uint half_size = kThreads / 2; half_size > 0; half_size /= 2) {
    barrier();
    if (thread < half_size) partial[thread] = better(partial[thread], partial[thread + half_size]);
  }
  barrier();
  uint found = partial[0].at;
  barrier();
  return found;
}
void rounds(Numbers p, uint row) {
  Places places = Places(SCRATCH);
  uint base = row / p.classes * p.n, count = places.v[count_at(p, row)];
  uint end = uint(clamp(read_index(operand(2), 0, MOST_BYTES), int64_t(0), int64_t(p.size)));
  for (uint k = 0; k < p.rounds && count < end; k++) {
    uint best = best_of(p, row);
    if (best == kNone) break;
    Box box = box_at(base + best);
    for (uint i = gl_LocalInvocationID.x; i < p.n; i += kThreads)
      if (places.v[row * p.n + i] != 0 && (i == best || overlap(box_at(base + i), box, load(operand(3), 0)))) places.v[row * p.n + i] = 0;
    if (gl_LocalInvocationID.x == 0) places.v[chosen_at(p, row) + count] = best;
    count++;
  }
  barrier();
  if (gl_LocalInvocationID.x == 0) places.v[count_at(p, row)] = count;
}
void save(Numbers p, uint row) {
  Places places = Places(SCRATCH);
  uint thread = gl_LocalInvocationID.x, count = places.v[count_at(p, row)], sum = 0;
  for (uint r = thread; r < row; r += kThreads) sum += places.v[count_at(p, r)];
  sums[thread] = sum;
  for (uint half_size = kThreads / 2; half_size > 0; half_size /= 2) {
    barrier();
    if (thread < half_size) sums[thread] += sums[thread + half_size];
  }
  barrier();
  uint before = sums[0];
  barrier();
  for (uint i = thread; i < count; i += kThreads) {
    uint at = (before + i) * 3;
    Longs(operand(5)).v[at] = int64_t(row / p.classes);
    Longs(operand(5)).v[at + 1] = int64_t(row % p.classes);
    Longs(operand(5)).v[at + 2] = int64_t(places.v[chosen_at(p, row) + i]);
  }
  if (thread == 0 && row == p.rows - 1) Longs(operand(6)).v[0] = int64_t(before + count);
}

void main() {
  Numbers p = READ_NUMBERS;
  if (push.step == 0) {
    uint count = max(p.rows * max(max(p.n, p.size * 3), 1), 1); // each row has a count
    for (uint i = first_element(); i < count; i += grid_size()) begin(p, i);
    return;
  }
  for (uint row = gl_WorkGroupID.x; row < p.rows; row += gl_NumWorkGroups.x)
    if (push.step == p.last) save(p, row);
    else rounds(p, row);
}
