// clock.comp: converts a time in ticks to nanoseconds, in place. factor: nanoseconds of a tick, times 65536.
#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 1) in;
layout(push_constant, scalar) uniform Push { uint64_t time, factor; } p;
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Time { uint64_t v; };

void main() {
  uint64_t ticks = Time(p.time).v;
  Time(p.time).v = (ticks >> 16) * p.factor + ((ticks & 0xffffUL) * p.factor >> 16);
}
