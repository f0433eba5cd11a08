// dtypes.h: elements of the thirteen dtypes as register values (spirv_code.h): loading, storing, rounding,
// and the op `cast`. Half floats are converted with integer instructions, because conversions of Vulkan may
// round towards zero and flush denormals.
#pragma once

#include "abi/keel_base.h"
#include "sdk/plugin/spirv_code.h"

namespace keel_spirv {

using namespace keel::spirv;

inline uint32_t BitsOf(keel_dt dt) { return dt >> 8 & 255; }
inline bool IsFloat(keel_dt dt) { return (dt & 255) == 2 || (dt & 255) == 4; }
inline bool IsSigned(keel_dt dt) { return (dt & 255) == 0; }
inline bool IsUnsigned(keel_dt dt) { return (dt & 255) == 1; }
inline bool IsInteger(keel_dt dt) { return (dt & 255) <= 1; }
bool IsKnown(keel_dt dt);
Reg RegOf(keel_dt dt);

Value LoadElement(Code& code, keel_dt dt, Value address);
void StoreElement(keel_dt dt, Value address, Value element);

// The element nearest to a register value: integers wrap, f16 and bf16 round to nearest even.
Value Round(keel_dt dt, Value v);
Value Cast(keel_dt from, keel_dt to, Value v);
// Signed on signed dtypes; false for NaN.
Value LessThan(keel_dt dt, Value a, Value b);

}  // namespace keel_spirv
