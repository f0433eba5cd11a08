// in_child.h: runs code in a forked child.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>

namespace keel_test {

// The status of a forked child that runs `body`: 0; 1 if it throws or returns false; else a signal, that of
// its alarm if it waits longer than any lock is held.
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
