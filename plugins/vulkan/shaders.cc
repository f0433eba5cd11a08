// shaders.cc: see shaders.h. The assembler includes the files of the modules.
#include "shaders.h"

#define SHADER(name, file)                                                                    \
  asm(".pushsection .rodata\n.balign 8\nspirv_" #name ":\n.incbin \"" file "\"\nspirv_" #name \
      "_end:\n"                                                                               \
      ".popsection");                                                                         \
  extern "C" __attribute__((visibility("hidden"))) const uint32_t spirv_##name[], spirv_##name##_end[];
#include "shaders.inc"
#undef SHADER

namespace vulkan {

Code Shader(std::string_view name) {
#define SHADER(each, file) \
  if (name == #each)       \
    return {spirv_##each, sizeof(uint32_t) * static_cast<size_t>(spirv_##each##_end - spirv_##each)};
#include "shaders.inc"
#undef SHADER
  return {};
}

const Code kRelocate = Shader("relocate"), kClock = Shader("clock");

}  // namespace vulkan
