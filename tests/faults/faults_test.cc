// faults_test.cc: every allocation and every file operation of every scenario fails once, and from then on.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/faults/inject.h"
#include "tests/faults/scenarios.h"

namespace keel::test {
namespace {

constexpr int64_t kMostCalls = 200'000;  // far more than any scenario makes

struct Injected {
  Kind kind;
  Mode mode;
  int error;
  const char* name;
};
const Injected kInjected[] = {{Kind::kMemory, Mode::kOnce, 0, "MemoryOnce"},
                              {Kind::kMemory, Mode::kFromThenOn, 0, "MemoryFromThenOn"},
                              {Kind::kFile, Mode::kOnce, EIO, "FileIoError"},
                              {Kind::kFile, Mode::kOnce, EINTR, "FileInterrupted"},
                              {Kind::kFile, Mode::kFromThenOn, ENOSPC, "FileFull"},
                              {Kind::kFile, Mode::kFromThenOn, EMFILE, "FileTooMany"}};

class Faults : public ::testing::TestWithParam<std::tuple<Scenario, Injected>> {
 protected:
  static void SetUpTestSuite() {
    MakeFiles();
    context_ = NewContext();
    ASSERT_TRUE(context_);
  }
  static void TearDownTestSuite() { keel_context_free(context_); }
  static keel_context* context_;
};
keel_context* Faults::context_ = nullptr;

// Describes a wrong end of a run; null: none.
const char* Judge(const Outcome& outcome, Kind kind, bool injected) {
  if (outcome.rc == KEEL_OK) return outcome.right ? nullptr : "a wrong answer without an error";
  if (!injected) return "an error without a fault";
  if (!outcome.message[0]) return "an error without a text";
  if (kind == Kind::kMemory && outcome.rc != KEEL_OOM) return "not KEEL_OOM";
  return nullptr;
}

// Objects created once and kept (an op of the catalogue that only an error uses) are not leaks, which grow
// with each run. Returns the number of live blocks.
int64_t Settled(const Scenario& scenario, const Injected& injected, int64_t n, keel_context* context) {
  int64_t blocks = LiveBlocks();
  Arm(injected.kind, injected.mode, n, injected.error);
  scenario.run(context);
  Disarm();
  return LiveBlocks() == blocks ? blocks : -1;
}

TEST_P(Faults, EachCallOnce) {
  const auto& [scenario, injected] = GetParam();
  for (int warm = 0; warm < 2; warm++) {
    Outcome outcome = scenario.run(context_);
    ASSERT_EQ(outcome.rc, KEEL_OK) << outcome.message;
    ASSERT_TRUE(outcome.right && Works(context_));
  }
  int64_t blocks = LiveBlocks(), files = OpenFiles();
  for (int64_t n = 1; n < kMostCalls; n++) {
    Arm(injected.kind, injected.mode, n, injected.error);
    Outcome outcome = scenario.run(context_);
    bool failed = Disarm();
    const char* problem = Judge(outcome, injected.kind, failed);
    if (!problem && !Works(context_)) problem = "the context does not work any more";
    if (!problem && LiveBlocks() > blocks) blocks = Settled(scenario, injected, n, context_);
    if (!problem && LiveBlocks() != blocks) problem = "blocks of memory leaked";
    if (!problem && OpenFiles() != files) problem = "files were left open";
    ASSERT_FALSE(problem) << problem << ": call " << n << ", " << FailedCall() << "; code " << outcome.rc
                          << ", text: " << outcome.message << "; blocks " << blocks << " -> " << LiveBlocks();
    if (!failed) return;
  }
  FAIL() << "did not end";
}

INSTANTIATE_TEST_SUITE_P(, Faults,
                         ::testing::Combine(::testing::ValuesIn(Scenarios()), ::testing::ValuesIn(kInjected)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + std::get<1>(info.param).name;
                         });

}  // namespace
}  // namespace keel::test
