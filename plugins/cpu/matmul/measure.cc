// measure.cc: times a product by oneDNN and by the own loops, on one thread of the caller (see tuned.h).
#include <chrono>

#include "plugins/cpu/matmul/matmul.h"
#include "plugins/cpu/matmul/tuned.h"
#include "plugins/cpu/onednn/onednn.h"

namespace keel_cpu {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 30;  // of operands and results
constexpr int64_t kNanoseconds = 20'000'000;      // for each side, unless kLeastRuns take longer
constexpr int kLeastRuns = 3, kMostRuns = 100;

int64_t Time(const std::function<void()>& run) {
  const auto before = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - before)
      .count();
}

// Operands that do not become denormal.
Bytes Filled(int64_t count) {
  Bytes bytes = Allocate(static_cast<size_t>(count) * sizeof(float));
  std::fill_n(reinterpret_cast<float*>(bytes.get()), count, 0.5f);
  return bytes;
}

struct Operands {
  int64_t dims[3][2];
  Bytes data[3];
  keel_tensor views[3] = {};
  explicit Operands(const MatmulShape& s)
      : dims{{s.ta ? s.k : s.m, s.ta ? s.m : s.k}, {s.tb ? s.n : s.k, s.tb ? s.k : s.n}, {s.m, s.n}} {
    for (int i = 0; i < 3; i++) {
      data[i] = Filled(dims[i][0] * dims[i][1]);
      views[i].data = data[i].get();
      views[i].device = {1, 0};
      views[i].dtype = DtypeOf(KEEL_F32);
      views[i].ndim = 2;
      views[i].shape = dims[i];
    }
  }
};

// The launch of the own loops, on one thread.
struct OwnSide {
  keel_launch launch = {};
  Bytes scratch;
  volatile int32_t cancelled = 0;
  keel_env env = {};
  const keel_tensor* in[2];
  keel_tensor* out[1];
  keel_call call = {};
  OwnSide(Operands& o, const MatmulShape& s, bool constant) : in{&o.views[0], &o.views[1]}, out{&o.views[2]} {
    PrepareLoops(KEEL_F32, s, constant ? o.data[1].get() : nullptr, &launch);
    scratch = Allocate(launch.scratch_bytes + 64);
    env.struct_size = sizeof(env);
    env.threads = 1;
    env.cancelled = &cancelled;
    call.struct_size = sizeof(call);
    call.n_in = 2;
    call.n_out = 1;
    call.count = s.m * s.n;
    call.in = in;
    call.out = out;
    call.state = launch.state;
    call.scratch = scratch.get();
    call.env = &env;
  }
  OwnSide(const OwnSide&) = delete;
  OwnSide& operator=(const OwnSide&) = delete;
  ~OwnSide() {
    if (launch.release != nullptr) launch.release(nullptr, launch.state);
  }
};

// The primitive, as regions make it.
struct OneDnnSide {
  dnnl::matmul run;
  dnnl::memory::desc a, b, c, pad;
  Packed packed;  // a constant b
  Bytes scratch;
  OneDnnSide(const Operands& o, const MatmulShape& s, bool constant) {
    a = Strided({s.m, s.k}, {s.ta ? 1 : s.k, s.ta ? s.m : 1});
    const auto plain = Strided({s.k, s.n}, {s.tb ? 1 : s.n, s.tb ? s.k : 1});
    c = Plain({s.m, s.n});
    const dnnl::matmul::primitive_desc d(Engine(), a, constant ? AnyLayout({s.k, s.n}) : plain, c,
                                         UserScratch());
    b = d.weights_desc();
    pad = d.scratchpad_desc();
    packed = Pack(plain, o.data[1].get(), b);
    scratch = Allocate(pad.get_size() + 64);
    run = dnnl::matmul(d);
  }
  void Run(const Operands& o) {
    run.execute(Stream(), {{DNNL_ARG_SRC, At(a, o.data[0].get())},
                           {DNNL_ARG_WEIGHTS, At(b, packed.data)},
                           {DNNL_ARG_DST, At(c, o.data[2].get())},
                           {DNNL_ARG_SCRATCHPAD, At(pad, scratch.get())}});
    Stream().wait();
  }
};

Timing MeasureOn(const MatmulShape& s, bool constant) {
  Operands o(s);
  OwnSide own(o, s, constant);
  OneDnnSide onednn(o, s, constant);
  const auto run_own = [&] { own.launch.run(&own.call); };
  const auto run_onednn = [&] { onednn.Run(o); };
  run_own();
  run_onednn();
  Timing best = {INT64_MAX, INT64_MAX};
  int64_t spent = 0;
  for (int i = 0; i < kLeastRuns || (i < kMostRuns && spent < 2 * kNanoseconds); i++) {
    const Timing now = {Time(run_own), Time(run_onednn)};
    spent += now.own + now.onednn;
    best = {std::min(best.own, now.own), std::min(best.onednn, now.onednn)};
  }
  return {std::max<int64_t>(best.own, 1), std::max<int64_t>(best.onednn, 1)};
}

}  // namespace

std::optional<Timing> Measure(const MatmulShape& s, bool constant) {
  const auto bytes = static_cast<int64_t>(sizeof(float)) * (s.Touched() + 2 * s.k * s.n);
  if (bytes > kMostBytes || s.Work() == 0) return {};
  const int before = keel_threads_get();
  SetThreads(1);
  std::optional<Timing> made;
  try {
    made = MeasureOn(s, constant);
  } catch (const std::exception&) {  // no memory, or oneDNN has none for this shape
  } catch (const Error&) {
  }
  SetThreads(before);
  return made;
}

}  // namespace keel_cpu
