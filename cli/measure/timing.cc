// timing.cc: statistics of runs, and the state of the machine from /proc. See timing.h.
#include "cli/measure/timing.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <span>
#include <sstream>

#include "cli/exit.h"

namespace cli {
namespace {

// Linear interpolation between the two nearest sorted times.
double percentile(const std::vector<double>& sorted, double p) {
  double at = p * static_cast<double>(sorted.size() - 1);
  auto low = static_cast<size_t>(std::floor(at));
  size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - std::floor(at)) * (sorted[high] - sorted[low]);
}

// 97.5 % quantile of Student's t for n - 1 degrees of freedom; the expansion is off by under 1 % from 4 on.
double student(size_t n) {
  constexpr double kFew[] = {12.71, 4.303, 3.182};
  if (n < 2) return 0;
  if (n < 5) return kFew[n - 2];
  double z = 1.959964, df = static_cast<double>(n - 1);
  return z + (z * z * z + z) / (4 * df) + (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * df * df);
}

// The first line of /proc/stat: user nice system idle iowait irq softirq steal ..., in clock ticks.
std::vector<double> machine_ticks() {
  std::ifstream in("/proc/stat");
  std::string name;
  std::vector<double> ticks;
  in >> name;
  for (double t; ticks.size() < 8 && in >> t;) ticks.push_back(t);
  ticks.resize(8);
  return ticks;
}

double seconds(timeval t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); }

double own_ticks(const rusage& usage) {
  return (seconds(usage.ru_utime) + seconds(usage.ru_stime)) * static_cast<double>(sysconf(_SC_CLK_TCK));
}

// The mean clock of the cores from /proc/cpuinfo; 0: unknown.
double clock_mhz() {
  std::ifstream in("/proc/cpuinfo");
  double sum = 0, n = 0;
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("cpu MHz")) sum += std::stod(line.substr(line.find(':') + 1)), n++;
  return n ? sum / n : 0;
}

rusage own_usage() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage;
}

}  // namespace

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return percentile(values, 0.5);
}

std::optional<std::pair<double, double>> median_interval(std::vector<double> values) {
  const size_t n = values.size();
  if (n < 6) return std::nullopt;
  std::sort(values.begin(), values.end());
  // P(k-th smallest > median) is the binomial probability of at most k heads.
  double chance = std::pow(0.5, n), sum = chance;
  size_t k = 0;
  while (k + 1 < n / 2) {
    chance *= static_cast<double>(n - k) / static_cast<double>(k + 1);
    if (sum + chance > 0.025) break;
    sum += chance;
    k++;
  }
  if (n > 1000)
    k = static_cast<size_t>(0.5 * static_cast<double>(n) - 0.98 * std::sqrt(static_cast<double>(n)));
  return std::pair(values[k], values[n - 1 - k]);
}

Summary summarize(const std::vector<double>& times) {
  Summary s;
  std::vector<double> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  auto n = static_cast<double>(times.size());
  s.mean = std::accumulate(times.begin(), times.end(), 0.0) / n;
  double squares = 0;
  for (double t : times) squares += (t - s.mean) * (t - s.mean);
  double half = times.size() > 1 ? student(times.size()) * std::sqrt(squares / (n - 1) / n) : 0;
  s.mean_low = s.mean - half, s.mean_high = s.mean + half;
  s.p50 = percentile(sorted, 0.5), s.p90 = percentile(sorted, 0.9), s.p99 = percentile(sorted, 0.99);
  s.min = sorted.front();
  size_t third = times.size() / 3;
  if (third) {
    auto part = [&](auto first) { return median({first, first + static_cast<std::ptrdiff_t>(third)}); };
    s.drift = part(times.end() - static_cast<std::ptrdiff_t>(third)) / part(times.begin());
  }
  return s;
}

MachineWatch::MachineWatch() : ticks_(machine_ticks()), mhz_(clock_mhz()) {
  rusage usage = own_usage();
  preempted_ = usage.ru_nivcsw;
  own_ticks_ = own_ticks(usage);
}

MachineWatch::Seen MachineWatch::look() const {
  Seen seen;
  std::vector<double> now = machine_ticks();
  for (size_t i = 0; i < now.size(); i++) now[i] -= ticks_[i];
  rusage usage = own_usage();
  double all = std::accumulate(now.begin(), now.end(), 0.0), own = own_ticks(usage) - own_ticks_;
  double busy = now[0] + now[1] + now[2] + now[5] + now[6];  // neither idle nor waiting nor stolen
  if (all > 0) seen.steal = now[7] / all, seen.other = std::max(0.0, busy - own) / all;
  seen.preempted = usage.ru_nivcsw - preempted_;
  seen.mhz_first = mhz_, seen.mhz_last = clock_mhz();
  return seen;
}

std::string throttling(const MachineWatch::Seen& seen, double drift) {
  std::vector<std::string> signs;
  if (seen.mhz_last < 0.95 * seen.mhz_first)
    signs.push_back(fmt::format("the clock fell from {:.0f} to {:.0f} MHz", seen.mhz_first, seen.mhz_last));
  if (seen.steal > 0.02) signs.push_back(fmt::format("the host took {:.0f} % of the time", 100 * seen.steal));
  if (seen.other > 0.1) signs.push_back(fmt::format("other processes used {:.0f} %", 100 * seen.other));
  if (drift > 1.1)
    signs.push_back(fmt::format("the last third ran {:.2f} times as long as the first", drift));
  return join(signs, ", ");
}

double peak_rss() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) * 1024;
  return 0;
}

}  // namespace cli
