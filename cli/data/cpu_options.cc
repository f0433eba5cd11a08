// cpu_options.cc: see cpu_options.h.
#include "cli/data/cpu_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "cli/data/model.h"
#include "cli/exit.h"

namespace cli {
namespace {

const std::vector<std::string> kIsas = {"sse4", "avx2", "avx512", "amx"};

bool is_known(const std::string& isa) { return std::find(kIsas.begin(), kIsas.end(), isa) != kIsas.end(); }

// The classes of this machine, "sse4, avx2": the device reports "classes sse4, avx2; L1 32K, L2 1024K".
std::string classes_here(const keel::Context& context, const std::string& isa) {
  const std::string mark = "classes ";
  try {
    const Json found = Json::parse(context.report("devices:cpu"));
    const std::string text = found.at(0).value("capabilities", "");
    if (text.starts_with(mark)) return text.substr(mark.size(), text.find(';') - mark.size());
  } catch (const keel::Error&) {
  }
  throw Fail(kDevice, fmt::format("--isa {}: it is an option of the device cpu, which is not here", isa),
             "keel doctor lists the plugins found and why they were refused");
}

}  // namespace

void set_cpu_options(const Args& args) {
  if (is_known(args.isa)) setenv("KEEL_CPU_ISA", args.isa.c_str(), 1);
  if (args.tune) setenv("KEEL_CPU_TUNE", "1", 1);
}

void check_cpu_options(const keel::Context& context, const Args& args) {
  if (args.isa.empty()) return;
  const std::string here = classes_here(context, args.isa);
  if ((", " + here + ",").find(", " + args.isa + ",") != std::string::npos) return;
  const std::string hint = fmt::format("choose from {}, or leave --isa out for the highest", here);
  if (is_known(args.isa))
    throw Fail(kDevice, fmt::format("--isa {}: this machine's processor has the classes {}", args.isa, here),
               hint);
  throw Fail(kUsage,
             fmt::format("--isa {}: no such class of processor; there are {}, and this machine's has {}",
                         args.isa, join(kIsas, ", "), here),
             hint);
}

}  // namespace cli
