// memory.h: where machine code lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace keel_cpu {

// The code, ready to run, for as long as the pointer is kept; code of equal bytes is there once. Null: this
// process may not make memory executable. It must not depend on where it lies. From any thread.
std::shared_ptr<const void> PublishCode(const std::string& code);

}  // namespace keel_cpu
