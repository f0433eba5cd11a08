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
    {"inline", "writes graphs out where they are called", KEEL_PHASE_CANON, 1, KEEL_EXACT, 0, nullptr,
     "loop fold", run<inline_calls>},
    {"loop", "takes the branch that is known, and out of loops what need not be there", KEEL_PHASE_CANON, 1,
     KEEL_EXACT, 0, nullptr, "fold", run<loop>},
    {"fold", "computes at once what depends on constants only", KEEL_PHASE_CANON, 1, KEEL_EXACT, 0, nullptr,
     nullptr, run<fold>},
    {"unpack", "the same where it makes constants larger, as of quantised weights; not in files",
     KEEL_PHASE_CANON, 1, KEEL_EXACT, 0, "fold", "simplify", run<unpack>},
    {"simplify", "drops and merges nodes by identities that hold for all values", KEEL_PHASE_CANON, 1,
     KEEL_EXACT, 0, "fold", nullptr, run<simplify>},
    {"cse", "computes once what is computed twice", KEEL_PHASE_CANON, 1, KEEL_EXACT, 0, "fold simplify",
     "nearby", run<cse>},
    {"ahead", "products of all entries of a scan at once, before it", KEEL_PHASE_CANON, 2, KEEL_CLOSE, 0,
     "loop fold simplify", nullptr, run<ahead>},
    {"nearby", "scales and batch norms into weights; cheaper forms of the same", KEEL_PHASE_CANON, 2,
     KEEL_CLOSE, 0, "fold simplify", nullptr, run<nearby>},
    {"compose", "softmax, norms, gelu and attention from the ops that spell them out", KEEL_PHASE_LOWER, 1,
     KEEL_CLOSE, 0, nullptr, "layout epilogue map", run<compose>},
    {"transpose", "transposes and reshapes that cancel across other ops", KEEL_PHASE_LOWER, 1, KEEL_EXACT, 0,
     "compose", "layout epilogue map", run<transpose>},
    {"layout", "gives connected image ops to the device whole, for layouts of its own", KEEL_PHASE_LOWER, 2,
     KEEL_CLOSE, 0, nullptr, nullptr, run<layout>},
    {"epilogue", "gives a product or convolution and what follows it to the device as one", KEEL_PHASE_LOWER,
     1, KEEL_CLOSE, 0, "layout", nullptr, run<epilogue>},
    {"map", "gives groups of elementwise ops to the device as one", KEEL_PHASE_LOWER, 1, KEEL_EXACT, 0,
     "layout epilogue", nullptr, run<map>},
};
const keel_plugin kPlugin = {KEEL_PLUGIN_HEADER,
                             "passes",
                             "0.1.0",
                             "rewrites graphs into ones that run faster",
                             nullptr,
                             nullptr,
                             0,
                             0,
                             nullptr,
                             nullptr,
                             0,
                             0,
                             KEEL_ARRAY(kPasses)};

}  // namespace
}  // namespace keel_passes

KEEL_PLUGIN(keel_passes::kPlugin)
