// pass.h: runs the passes of a context on a graph, each on a private copy that is verified afterwards. Passes
// of phase canon repeat, in order, until a round makes no edit, up to a limit. A pass that fails is rolled
// back, reported, and disabled for the context; running out of memory fails the whole run. Bodies of calls
// that the device does not support whole are optimised, too; the canon passes see both until neither changes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernel/base/mutex.h"
#include "kernel/runtime/pass/rewrite.h"

namespace keel {

class Json;

// The selection of passes. `only`: exactly these; otherwise the passes of the level, with some enabled or
// disabled by name.
struct PassChoice {
  int32_t level = 2;  // 0: none ... 3: also passes that may change results
  bool level_given = false;
  std::vector<std::string> only, on, off;
  uint64_t fuel = UINT64_MAX;  // maximum number of edits of all passes together
  std::string dump = {};       // print graphs after this pass, or "all"

  bool given() const { return level_given || !only.empty() || !on.empty() || !off.empty(); }
};
// "fold,map": only these; "+fast,-map": changes to the passes of the level.
absl::Status ParsePasses(const std::string& text, PassChoice* choice);

struct PassRun {
  std::string name, plugin;
  double ms = 0;
  uint64_t edits = 0;
  std::string error, diff;  // of a pass that was rolled back, with its edits
  std::string skipped;      // the reason, if it did not run
};
struct PassDump {
  std::string pass, text;  // of the whole module
};
struct PassReport {
  int32_t level = 0;
  std::vector<PassRun> runs;  // one per pass
  std::vector<PassDump> dumps;

  uint64_t Edits() const;
  void Add(PassRun run);  // accumulates runs of the same pass
  void Add(const PassReport& more);
  void Write(Json& json) const;  // the members "level", "passes", "dumps"
};

class Passes {
 public:
  explicit Passes(Registry& registry) : registry_(registry) {}
  // NotFound for unknown names.
  absl::StatusOr<PassGraph> Run(PassGraph graph, const PassTarget& target, const PassChoice& choice,
                                PassReport* report);
  // Why the pass is disabled in this context; "": it is not.
  std::string Disabled(const std::string& name);

 private:
  struct Job;
  // Both return the number of edits. `work` is reused if a pass makes none.
  absl::StatusOr<uint64_t> RunCanon(const Job& job, std::unique_ptr<Rewrite>* work, PassGraph* graph);
  absl::StatusOr<uint64_t> RunEach(const Job& job, std::span<const Pass> passes,
                                   std::unique_ptr<Rewrite>* work, PassGraph* graph);
  std::string SkipReason(const Job& job, const std::string& name);
  void Disable(const absl::Status& status, std::unique_ptr<Rewrite>* work, PassRun* run);

  Registry& registry_;
  Mutex mutex_;
  std::map<std::string, std::string> disabled_;
};

}  // namespace keel
