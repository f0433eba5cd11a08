// runner.h: runs one compute shader on the first Vulkan device, with buffers given as bytes. For tests: one
// memory block, one submit per run, no reuse of pipelines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vulkan_test {

// "" if there is a device; otherwise the reason for skipping.
const std::string& WhyNot();

// Copies the buffers to device memory, 64-byte aligned with a guard of 64 bytes behind each, runs `groups`
// groups with the push constants that `push` computes from the buffers' addresses, and copies them back.
// Returns an error text, or "".
std::string RunShader(const std::vector<uint32_t>& words, uint32_t groups, std::vector<std::string>* buffers,
                      std::vector<uint64_t> (*push)(const std::vector<uint64_t>& addresses, const void* arg),
                      const void* arg);

}  // namespace vulkan_test
