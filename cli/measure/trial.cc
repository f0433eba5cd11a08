// trial.cc: see trial.h.
#include "cli/measure/trial.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace cli {
namespace {

constexpr unsigned kSeconds = 30;
constexpr int kReturned = 113;  // the exit code, so that a child that the work itself ends is told apart

[[noreturn]] void run_in_child(const std::function<void()>& work) {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  if (const int null = open("/dev/null", O_WRONLY); null >= 0)
    for (int stream : {STDOUT_FILENO, STDERR_FILENO}) dup2(null, stream);
  alarm(kSeconds);
  try {
    work();
  } catch (...) {  // failures are reported when the work is done in this process
  }
  _exit(kReturned);
}

}  // namespace

std::string trial(const std::function<void()>& work) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return "";
  if (child == 0) run_in_child(work);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
    return "does not return within " + std::to_string(kSeconds) + " s";
  if (WIFSIGNALED(status)) return std::string("crashes: ") + strsignal(WTERMSIG(status));
  if (WEXITSTATUS(status) == kReturned) return "";
  return "exits with code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace cli
