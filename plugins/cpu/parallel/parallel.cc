// parallel.cc: see parallel.h.
#include "plugins/cpu/parallel/parallel.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

namespace keel_cpu {
namespace {

int Affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

// The CPU quota, in cores, of one control group; negative if unlimited. Version 2 has quota and period in one
// file, version 1 in two.
double QuotaOf(const std::string& folder) {
  double quota = -1, period = 0;
  std::string word;
  if (std::ifstream v2(folder + "/cpu.max"); v2 >> word >> period)
    return word == "max" || period <= 0 ? -1 : std::atof(word.c_str()) / period;
  std::ifstream q(folder + "/cpu.cfs_quota_us"), p(folder + "/cpu.cfs_period_us");
  return q >> quota && p >> period && quota > 0 && period > 0 ? quota / period : -1;
}

// The tightest quota of this process's control group and its ancestors.
double Quota() {
  const char* given = secure_getenv("KEEL_CGROUP");
  const std::string root = given != nullptr ? given : "/sys/fs/cgroup";
  double least = -1;
  const auto look = [&](const std::string& folder) {
    const double q = QuotaOf(folder);
    if (q > 0 && (least < 0 || q < least)) least = q;
  };
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/path" or "4:cpu,cpuacct:/path"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    const std::string base = root + (controllers.empty() ? "" : "/cpu");
    std::string path = line.substr(second + 1);
    for (; path.size() > 1; path.resize(path.rfind('/'))) look(base + path);
    look(base);
  }
  look(root);
  return least;
}

int Cores() {
  const double quota = Quota();
  return quota > 0 ? std::min(Affinity(), std::max(1, static_cast<int>(std::ceil(quota)))) : Affinity();
}

// Cores claimed by launches; reset in a forked child to those of its only thread.
std::atomic<int> in_use{0};
struct LaunchClaim {
  int size = 0, cores = 0;  // of the launch in progress on this thread
};
thread_local LaunchClaim launch_claim;
const int fork_watch =
    pthread_atfork(nullptr, nullptr, [] { in_use.store(launch_claim.cores, std::memory_order_relaxed); });

}  // namespace

int Budget() {
  // not a guarded static: after fork() another thread's initialisation would never finish
  static std::atomic<int> cores{0};
  int n = cores.load(std::memory_order_relaxed);
  if (n == 0) cores.store(n = keel_threads_reserve(Cores()), std::memory_order_relaxed);
  return n;
}

Team::Team(uint32_t threads) {
  if (keel_threads_inside()) return;
  const int wanted =
      std::max(1, static_cast<int>(std::min<uint32_t>(threads, static_cast<uint32_t>(Budget()))));
  if (launch_claim.size > 0) {
    size_ = std::min(wanted, launch_claim.size);
    return;
  }
  size_ = wanted;
  claimed_ = 1;  // the caller's core counts even without workers, so that other launches see it
  const int used = 1 + in_use.fetch_add(1, std::memory_order_relaxed);
  if (const int helpers = std::clamp(Budget() - used, 0, wanted - 1); wanted > 1) {
    in_use.fetch_add(helpers, std::memory_order_relaxed);
    claimed_ += helpers;
    keel_threads_set_helpers(helpers);
  }
  launch_claim = {size_, claimed_};
}

Team::~Team() {
  if (claimed_ == 0) return;
  launch_claim = {};
  keel_threads_set_helpers(INT_MAX);
  in_use.fetch_sub(claimed_, std::memory_order_relaxed);
}

}  // namespace keel_cpu
