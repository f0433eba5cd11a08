// relocate.comp: before a replay: rewrites the addresses in the parameters of its launches (recording.h).
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
struct Relocation { uint64_t where, base; uint slot, reserved; };
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Table { uint64_t v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Relocations { Relocation v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) writeonly buffer Address { uint64_t v; };
PARAMS { uint64_t table, relocations; uint count; };

void main() {
  Params p = Params(push.params);
  for (uint i = first_element(); i < p.count; i += grid_size()) {
    Relocation r = Relocations(p.relocations).v[i];
    Address(r.where).v = r.base + Table(p.table).v[r.slot];
  }
}
