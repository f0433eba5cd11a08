// threads.cc: policies for concurrent callers that share the cores; plugins/cpu uses the winner, `counted`.
//
// Built on demand: `ninja -C build/release bench-threads`; run: build/release/tools/bench/bench-threads
// [SECONDS [ROUNDS]]. Each of 1, 2, 8 and 64 callers repeats one product or convolution; for each policy the
// table has the total calls per second, and the median and 99th percentile of one call in microseconds.
//   omp      every call uses all cores: oneDNN on OpenMP, no limit on callers
//   budget   the same, but a call runs with one thread while another call has a team
//   counted  the same, but a call also runs with one thread if the callers outnumber the cores
//   split    one-thread primitives; the call that gets the cores splits rows (images: the batch) over a team
//   single   one-thread primitives, never split
// The second table is for one caller with two independent jobs: sequentially with all cores each (`in turn`),
// or concurrently in one parallel region with one thread each (`parallel`): microseconds for both, median and
// minimum of alternating rounds, and the ratios of medians and minima. On a loaded machine only the minimum
// is meaningful. The last column of the first table is processor time per call over all threads: the figure
// that other load disturbs least, and that shows spinning.
#include <omp.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "dnnl.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Layout = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

const int kCores = omp_get_num_procs();
std::atomic<int> spare{kCores};

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}
dnnl::stream& Stream() {
  thread_local dnnl::stream stream(Engine());
  return stream;
}
Layout Plain(const Dims& dims, bool any = false) {
  return any ? Layout(dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any)
             : Layout(dims, dnnl::memory::data_type::f32,
                      dims.size() == 2 ? dnnl::memory::format_tag::ab : dnnl::memory::format_tag::nhwc);
}

// A primitive for some number of threads with its own memory, filled with ordinary numbers: uninitialised
// memory may contain denormals, which made one product six times slower.
struct Job {
  Job(const dnnl::primitive& primitive, std::initializer_list<std::pair<int, Layout>> layouts)
      : run(primitive) {
    for (const auto& [arg, layout] : layouts) {
      dnnl::memory memory(layout, Engine());
      auto* values = static_cast<float*>(memory.get_data_handle());
      for (size_t i = 0; i < layout.get_size() / sizeof(float); i++)
        values[i] = static_cast<float>(i * 2654435761u % 1024) / 1024 - 0.5f;
      args.emplace(arg, memory);
    }
  }
  dnnl::primitive run;
  std::unordered_map<int, dnnl::memory> args;
  void Run() { run.execute(Stream(), args); }
};

struct Work {
  const char* name;
  int64_t rows;  // the divisible dimension
  std::function<Job(int64_t rows)> make;
};

Job Product(int64_t m, int64_t k, int64_t n) {
  const dnnl::matmul::primitive_desc d(Engine(), Plain({m, k}), Plain({k, n}, true), Plain({m, n}));
  return {dnnl::matmul(d),
          {{DNNL_ARG_SRC, d.src_desc()}, {DNNL_ARG_WEIGHTS, d.weights_desc()}, {DNNL_ARG_DST, d.dst_desc()}}};
}
Job Convolution(int64_t batch, int64_t channels, int64_t size) {
  const dnnl::convolution_forward::primitive_desc d(
      Engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
      Plain({batch, channels, size, size}), Plain({channels, channels, 3, 3}, true),
      Plain({batch, channels, size, size}), {1, 1}, {1, 1}, {1, 1});
  return {dnnl::convolution_forward(d),
          {{DNNL_ARG_SRC, d.src_desc()}, {DNNL_ARG_WEIGHTS, d.weights_desc()}, {DNNL_ARG_DST, d.dst_desc()}}};
}

enum Way { kOmp, kBudget, kCounted, kSplit, kSingle };
const char* const kWays[] = {"omp", "budget", "counted", "split", "single"};
bool HasWhole(Way way) { return way == kOmp || way == kBudget || way == kCounted; }

// One caller: its state under each policy, and one call.
class Caller {
 public:
  Caller(const Work& work, Way way) : way_(way) {
    omp_set_num_threads(kCores);
    if (HasWhole(way)) whole_.emplace(work.make(work.rows));
    omp_set_num_threads(1);
    alone_.emplace(work.make(work.rows));
    if (way == kSplit && work.rows >= kCores)
      for (int i = 0; i < kCores; i++)
        parts_.push_back(work.make(work.rows * (i + 1) / kCores - work.rows * i / kCores));
  }
  void Call() {
    const bool team = Take();
    omp_set_num_threads(team && way_ != kSplit ? kCores : 1);
    if (!team || (way_ == kSplit && parts_.empty())) {
      alone_->Run();
    } else if (way_ != kSplit) {
      whole_->Run();
    } else {
#pragma omp parallel num_threads(kCores)
      {
        omp_set_num_threads(1);
        parts_[static_cast<size_t>(omp_get_thread_num())].Run();
      }
    }
    Give(team);
  }

