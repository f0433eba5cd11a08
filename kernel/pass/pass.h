// pass.h: running the passes of a context on a graph: which, in which order, each on a private copy that is
// verified afterwards. Those of phase canon run again, in order, until a round edits nothing, a few rounds at
// most. A pass that fails is rolled back, named, and not used again in the context; where there is no memory,
// that is an error of the whole. Bodies of calls that the device does not take whole are optimised, too.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernel/base/mutex.h"
#include "kernel/pass/rewrite.h"

namespace keel {

// Which passes run. `only`: these; else those of the level, with some switched on or off by name.
struct PassChoice {
  int32_t level = 2;  // 0: none ... 3: also those that may change results
  bool level_given = false;
  std::vector<std::string> only, on, off;
  uint64_t fuel = UINT64_MAX;  // edits of all passes together; then they stop where they are
  std::string dump = {};       // the pass after which graphs are printed, or "all"

  bool given() const { return level_given || !only.empty() || !on.empty() || !off.empty(); }
};
// "fold,map": only these; "+fast,-map": beside those of the level.
absl::Status ParsePasses(const std::string& text, PassChoice* choice);

struct PassRun {
  std::string name, plugin;
  double ms = 0;
  uint64_t edits = 0;
  std::string error, diff;  // of a pass that was rolled back, with what it had edited
  std::string skipped;      // why it did not run
};
struct PassDump {
  std::string pass, text;  // of the whole module
};
struct PassReport {
  int32_t level = 0;
  std::vector<PassRun> runs;  // one for each pass
  std::vector<PassDump> dumps;

  uint64_t Edits() const;
  void Add(PassRun run);  // to the sum of the runs of that pass
  void Add(const PassReport& more);
};

class Passes {
 public:
  explicit Passes(Registry& registry) : registry_(registry) {}
  // NotFound for names that no pass has.
  absl::StatusOr<PassGraph> Run(PassGraph graph, const PassTarget& target, const PassChoice& choice,
                                PassReport* report);
  // Why a pass is not used any more in this context; "": it is.
  std::string Disabled(const std::string& name);

 private:
  struct Job;
  absl::StatusOr<PassGraph> RunOn(const Job& job, PassGraph graph);
  // `work` stays for the next pass if one edits nothing. Gives the number of edits.
  absl::StatusOr<uint64_t> RunEach(const Job& job, std::span<const Pass> passes,
                                   std::unique_ptr<Rewrite>* work, PassGraph* graph);
  std::string WhyNot(const Job& job, const std::string& name);
  void Disable(const absl::Status& status, std::unique_ptr<Rewrite>* work, PassRun* run);

  Registry& registry_;
  Mutex mutex_;
  std::map<std::string, std::string> disabled_;
};

}  // namespace keel
