// memory.h: executable memory for machine code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace keel_cpu {

// Returns executable code that lives as long as the pointer; identical code is shared. The code must be
// position-independent. Null: this process may not make memory executable. Thread-safe.
std::shared_ptr<const void> PublishCode(const std::string& code);

}  // namespace keel_cpu
