// common.glsl: operands are device addresses in push constants; threads go over all elements by strides of the grid.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint OP = 0;
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Floats { float v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Ints { int v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Fault { uint word, bound; int64_t index; };
uint first_element() { return gl_GlobalInvocationID.x; }
uint grid_size() { return gl_NumWorkGroups.x * gl_WorkGroupSize.x; }
