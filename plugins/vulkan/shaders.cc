// shaders.cc: see shaders.h. The assembler includes the files of the modules.
#include "shaders.h"

#include "spirv_clock.h"
#include "spirv_copy_16.h"
#include "spirv_copy_32.h"
#include "spirv_copy_64.h"
#include "spirv_copy_8.h"
#include "spirv_gather_16.h"
#include "spirv_gather_32.h"
#include "spirv_gather_64.h"
#include "spirv_gather_8.h"
#include "spirv_matmul.h"
#include "spirv_reduce_f32.h"
#include "spirv_reduce_f64.h"
#include "spirv_reduce_i32.h"
#include "spirv_reduce_i64.h"
#include "spirv_relocate.h"
#include "spirv_softmax.h"

namespace vulkan {

#define SHADER(name) {spirv_##name, sizeof spirv_##name}
const Code kRelocate = SHADER(relocate), kClock = SHADER(clock), kMatmul = SHADER(matmul),
           kSoftmax = SHADER(softmax);
const Code kReduceF32 = SHADER(reduce_f32), kReduceF64 = SHADER(reduce_f64), kReduceI32 = SHADER(reduce_i32),
           kReduceI64 = SHADER(reduce_i64);
const Code kCopy[4] = {SHADER(copy_8), SHADER(copy_16), SHADER(copy_32), SHADER(copy_64)};
const Code kGather[4] = {SHADER(gather_8), SHADER(gather_16), SHADER(gather_32), SHADER(gather_64)};

}  // namespace vulkan
