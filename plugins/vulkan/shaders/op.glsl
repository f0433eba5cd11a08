// op.glsl: the shaders of ops: operands and results by number, the numbers of the launch, and faults (launch.h).
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(constant_id = 0) const uint OPERANDS = 2; // and results
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Words { uint64_t v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Ints { int v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Longs { int64_t v[]; };
uint64_t operand(uint i) { return Words(push.params).v[i]; }
#define RESULT operand(OPERANDS - 1)
#define SCRATCH operand(OPERANDS)
#define NUMBERS layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Numbers
#define READ_NUMBERS Numbers(push.params + 8 * (OPERANDS + 3) + push.numbers)
int64_t read_index(uint64_t at, uint i, uint bytes) { return bytes == 8 ? Longs(at).v[i] : int64_t(Ints(at).v[i]); }
// Whether an index is out of range. The first thread with one stores it in the fault bytes. Compares unsigned: lavapipe took a
// negative i32 for an index in range.
bool fails(int64_t index, uint bound) {
  if (uint64_t(index) < uint64_t(bound)) return false;
  Fault fault = Fault(operand(OPERANDS + 1));
  if (atomicCompSwap(fault.code, 0u, uint(operand(OPERANDS + 2))) == 0u) {
    fault.bound = bound;
    fault.index = index;
  }
  return true;
}
