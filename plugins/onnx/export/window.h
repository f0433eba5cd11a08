// window.h: images and windows of convolutions, as ONNX takes them.
#pragma once
#include "plugins/onnx/export/call.h"

namespace onnx_export {

Ints inner(Call& c, uint32_t i);  // sizes of an operand's image or window: dims from 2 on
Ints pads(const Ints& lo, const Ints& hi);
// Of the window: strides, dilations, groups.
NodeAttrs window(Call& c, const Ints& kernel, const Ints& pads);
void check_image(Call& c);  // refuses images without dims, and windows without elements

}  // namespace onnx_export
