// tuned.h: products of f32 that were measured on this machine, in this process (KEEL_CPU_TUNE=1) or earlier,
// and the file that keeps them.
//
// The file is KEEL_CPU_TUNED, else keel/cpu-products-CLASS in XDG_CACHE_HOME or ~/.cache; KEEL_CPU_TUNED= is
// none. It is text: a header, the machine, a hash of the rest, and a line for each product. A file that is
// damaged, too large or of another machine is ignored with a warning; tuning replaces it.
#pragma once

#include <optional>

#include "plugins/cpu/matmul/shape.h"

namespace keel_cpu {

// Nanoseconds of one run on one thread.
struct Timing {
  int64_t own, onednn;
};

// Reads the file, once per process.
void OpenTuned(const keel_host* host);
// The measurement of this product; makes one if products are tuned. None: by the table. Any thread; one
// measures at a time.
std::optional<Timing> Tuned(const MatmulShape& shape, bool constant);

// Both sides in turn, the best of several runs each (measure.cc); none: too large to measure, or no memory.
std::optional<Timing> Measure(const MatmulShape& shape, bool constant);

}  // namespace keel_cpu
