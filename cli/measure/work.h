// work.h: FLOPs and bytes of a node from its shapes, and the roofline of the machine.
#ifndef KEEL_CLI_WORK_H
#define KEEL_CLI_WORK_H
#include <keel/session.hpp>
#include <string_view>
#include <vector>

namespace cli {

struct Work {
  double flops = 0;  // NaN: unknown (a fused call, a loop)
  double bytes = 0;  // operands and results, each once
};
Work work_of(const keel_event& event);

struct Sized {  // a tensor's dims; NaN: unknown
  std::vector<double> dims;
  double elements() const;
};
struct Operands {
  std::string_view op;
  std::vector<Sized> in, out;
};
// By formula; 0 if an op only moves elements, else one per element.
double flops_of(const Operands& operands);

// Measured limits with these threads (1 or more): the device's throughput on large f32 products; the host's
// memory bandwidth (two reads, one write, larger than all caches).
struct Roofline {
  double gflops = 0, gbytes = 0;  // a second; NaN: the device computes no products
};
Roofline measure_roofline(const keel::Context& context, const std::string& device, int threads);

}  // namespace cli
#endif
