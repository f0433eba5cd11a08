// lanes.h: concurrent launches of one run, in one region of the shared thread pool (parallel.h).
#pragma once

#include "abi/keel_plugin.h"

namespace keel_cpu {

// keel_device.run_lanes and .cost
void RunLanes(keel_dev, uint32_t n, void (*lane)(void* arg), void* arg);
uint64_t Cost(keel_dev, const keel_host* host, const keel_node* node, uint32_t threads);

}  // namespace keel_cpu
