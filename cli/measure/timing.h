// timing.h: times of runs and what they say; signs that the machine was not ours alone meanwhile.
#ifndef KEEL_CLI_TIMING_H
#define KEEL_CLI_TIMING_H
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cli {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point start);

// All in milliseconds. The interval is that of the mean, 95 %, as if the runs were independent.
struct Summary {
  double p50 = 0, p90 = 0, p99 = 0, mean = 0, mean_low = 0, mean_high = 0, min = 0;
  double drift = 1;  // median of the last third by that of the first
};
Summary summarize(const std::vector<double>& times);  // in the order of the runs; at least one
double median(std::vector<double> values);            // at least one
// Between which the median of what was drawn lies, 95 % sure, whatever its distribution: order statistics by
// the sign test. None from fewer than six.
std::optional<std::pair<double, double>> median_interval(std::vector<double> values);

// Looks at the machine from its construction on. What it cannot read counts as nothing seen.
class MachineWatch {
 public:
  MachineWatch();
  struct Seen {
    double steal = 0;       // share of the machine's time that its host gave to others
    double other = 0;       // share that other processes here used
    int64_t preempted = 0;  // times that this process was set aside
    double mhz_first = 0, mhz_last = 0;
  };
  Seen look() const;

 private:
  std::vector<double> ticks_;
  int64_t preempted_ = 0;
  double mhz_ = 0, own_ticks_ = 0;
};

// Why figures may be those of a slowed machine: "clock 3100 to 2400 MHz", ...; "" if nothing was seen.
std::string throttling(const MachineWatch::Seen& seen, double drift);

double peak_rss();  // bytes: the process's greatest resident size so far

}  // namespace cli
#endif
