// plugin.cc: the CPU device: the table of impls, joined from the families, and the plugin's entry point.
//
// Loading only joins the tables. oneDNN's engine and primitives are created by the first prepare that needs
// them.
#include <sys/sysinfo.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "plugins/cpu/common.h"
#include "plugins/cpu/matmul/tuned.h"
#include "plugins/cpu/parallel/lanes.h"
#include "plugins/cpu/simd/simd.h"
#include "sdk/plugin/table.h"

namespace keel_cpu {
namespace {

std::vector<keel_impl> Join() {
  std::vector<keel_impl> all;
  for (Impls (*family)() :
       {ElementwiseImpls,   UnaryImpls,     SelectImpls,   CastImpls,      StorageImpls, ShapeImpls,
        PermuteImpls,       GatherImpls,    ScatterImpls,  ReduceImpls,    ArgImpls,     TopKImpls,
        SuppressImpls,      NormImpls,      MatmulImpls,   Int8Impls,      BlockImpls,   ConvImpls,
        ConvIntegerImpls,   ConvGradImpls,  ConvLoopImpls, PoolImpls,      RandomImpls,  RegionImpls,
        MapImpls,           MapReduceImpls, ChainImpls,    AttentionImpls, WhileImpls,   TreeImpls,
        LinearAlgebraImpls, DftImpls,       RecurrentImpls})
    all.insert(all.end(), family().begin(), family().end());
  return all;
}
// the families' tables are constinit, so static initialisation order is safe
const std::vector<keel_impl> impls = Join();

// One line of a file of sysfs, without its end; "" if there is no such file.
std::string LineOf(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

// The classes that this machine has and the data caches of its first processor, "classes sse4, avx2; L1 32K,
// L2 1024K"; processor instructions would report the caches of the host of a virtual machine.
std::string Capabilities() {
  std::string text = "classes ";
  for (int i = 0; i <= static_cast<int>(MachineIsa()); i++)
    text += (i > 0 ? ", " : "") + std::string(NameOf(static_cast<Isa>(i)));
  const char* separator = "; ";
  for (int i = 0; i < 8; i++) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const std::string size = LineOf(folder + "size");
    if (size.empty() || LineOf(folder + "type") == "Instruction") continue;
    text.append(separator).append("L").append(LineOf(folder + "level")).append(" ").append(size);
    separator = ", ";
  }
  return text;
}

keel_rc Info(const keel_host*, uint32_t, keel_device_info* out) {
  struct sysinfo memory = {};
  out->flags = KEEL_DEVICE_HOST_MEMORY;
  out->dl_type = 1;
  out->dl_id = 0;
  out->memory = sysinfo(&memory) == 0 ? static_cast<uint64_t>(memory.totalram) * memory.mem_unit : 0;
  const bool held = UsedIsa() != MachineIsa();
  std::snprintf(out->description, sizeof(out->description),
                "this machine's processor, class %s%s%s: oneDNN, own loops", NameOf(MachineIsa()),
                held ? ", limited by KEEL_CPU_ISA to " : "", held ? NameOf(UsedIsa()) : "");
  std::snprintf(out->capabilities, sizeof(out->capabilities), "%s", Capabilities().c_str());
  return KEEL_OK;
}

keel_rc Open(const keel_host* host, uint32_t, const keel_kv*, uint32_t, keel_dev* out) {
  *out = nullptr;
  if (IsaProblem()) return host->fail(KEEL_INVALID, IsaProblem());
  try {
    OpenTuned(host);
  } catch (...) {
    return Report(host, std::current_exception());
  }
  return KEEL_OK;
}

constexpr keel_device kDevice = [] {
  keel_device d = KEEL_HOST_DEVICE(nullptr, Info, Open, nullptr);
  d.run_lanes = RunLanes;
  d.cost = Cost;
  return d;
}();
const keel_plugin kPlugin = keel::plugin::device_plugin(
    "cpu", "0.1.0", "CPU device: oneDNN and vectorised loops", &kDevice, impls.data(), impls.size());

}  // namespace

Impls AllImpls() { return impls; }

}  // namespace keel_cpu

KEEL_PLUGIN(keel_cpu::kPlugin)
