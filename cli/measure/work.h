// work.h: what a node does by its shapes: arithmetic and bytes, to hold beside what the machine can do.
#ifndef KEEL_CLI_WORK_H
#define KEEL_CLI_WORK_H
#include <keel/session.hpp>
#include <string_view>
#include <vector>

namespace cli {

struct Work {
  double flops = 0;  // NaN: not known by the shapes (a fused call, a loop)
  double bytes = 0;  // operands and results, each once
};
Work work_of(const keel_event& event);

struct Sized {  // a tensor's dims; NaN: not known
  std::vector<double> dims;
  double elements() const;
};
struct Operands {
  std::string_view op;
  std::vector<Sized> in, out;
};
// Of the plain formula; none where an op only moves elements, else one for each element.
double flops_of(const Operands& operands);

// What is reached here with these threads (1 or more): by the device, multiplying large f32 matrices; by
// plain loops over arrays in host memory that no cache holds, reading two and writing one.
struct Roof {
  double gflops = 0, gbytes = 0;  // a second
};
Roof measure_roof(const keel::Context& context, const std::string& device, int threads);

}  // namespace cli
#endif
