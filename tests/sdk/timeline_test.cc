// timeline_test.cc: the timeline file of a process: its events, threads, children, and errors. The oracle is
// the text of its lines, one event each.
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "devices.h"

namespace {

using keel::Tensor;
using sdk_test::Failure;
using sdk_test::Has;

std::string Text(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

size_t Count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) n++;
  return n;
}

class Timelines : public testing::Test {
 protected:
  void TearDown() override {
    keel_timeline_end(nullptr);
    std::filesystem::remove(path_);
  }
  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("keel-timeline-" + std::to_string(getpid()))).string();
};

TEST_F(Timelines, ShowEagerCallsTracesAndRuns) {
  keel::Timeline timeline(path_);
  auto f = keel::function("f", [](const Tensor& x) { return x * 2 + 1; });
  f(Tensor{1.f});
  f(Tensor{1.f});
  f(Tensor{1.f, 2.f});
  Tensor y = Tensor{3.f} * Tensor{4.f};
  timeline.end();
  std::string text = Text(path_);
  EXPECT_EQ(text.substr(0, 2), "[\n");
  EXPECT_EQ(text.substr(text.size() - 3), "\n]\n");
  EXPECT_EQ(Count(text, "\"cat\":\"trace\""), 1u) << text;
  EXPECT_EQ(Count(text, "\"cat\":\"retrace\""), 1u) << text;
  EXPECT_EQ(Count(text, "\"reason\":\"argument 0 was f32[1], now f32[2]\""), 1u) << text;
  EXPECT_EQ(Count(text, "{\"name\":\"f\",\"cat\":\"run\""), 3u) << text;
  EXPECT_EQ(Count(text, "{\"name\":\"mul\",\"cat\":\"eager\""), 1u) << text;
}

TEST_F(Timelines, LeaveRunsOutWhereNotWanted) {
  keel::Timeline timeline(path_, false);
  keel::function("f", [](const Tensor& x) { return x * 2; })(Tensor{1.f});
  keel::TimedBlock("mine \"quoted\"");
  timeline.end();
  std::string text = Text(path_);
  EXPECT_EQ(Count(text, "\"cat\":\"trace\""), 1u) << text;
  EXPECT_EQ(Count(text, "\"cat\":\"run\""), 0u) << text;
  EXPECT_EQ(Count(text, "\"name\":\"mine \\\"quoted\\\"\",\"cat\":\"program\""), 1u) << text;
}

TEST_F(Timelines, AreEmptyArraysWhereNothingHappened) {
  keel::Timeline(path_).end();
  EXPECT_EQ(Text(path_), "[]\n");
}

TEST_F(Timelines, HaveTracksForEachThread) {
  keel::Timeline timeline(path_);
  { keel::TimedBlock here("here"); }
  std::thread([] { keel::TimedBlock there("there"); }).join();
  timeline.end();
  std::string text = Text(path_);
  EXPECT_EQ(Count(text, "\"name\":\"thread_name\""), 2u) << text;
  EXPECT_TRUE(Has(text, "\"args\":{\"name\":\"program, thread ")) << text;
}

TEST_F(Timelines, TakeSpansOfManyThreads) {
  keel::Timeline timeline(path_);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([] {
      for (int i = 0; i < 2000; i++) keel::TimedBlock block("one of many");
    });
  for (std::thread& thread : threads) thread.join();
  timeline.end();
  std::string text = Text(path_);
  EXPECT_EQ(Count(text, "\"one of many\""), 8000u);
  EXPECT_EQ(Count(text, "\n"), 8000u + 4 + 2) << "an event a line, the names of the tracks, and two brackets";
}

TEST_F(Timelines, AreNotWrittenByChildren) {
  keel::Timeline timeline(path_);
  { keel::TimedBlock block("parent"); }
  if (pid_t child = fork(); child == 0) {
    { keel::TimedBlock block("child"); }
    keel_timeline_end(nullptr);
    _exit(0);
  } else {
    waitpid(child, nullptr, 0);
  }
  timeline.end();
  EXPECT_EQ(Count(Text(path_), "\"parent\""), 1u);
  EXPECT_EQ(Count(Text(path_), "\"child\""), 0u);
}

TEST_F(Timelines, AreOneAtATime) {
  keel::Timeline timeline(path_);
  EXPECT_TRUE(Has(Failure([&] { keel::Timeline again(path_); }), "has not ended yet"));
}

TEST_F(Timelines, SayWhatCannotBeWritten) {
  EXPECT_TRUE(Has(Failure([] { keel::Timeline t("/no/such/folder/t.json"); }),
                  "cannot write the timeline \"/no/such/folder/t.json\": No such file or directory"));
  keel::Timeline full("/dev/full");
  { keel::TimedBlock block("x"); }
  EXPECT_TRUE(Has(Failure([&] { full.end(); }), "cannot write the timeline \"/dev/full\": No space left"));
  keel::Timeline after(path_);  // the previous one is finished
  after.end();
}

TEST_F(Timelines, EndingNoneIsFine) { EXPECT_EQ(keel_timeline_end(nullptr), KEEL_OK); }

}  // namespace
