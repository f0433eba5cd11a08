// runner.h: runs one compute shader on the first Vulkan device, with buffers given as bytes. For tests: one
// memory block, one submit per run, no reuse of pipelines.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace vulkan_test {

// "" if there is a device; otherwise the reason for skipping.
const std::string& WhyNot();
// Whether device addresses are addresses of this process: the device is a processor.
bool SharesAddresses();

// Copies the buffers to device memory, 64-byte aligned with a guard of 64 bytes behind each, runs `groups`
// groups, and copies them back. `fill` receives the buffers' device addresses before the copy: it may write
// them to the buffers, and returns the push constants. Returns an error text, or "".
using Fill = std::function<std::vector<uint64_t>(const std::vector<uint64_t>& addresses)>;
std::string RunShader(const std::vector<uint32_t>& words, uint32_t groups, std::vector<std::string>* buffers,
                      const Fill& fill);

}  // namespace vulkan_test
