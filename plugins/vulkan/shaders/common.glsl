// common.glsl: parameters are in memory, at the address in the push constant (launch.h). Element i of a grid of threads is
// followed by element i + grid_size().
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_explicit_arithmetic_types_float64 : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
const uint kRank = 8; // KEEL_MAX_RANK
layout(push_constant, scalar) uniform Push { uint64_t params, step, numbers; } push; // step, numbers: of a launch of several dispatches
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Fault { uint code, bound; int64_t index; };
uint first_element() { return gl_GlobalInvocationID.x; }
#define grid_size() (gl_NumWorkGroups.x * gl_WorkGroupSize.x) // a function here would precede the shader's local_size: 1
#define PARAMS layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Params
