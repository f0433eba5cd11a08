// programs.h: latency of functions, tapes and traces.
#pragma once

#include <abi/keel.h>

#include <functional>

namespace hot {

// name, limit (ns), pieces of work in one call, the call
using AddFigure = std::function<void(const char*, double, double, const std::function<void()>&)>;

void Programs(keel_context* context, const char* device, const AddFigure& add);

}  // namespace hot
