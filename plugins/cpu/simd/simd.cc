// simd.cc: see simd.h.
#include "plugins/cpu/simd/simd.h"

#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "dnnl.h"
#include "plugins/cpu/common.h"

namespace keel_cpu {
namespace {

struct IsaRow {
  const char* name;
  int level;  // SIMD level of the loops
  dnnl_cpu_isa_t most;
};
constexpr IsaRow kIsas[] = {{"sse4", 0, dnnl_cpu_isa_sse41},
                            {"avx2", 1, dnnl_cpu_isa_avx2},
                            {"avx512", 2, dnnl_cpu_isa_avx512_core_fp16},
                            {"amx", 2, dnnl_cpu_isa_avx512_core_amx_fp16}};

Isa Detect() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  unsigned a = 0, b = 0, c = 0, d = 0;  // not every compiler has a name for AMX: bit 24 is AMX-TILE
  const bool amx = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 24 & 1);
  return !avx2 ? Isa::kSse4 : !avx512 ? Isa::kAvx2 : !amx ? Isa::kAvx512 : Isa::kAmx;
#else
  return Isa::kSse4;
#endif
}

struct Choice {
  Isa machine = Detect(), used = machine;
  std::string problem;
  Choice() {
    const char* asked = secure_getenv("KEEL_CPU_ISA");
    if (asked == nullptr || *asked == 0) return;
    std::string names;
    for (const IsaRow& row : kIsas) {
      if (std::strcmp(row.name, asked) == 0) {
        used = std::min(machine, static_cast<Isa>(&row - kIsas));
        return;
      }
      names += (names.empty() ? "" : ", ") + std::string(row.name);
    }
    problem =
        "the environment variable KEEL_CPU_ISA is \"" + std::string(asked) + "\"; expected one of " + names;
  }
};
// The table of impls, a static object of another file, depends on it.
const Choice& Chosen() {
  static const Choice choice;
  return choice;
}

}  // namespace

Isa MachineIsa() { return Chosen().machine; }
Isa UsedIsa() { return Chosen().used; }
Chip ThisChip() {
#if defined(__x86_64__)
  if (__builtin_cpu_is("intel")) return Chip::kIntel;
#endif
  return Chip::kAmd;
}
const char* NameOf(Isa isa) { return kIsas[static_cast<int>(isa)].name; }
const char* IsaProblem() { return Chosen().problem.empty() ? nullptr : Chosen().problem.c_str(); }
int SimdLevel() { return kIsas[static_cast<int>(UsedIsa())].level; }
int64_t SecondLevelCache() {
  static const int64_t bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes;
}
bool HasVnni() {
#if defined(__x86_64__)
  static const bool there = SimdLevel() == 2 && __builtin_cpu_supports("avx512vnni");
  return there;
#else
  return false;
#endif
}

void LimitOneDnn() {
  if (UsedIsa() == MachineIsa()) return;
  if (dnnl_set_max_cpu_isa(kIsas[static_cast<int>(UsedIsa())].most) != dnnl_success)
    Throw(KEEL_UNAVAILABLE, "oneDNN was in use before KEEL_CPU_ISA could limit it");
}

}  // namespace keel_cpu
