// kills_test.cc: a saving process is killed at each of its file operations: before it, in the middle of a
// write, after it. The file must then be the complete old or new one. Calls are interposed as in inject.cc.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdarg>

#include <filesystem>
#include <functional>
#include <keel/keel.hpp>

#include "gtest/gtest.h"

namespace {

enum class Moment { kBefore, kMiddle, kAfter };
Moment moment = Moment::kBefore;
int64_t left = 0;  // calls until the kill; 0: disarmed

// Whether this is the armed call; if killed before it, the process ends here.
bool LastCall() {
  if (left == 0 || --left) return false;
  if (moment == Moment::kBefore) kill(getpid(), SIGKILL);
  return true;
}
template <typename Result>
Result End(bool last, Result result) {
  if (last) kill(getpid(), SIGKILL);
  return result;
}
template <typename Function>
Function Next(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#pragma GCC visibility push(default)  // libkeel calls these
extern "C" {
int open(const char* path, int flags, ...) {
  static auto real = Next(&open, "open");
  va_list list;
  va_start(list, flags);
  int mode = flags & O_CREAT ? va_arg(list, int) : 0;
  va_end(list);
  bool last = LastCall();
  return End(last, real(path, flags, mode));
}
ssize_t write(int fd, const void* data, size_t n) {
  static auto real = Next(&write, "write");
  bool last = LastCall();
  return End(last, real(fd, data, last && moment == Moment::kMiddle ? n / 2 : n));
}
int fsync(int fd) {
  static auto real = Next(&fsync, "fsync");
  bool last = LastCall();
  return End(last, real(fd));
}
int rename(const char* from, const char* to) {
  static auto real = Next(&rename, "rename");
  bool last = LastCall();
  return End(last, real(from, to));
}
int close(int fd) {
  static auto real = Next(&close, "close");
  bool last = LastCall();
  return End(last, real(fd));
}
}
#pragma GCC visibility pop

namespace {

// Runs in a forked process; true if it was killed.
bool Killed(Moment when, int64_t n, const std::function<void()>& body) {
  pid_t child = fork();
  if (child == 0) {
    moment = when;
    left = n;
    try {
      body();
    } catch (...) {
      _exit(1);
    }
    left = 0;
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status))
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
  else
    EXPECT_EQ(WEXITSTATUS(status), 0);
  return WIFSIGNALED(status);
}

class Kills : public testing::TestWithParam<Moment> {
 protected:
  Kills() {
    std::string name = testing::TempDir() + "keel_kills_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
  }
  ~Kills() override { std::filesystem::remove_all(folder); }
  // save(k) writes generation k, load() returns the generation on disk; a mixture or a missing file is an
  // error.
  void run(const std::function<void(int)>& save, const std::function<int()>& load) {
    int generation = 1, kills = 0, survived_old = 0;
    save(generation);
    for (;; kills++) {
      int next = generation + 1;
      bool killed = Killed(GetParam(), kills + 1, [&] { save(next); });
      int found = load();
      EXPECT_TRUE(found == generation || found == next) << found << " after the kill at call " << kills + 1;
      survived_old += found == generation;
      EXPECT_TRUE(killed || found == next);
      generation = found;
      if (!killed || HasFailure() || kills > 1000) break;
    }
    EXPECT_GE(kills, 6) << "open, write, fsync, close, rename and fsync of the folder";
    EXPECT_GE(survived_old, 4);
    save(generation + 1);  // leftovers of killed processes do not matter
    EXPECT_EQ(load(), generation + 1);
  }
  std::string folder;
  keel::Context context;
};
std::string NameOf(const testing::TestParamInfo<Moment>& info) {
  const char* names[] = {"before", "middle", "after"};
  return names[static_cast<int>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Moments, Kills, testing::Values(Moment::kBefore, Moment::kMiddle, Moment::kAfter),
                         NameOf);

constexpr int64_t kMany = 100'000;  // elements: several pages

TEST_P(Kills, CheckpointsSurvive) {
  std::string path = folder + "/c.keel";
  auto variable = [&](int value, int64_t n) {
    std::vector<float> values(static_cast<size_t>(n), static_cast<float>(value));
    return keel::Variable(context, keel::Array::of<float>(context, std::vector{n}, values));
  };
  run(
      [&](int k) {
        keel::save_checkpoint(context, path, {{"layer/w", variable(k, kMany)}, {"layer/b", variable(k, 1)}});
      },
      [&] {
        keel::Variable w = variable(0, kMany), b = variable(0, 1);
        keel::load_checkpoint(context, path, {{"layer/w", w}, {"layer/b", b}});
        keel::Array weights = w.read();
        for (float v : weights.values<float>())
          if (v != b.read().item<float>()) return -1;
        return static_cast<int>(b.read().item<float>());
      });
}

TEST_P(Kills, ModulesSurvive) {
  std::string path = folder + "/m.keel";
  run(
      [&](int k) {
        std::string text = "keel 1\nmeta \"generation\" = \"" + std::to_string(k) +
                           "\"\nconst w: i32[2] = [" + std::to_string(k) + ", " + std::to_string(k) +
                           "]\nfn @f() {\n  return w\n}\nentry f = @f () -> (y)\n";
        keel::Module::parse(context, text).save(path);
      },
      [&] {
        std::string text = keel::Module::load(context, path).text();
        size_t at = text.find("\"generation\" = \"");
        return at == std::string::npos ? -1 : std::atoi(text.c_str() + at + 16);
      });
}

}  // namespace
