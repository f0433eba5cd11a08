// in_child.h: what a forked child of the test can do.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>

namespace keel_test {

// The status of a forked child that runs `body`: 0, 1 if it throws or is wrong, else a signal: of its alarm,
// if it waits for longer than any lock is held.
inline int InChild(unsigned seconds, const std::function<bool()>& body) {
  pid_t child = fork();
  if (child == 0) {
    alarm(seconds);
    bool right = false;
    try {
      right = body();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
    _exit(right ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace keel_test
