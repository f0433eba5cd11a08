// plugin.cc: the table of passes. To add one: a file with its function, its name in passes.h, a row here.
#include <new>

#include "plugins/passes/passes.h"

namespace keel_passes {
namespace {

template <void (*pass)(Edit&)>
keel_rc run(const keel_host* host, keel_edit* edit) {
  try {
    Edit e(host, edit);
    pass(e);
    return KEEL_OK;
  } catch (const Failure& f) {
    return f.rc;
  } catch (const std::bad_alloc&) {
    return host->fail(KEEL_OOM, "out of memory while rewriting a graph");
  } catch (const std::exception& x) {
    return host->fail(KEEL_INTERNAL, x.what());
  }
}

const keel_pass kPasses[] = {
    {"inline", "replaces calls, and ops that the device lacks, by the nodes that they consist of",
     KEEL_PHASE_CANON, 1, KEEL_EXACT, 0, nullptr, "loop fold", run<inline_nodes>},
    {"loop", "inlines branches and loops known at compile time, hoists invariant nodes out of loops",
     KEEL_PHASE_CANON, 1, KEEL_EXACT, 0, nullptr, "fold", run<loop>},
    {"quantised", "computes contractions of dequantised integers in integers", KEEL_PHASE_CANON, 2,
     KEEL_CLOSE, 0, "inline", "fold", run<quantised>},
    {"fold", "computes nodes with constant operands", KEEL_PHASE_CANON, 1, KEEL_EXACT, 0, nullptr, nullptr,
     run<fold>},
    {"unpack", "folds even if constants grow, as for quantised weights; not in files", KEEL_PHASE_CANON, 1,
     KEEL_EXACT, 0, "fold", "simplify", run<unpack>},
    {"simplify", "removes and merges nodes by identities that hold for all values", KEEL_PHASE_CANON, 1,
     KEEL_EXACT, 0, "fold", nullptr, run<simplify>},
    {"cse", "merges equal nodes (common subexpression elimination)", KEEL_PHASE_CANON, 1, KEEL_EXACT, 0,
     "fold simplify", "nearby", run<cse>},
    {"ahead", "hoists products of single entries out of scans, for all entries at once", KEEL_PHASE_CANON, 2,
     KEEL_CLOSE, 0, "loop fold simplify", nullptr, run<ahead>},
    {"nearby", "folds scales and batch norms into weights; cheaper equivalent forms", KEEL_PHASE_CANON, 2,
     KEEL_CLOSE, 0, "fold simplify", nullptr, run<nearby>},
    {"compose", "recognises softmax, norms, gelu and attention in primitive ops", KEEL_PHASE_LOWER, 1,
     KEEL_CLOSE, 0, nullptr, "layout epilogue map", run<compose>},
    {"transpose", "cancels transposes and reshapes across other ops", KEEL_PHASE_LOWER, 1, KEEL_EXACT, 0,
     "compose", "layout epilogue map", run<transpose>},
    {"layout", "groups connected image ops, for the device's own layouts", KEEL_PHASE_LOWER, 2, KEEL_CLOSE, 0,
     nullptr, nullptr, run<layout>},
    {"within", "returns products of all entries into a scan whose steps the device takes whole",
     KEEL_PHASE_LOWER, 2, KEEL_CLOSE, 0, nullptr, "epilogue map", run<within>},
    {"epilogue", "groups a product or convolution with the ops after it", KEEL_PHASE_LOWER, 1, KEEL_CLOSE, 0,
     "layout", nullptr, run<epilogue>},
    {"map", "groups connected elementwise ops and a reduction of their result", KEEL_PHASE_LOWER, 1,
     KEEL_EXACT, 0, "layout epilogue", nullptr, run<map>},
};
const keel_plugin kPlugin = {
    KEEL_PLUGIN_HEADER, "passes", "0.1.0", "optimizer passes", nullptr, nullptr, 0, 0, nullptr, nullptr, 0, 0,
    KEEL_ARRAY(kPasses)};

}  // namespace
}  // namespace keel_passes

KEEL_PLUGIN(keel_passes::kPlugin)
