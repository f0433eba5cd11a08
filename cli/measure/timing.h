// timing.h: statistics of run times; detection of interference by other load.
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

// All in milliseconds. The 95 % interval of the mean assumes independent runs.
struct Summary {
  double p50 = 0, p90 = 0, p99 = 0, mean = 0, mean_low = 0, mean_high = 0, min = 0;
  double drift = 1;  // median of the last third divided by that of the first
};
Summary summarize(const std::vector<double>& times);  // in the order of the runs; at least one
double median(std::vector<double> values);            // at least one
// Distribution-free 95 % interval of the median by the sign test. None for fewer than six samples.
std::optional<std::pair<double, double>> median_interval(std::vector<double> values);

// Observes the machine from its construction on. Unreadable counters are ignored.
class MachineWatch {
 public:
  MachineWatch();
  struct Seen {
    double steal = 0;       // fraction of processor time stolen by the host
    double other = 0;       // fraction used by other processes
    int64_t preempted = 0;  // involuntary context switches of this process
    double mhz_first = 0, mhz_last = 0;
  };
  Seen look() const;

 private:
  std::vector<double> ticks_;
  int64_t preempted_ = 0;
  double mhz_ = 0, own_ticks_ = 0;
};

// Reasons for slow figures: "clock 3100 to 2400 MHz", ...; "" if none.
std::string throttling(const MachineWatch::Seen& seen, double drift);

double peak_rss();  // bytes: the process's peak resident size

}  // namespace cli
#endif
