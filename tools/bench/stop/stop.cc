// stop.cc: latency from keel_context_cancel to the return of the run, for each kind of work (cases.h), and a
// check that the plan still produces identical bits afterwards. Usage: stop [--device cpu] [--tries 20]
// [--threads N] [PART OF A NAME]. See ../README.md.
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include <abi/keel_plugin.h>
#include "../hot/harness.h"
#include "cases.h"

namespace {

using hot::Call;
using Arrays = std::vector<keel_array*>;

struct Options {
  const char* device = "cpu";
  const char* threads = "2";
  int tries = 20;
  std::string wanted;
};

struct Type {
  std::string name;
  std::vector<int64_t> dims;
};

// "f32[2, 3] i64[]"
std::vector<Type> TypesOf(const char* text) {
  std::vector<Type> types;
  for (const char* p = text; *p != 0;) {
    Type t;
    while (*p != '[') t.name += *p++;
    for (p++; *p != ']';) {
      char* end = nullptr;
      t.dims.push_back(std::strtoll(p, &end, 10));
      for (p = end; *p == ',' || *p == ' ';) p++;
    }
    for (p++; *p == ' ';) p++;
    types.push_back(std::move(t));
  }
  return types;
}

uint64_t Next(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

// A number of each dtype from 31 random bits: indices up to 999, bytes up to 99, floats in [0.5, 1.5).
struct Maker {
  const char* name;
  keel_dt dtype;
  uint64_t (*bits)(uint64_t random);
};
template <class T>
uint64_t Bits(T v) {
  uint64_t bits = 0;
  std::memcpy(&bits, &v, sizeof v);
  return bits;
}
constexpr Maker kMakers[] = {
    {"bool", KEEL_BOOL, [](uint64_t r) { return r & 1; }},
    {"i8", KEEL_I8, [](uint64_t r) { return r % 100; }},
    {"i32", KEEL_I32, [](uint64_t r) { return r % 1000; }},
    {"i64", KEEL_I64, [](uint64_t r) { return r % 1000; }},
    {"u64", KEEL_U64, [](uint64_t r) { return r; }},
    {"f16", KEEL_F16, [](uint64_t r) { return 0x3800 + (r & 0x7FF) / 2; }},
    {"bf16", KEEL_BF16, [](uint64_t r) { return 0x3F00 + (r & 0xFF) / 2; }},
    {"f32", KEEL_F32, [](uint64_t r) { return Bits(0.5f + static_cast<float>(r) * 0x1p-31f); }},
    {"f64", KEEL_F64, [](uint64_t r) { return Bits(0.5 + static_cast<double>(r) * 0x1p-31); }},
};

keel_array* Random(keel_context* c, const Type& type) {
  for (const Maker& m : kMakers) {
    if (type.name != m.name) continue;
    keel_array* a = nullptr;
    Call(keel_array_new, c, m.dtype, type.dims.data(), static_cast<int32_t>(type.dims.size()), &a);
    keel_tensor t;
    keel_array_tensor(a, &t);
    const size_t size = std::max(1, t.dtype.bits / 8), n = static_cast<size_t>(keel_count(&t));
    char* to = static_cast<char*>(t.data);
    uint64_t state = n;
    for (size_t i = 0; i < n; i++) {
      const uint64_t bits = m.bits(Next(&state));
      std::memcpy(to + i * size, &bits, size);
    }
    return a;
  }
  std::fprintf(stderr, "stop: no operands of dtype %s\n", type.name.c_str());
  std::exit(1);
}

uint64_t HashOf(const Arrays& arrays) {
  uint64_t hash = 1;
  for (keel_array* a : arrays) {
    keel_tensor t;
    keel_array_tensor(a, &t);
    const size_t bytes = static_cast<size_t>(keel_count(&t)) * std::max(1, t.dtype.bits / 8);
    const char* p = static_cast<const char*>(t.data);
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
      uint64_t word;
      std::memcpy(&word, p + i, 8);
      hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    }
    for (size_t i = bytes / 8 * 8; i < bytes; i++) hash = (hash ^ static_cast<uint8_t>(p[i])) * 31;
  }
  return hash;
}

std::string TextOf(const stops::Case& c) {
  constexpr const char* kNames[] = {"x", "y", "z", "w", "v"};
  std::string params, types;
  for (const char* p = c.out; *p != 0; p++)
    types += p[0] == ' ' && p[-1] == ']' ? std::string(", ") : std::string(1, *p);
  size_t i = 0;
  for (const Type& t : TypesOf(c.in)) {
    std::string dims;
    for (int64_t d : t.dims) dims += (dims.empty() ? "" : ", ") + std::to_string(d);
    params += std::string(i > 0 ? ", " : "") + kNames[i] + ": " + t.name + "[" + dims + "]";
    i++;
  }
  const bool two = TypesOf(c.out).size() == 2;
  return "keel 1 opset core 1\n\nfn @main(" + params + ") -> " + types + " {\n " + c.body + "\n return r" +
         (two ? ", s" : "") + "\n}\n";
}

struct Run {
  keel_rc rc;
  double began, ended;
  uint64_t hash;
};
Run RunOnce(keel_plan* plan, const Arrays& in, size_t results) {
  Arrays out(results);
  Run r{KEEL_OK, hot::Now(), 0, 0};
  r.rc = keel_plan_run(plan, in.data(), static_cast<uint32_t>(in.size()), out.data(),
                       static_cast<uint32_t>(results), nullptr);
  r.ended = hot::Now();
  if (r.rc == KEEL_OK) r.hash = HashOf(out);
  for (keel_array* a : out) keel_array_free(a);
  return r;
}

// Cancels at a random time of the run. Returns the times from then to the end; none if the run ended earlier.
std::vector<double> Tries(keel_context* context, keel_plan* plan, const Arrays& in, size_t results,
                          double whole, int tries) {
  std::mt19937 random(7);
  std::vector<double> ns;
  for (int i = 0; i < 3 * tries && static_cast<int>(ns.size()) < tries; i++) {
    const double wait = std::uniform_real_distribution<>(0, whole)(random);
    double asked = 0;
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::duration<double, std::nano>(wait));
      asked = hot::Now();
      keel_context_cancel(context, 1);
    });
    const Run r = RunOnce(plan, in, results);
    other.join();
    keel_context_cancel(context, 0);
    if (r.rc == KEEL_CANCELLED) ns.push_back(r.ended - asked);
  }
  return ns;
}