 private:
  bool Take() {
    if (way_ == kOmp || way_ == kSingle) return way_ == kOmp;
    if (way_ == kCounted) spare--;
    int all = kCores - (way_ == kCounted ? 1 : 0);
    return spare.compare_exchange_strong(all, all - (kCores - 1));
  }
  void Give(bool team) {
    if (way_ == kCounted) spare++;
    if (team && way_ != kOmp) spare += kCores - 1;
  }
  Way way_;
  std::optional<Job> whole_, alone_;
  std::vector<Job> parts_;
};

double ProcessorSeconds() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

void Measure(const Work& work, Way way, int callers, double seconds) {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false}, stop{false};
  std::vector<std::vector<double>> times(static_cast<size_t>(callers));
  std::vector<std::thread> threads;
  for (int c = 0; c < callers; c++)
    threads.emplace_back([&, c] {
      Caller caller(work, way);
      caller.Call();
      ready++;
      while (!go) std::this_thread::yield();
      while (!stop) {
        const auto start = Clock::now();
        caller.Call();
        times[static_cast<size_t>(c)].push_back(
            std::chrono::duration<double, std::micro>(Clock::now() - start).count());
      }
    });
  while (ready < callers) std::this_thread::yield();
  const auto start = Clock::now();
  const double spent = ProcessorSeconds();
  go = true;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (auto& t : threads) t.join();
  const double wall = std::chrono::duration<double>(Clock::now() - start).count();
  const double cpu = ProcessorSeconds() - spent;
  std::vector<double> all;
  for (const auto& t : times) all.insert(all.end(), t.begin(), t.end());
  std::sort(all.begin(), all.end());
  if (all.empty()) return static_cast<void>(std::printf("%s: no call ended in time\n", work.name));
  std::printf("%-22s %7d  %-7s %12.0f %12.1f %12.1f %12.1f\n", work.name, callers, kWays[way],
              static_cast<double>(all.size()) / wall, all[all.size() / 2], all[all.size() * 99 / 100],
              1e6 * cpu / static_cast<double>(all.size()));
  std::fflush(stdout);
}

// Two independent jobs of one caller.
class Pair {
 public:
  explicit Pair(const Work& work) {
    for (int i = 0; i < 2; i++) {
      omp_set_num_threads(kCores);
      teams_.push_back(work.make(work.rows));
      omp_set_num_threads(1);
      alone_.push_back(work.make(work.rows));
    }
  }
  void InTurn() {
    omp_set_num_threads(kCores);
    for (Job& job : teams_) job.Run();
  }
  void Parallel() {
#pragma omp parallel num_threads(2)
    {
      omp_set_num_threads(1);
      alone_[static_cast<size_t>(omp_get_thread_num())].Run();
    }
  }

 private:
  std::vector<Job> teams_, alone_;
};

template <class F>
double Microseconds(F&& f) {
  constexpr double kSpan = 1000;  // repetition time
  const auto start = Clock::now();
  for (int n = 1;; n++) {
    f();
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    if (us > kSpan) return us / n;
  }
}

void MeasurePair(const Work& work, int rounds) {
  Pair pair(work);
  std::vector<double> turn, parallel;
  for (int i = 0; i < rounds; i++) {
    turn.push_back(Microseconds([&] { pair.InTurn(); }));
    parallel.push_back(Microseconds([&] { pair.Parallel(); }));
  }
  for (auto* v : {&turn, &parallel}) std::sort(v->begin(), v->end());
  const size_t middle = turn.size() / 2;
  std::printf("%-22s %12.1f %12.1f %8.2f %12.1f %12.1f %8.2f\n", work.name, turn[middle], parallel[middle],
              parallel[middle] / turn[middle], turn[0], parallel[0], parallel[0] / turn[0]);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.5;
  const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 100;
  const Work works[] = {{"product 64x64x64", 64, [](int64_t m) { return Product(m, 64, 64); }},
                        {"product 256x256x256", 256, [](int64_t m) { return Product(m, 256, 256); }},
                        {"product 1024x1024x1024", 1024, [](int64_t m) { return Product(m, 1024, 1024); }},
                        {"conv 1x64x14x14", 1, [](int64_t n) { return Convolution(n, 64, 14); }},
                        {"conv 1x64x56x56", 1, [](int64_t n) { return Convolution(n, 64, 56); }},
                        {"conv 8x64x56x56", 8, [](int64_t n) { return Convolution(n, 64, 56); }}};
  std::printf("%-22s %7s  %-7s %12s %12s %12s %12s\n", "work", "callers", "way", "calls/s", "median us",
              "p99 us", "cpu us");
  for (const Work& work : works)
    for (int callers : {1, 2, 8, 64})
      for (Way way : {kOmp, kBudget, kCounted, kSplit, kSingle}) Measure(work, way, callers, seconds);
  std::printf("\n%-22s %12s %12s %8s %12s %12s %8s\n", "two of, median, least", "in turn us", "parallel us",
              "ratio", "in turn us", "parallel us", "ratio");
  for (const Work& work : works) MeasurePair(work, rounds);
}
