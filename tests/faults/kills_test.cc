// kills_test.cc: a saving process is killed at each of its file operations: before it, in the middle of a
// write, after it. The file must then be the complete old or new one; of a pair, none may be. Calls are
// interposed as in inject.cc.
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
int unlink(const char* path) {
  static auto real = Next(&unlink, "unlink");
  bool last = LastCall();
  return End(last, real(path));
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
  // error. may_miss: it returns 0 for a missing file, which is none.
  void run(const std::function<void(int)>& save, const std::function<int()>& load, bool may_miss = false) {
    int generation = 1, kills = 0, survived_old = 0;
    save(generation);
    for (;; kills++) {
      int next = generation + 1;
      bool killed = Killed(GetParam(), kills + 1, [&] { save(next); });
      int found = load();
      if (may_miss && found == 0) save(found = generation);
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

// A kill between the two renames leaves no model, rather than the old one with new weights.
TEST_P(Kills, AModelAndItsWeightsSurvive) {
  for (const char* plugin : {"/keel-onnx.so", "/keel-reference.so"})
    context.load_plugin(std::string(KEEL_TEST_PLUGINS) + plugin);
  setenv("KEEL_ONNX_FILE_BYTES", "0", 1);
  std::string path = folder + "/m.onnx";
  run(
      [&](int k) {
        std::string n = std::to_string(k), all = n;
        for (int i = 1; i < 300; i++) all += ", " + n;
        keel::Module::parse(context, "keel 1\nconst w: i32[300] = [" + all + "]\nconst k: i32[1] = [" + n +
                                         "]\nfn @f() {\n  return w, k\n}\nentry f = @f () -> (y, z)\n")
            .save(path);
      },
      [&] {
        if (!std::filesystem::exists(path)) return 0;
        keel::Module model = keel::Module::import_file(context, path);
        std::vector<keel::Array> got = keel::Session(model, "reference").prepare().run({});
        for (int32_t each : got[0].values<int32_t>())
          if (each != got[1].values<int32_t>()[0]) return -1;
        return static_cast<int>(got[1].values<int32_t>()[0]);
      },
      true);
  unsetenv("KEEL_ONNX_FILE_BYTES");
}

}  // namespace