// False if the results changed after cancelled runs.
bool Measure(keel_context* context, const Options& o, const stops::Case& c) {
  Arrays in;
  for (const Type& t : TypesOf(c.in)) in.push_back(Random(context, t));
  const size_t results = TypesOf(c.out).size();
  bool same = true;
  {
    hot::Prepared p(context, o.device, TextOf(c), {{"threads", o.threads}});
    RunOnce(p.plan, in, results);
    const Run before = RunOnce(p.plan, in, results);
    const double whole = before.ended - before.began;
    std::vector<double> ns = Tries(context, p.plan, in, results, whole, o.tries);
    std::sort(ns.begin(), ns.end());
    same = RunOnce(p.plan, in, results).hash == before.hash;
    const double middle = ns.empty() ? NAN : ns[ns.size() / 2], worst = ns.empty() ? NAN : ns.back();
    std::printf("| %-32s | %8.1f | %8.2f | %8.2f | %3zu |%s%s\n", c.name, whole / 1e6, middle / 1e6,
                worst / 1e6, ns.size(), worst > 25e6 ? " late" : "", same ? "" : " another answer");
    std::fflush(stdout);
  }
  for (keel_array* a : in) keel_array_free(a);
  return same;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; i++) {
    const auto is = [&](const char* name) { return std::strcmp(argv[i], name) == 0 && i + 1 < argc; };
    if (is("--device"))
      o.device = argv[++i];
    else if (is("--threads"))
      o.threads = argv[++i];
    else if (is("--tries"))
      o.tries = std::atoi(argv[++i]);
    else
      o.wanted = argv[i];
  }
  keel_context* context = nullptr;
  Call(keel_context_new, static_cast<const keel_kv*>(nullptr), 0u, &context);
  Call(keel_plugin_load, context, nullptr);
  std::printf("| work | whole, ms | median to stop, ms | worst | tries |\n| --- | --- | --- | --- | --- |\n");
  bool same = true;
  for (const stops::Case& c : stops::kCases)
    if (std::string(c.name).find(o.wanted) != std::string::npos) same &= Measure(context, o, c);
  keel_context_free(context);
  return same ? 0 : 1;
}
