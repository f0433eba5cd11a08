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

// Cores that a control group's folder allows, or less than 0: no limit there. Version 2 has the quota and the
// period in one file, version 1 in two.
double QuotaOf(const std::string& folder) {
  double quota = -1, period = 0;
  std::string word;
  if (std::ifstream v2(folder + "/cpu.max"); v2 >> word >> period)
    return word == "max" || period <= 0 ? -1 : std::atof(word.c_str()) / period;
  std::ifstream q(folder + "/cpu.cfs_quota_us"), p(folder + "/cpu.cfs_period_us");
  return q >> quota && p >> period && quota > 0 && period > 0 ? quota / period : -1;
}

// The tightest quota of our group and of those around it.
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
    if (!controllers.empty() && controllers.find("cpu") == std::string::npos) continue;
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

// Cores that launches count as theirs; a forked child begins with those of its only thread.
std::atomic<int> in_use{0};
struct Held {
  int size = 0, cores = 0;  // of a launch under way on this thread
};
thread_local Held held;
const int fork_watch =
    pthread_atfork(nullptr, nullptr, [] { in_use.store(held.cores, std::memory_order_relaxed); });

}  // namespace

int Budget() {
  static std::atomic<int> cores{0};  // no static local of its own: a forked child must not wait for its maker
  int n = cores.load(std::memory_order_relaxed);
  if (n == 0) cores.store(n = keel_threads_reserve(Cores()), std::memory_order_relaxed);
  return n;
}

Team::Team(uint32_t threads) {
  if (keel_threads_inside()) return;
  const int wanted =
      std::max(1, static_cast<int>(std::min<uint32_t>(threads, static_cast<uint32_t>(Budget()))));
  if (held.size > 0) {
    size_ = std::min(wanted, held.size);
    return;
  }
  size_ = wanted;
  taken_ = 1;  // its own core, also where there is none: others see that this one works
  const int used = 1 + in_use.fetch_add(1, std::memory_order_relaxed);
  if (const int helpers = std::clamp(Budget() - used, 0, wanted - 1); wanted > 1) {
    in_use.fetch_add(helpers, std::memory_order_relaxed);
    taken_ += helpers;
    keel_threads_set_helpers(helpers);
  }
  held = {size_, taken_};
}

Team::~Team() {
  if (taken_ == 0) return;
  held = {};
  keel_threads_set_helpers(INT_MAX);
  in_use.fetch_sub(taken_, std::memory_order_relaxed);
}

}  // namespace keel_cpu
