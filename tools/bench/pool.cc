// pool.cc: overhead of one parallel region on the cpu device's thread pool, on libgomp and, if it is
// installed, on TBB, for jobs of several lengths, on a quiet or loaded machine. Built on demand: ninja
// bench-pool.
//
//   bench-pool [--threads N] [--busy N] [--rounds N]
//
// Prints for each job (given by its time on one thread) the median time of a region on each pool, in
// microseconds, and the median over the rounds of its ratio to libgomp. The pools alternate, with pauses in
// which all workers go to sleep.
#include <omp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "plugins/cpu/threads/threads.h"
#ifdef KEEL_BENCH_TBB
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#endif

namespace {

using Clock = std::chrono::steady_clock;
int threads = 2, busy = 0, rounds = 15;

double Microseconds(Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

// A chain of additions without memory traffic, so that only the dispatch differs.
struct Job {
  long steps;
  void operator()(int, int n) const {
    double x = 0;
    for (long i = 0; i < steps / n; i++) asm volatile("addsd %1, %0" : "+x"(x) : "x"(1.0));
  }
};

void One(const Job& job) { job(0, 1); }
void Pool(const Job& job) {
  keel_threads_run(
      threads, [](void* j, int number, int n) { (*static_cast<const Job*>(j))(number, n); },
      const_cast<Job*>(&job));
}
void Gomp(const Job& job) {
#pragma omp parallel num_threads(threads)
  job(omp_get_thread_num(), threads);
}
#ifdef KEEL_BENCH_TBB
void Tbb(const Job& job) {
  static tbb::task_arena arena(threads);
  arena.execute([&] {
    tbb::parallel_for(
        0, threads, [&](int i) { job(i, threads); }, tbb::static_partitioner());
  });
}
#endif

struct Side {
  const char* name;
  void (*run)(const Job&);
  std::vector<double> times;
};

double Measure(const Side& side, const Job& job) {
  usleep(20'000);
  for (int i = 0; i < 20; i++) side.run(job);
  const auto start = Clock::now();
  int n = 0;
  while (Microseconds(Clock::now() - start) < 20'000)
    for (int i = 0; i < 20; i++, n++) side.run(job);
  return Microseconds(Clock::now() - start) / n;
}

double Median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<long>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

void Compare(double length) {
  std::vector<Side> sides = {{"one thread", One, {}}, {"pool", Pool, {}}, {"libgomp", Gomp, {}}};
#ifdef KEEL_BENCH_TBB
  sides.push_back({"tbb", Tbb, {}});
#endif
  const Job probe{1'000'000};
  auto start = Clock::now();
  One(probe);
  const Job job{static_cast<long>(length * 1e6 / Microseconds(Clock::now() - start))};
  for (int round = 0; round < rounds; round++)
    for (Side& side : sides) side.times.push_back(Measure(side, job));
  std::printf("%8.1f us:", length);
  for (const Side& side : sides) {
    std::vector<double> ratios;
    for (int i = 0; i < rounds; i++) ratios.push_back(side.times[i] / sides[2].times[i]);
    std::printf("  %s %.2f (%.2f)", side.name, Median(side.times), Median(ratios));
  }
  std::printf("\n");
}

void StartBusy() {
  for (int i = 0; i < busy; i++)
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) asm volatile("");
    }
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    int* to = flag == "--threads"  ? &threads
              : flag == "--busy"   ? &busy
              : flag == "--rounds" ? &rounds
                                   : nullptr;
    if (to == nullptr) return std::fprintf(stderr, "unknown flag: %s\n", argv[i]), 2;
    *to = std::atoi(argv[i + 1]);
  }
  StartBusy();
  if (keel_threads_reserve(threads) < threads) return std::fprintf(stderr, "no threads\n"), 1;
  for (double length : {2.5, 5.0, 12.5, 60.0, 500.0}) Compare(length);
  return 0;
}
