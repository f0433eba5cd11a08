// svg.cc: a dot text drawn by Graphviz. See drawing.h.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/data/bytes.h"
#include "cli/exit.h"
#include "cli/show/drawing.h"

extern char** environ;

namespace cli {

// Runs `dot -Tsvg` on files rather than pipes, which could deadlock.
std::string to_svg(const std::string& dot) {
  char in[] = "/tmp/keel-dot-XXXXXX", out[] = "/tmp/keel-svg-XXXXXX";
  int fds[] = {mkstemp(in), mkstemp(out)};
  for (int fd : fds)
    if (fd >= 0) close(fd);
  if (fds[0] < 0 || fds[1] < 0) throw Fail(kBadFile, "cannot make a temporary file in /tmp");
  struct Remove {
    const char *a, *b;
    ~Remove() {
      unlink(a);
      unlink(b);
    }
  } remove{in, out};
  write_file(in, dot);
  const char* argv[] = {"dot", "-Tsvg", "-o", out, in, nullptr};
  pid_t child = 0;
  int status = -1;
  if (posix_spawnp(&child, "dot", nullptr, nullptr, const_cast<char**>(argv), environ) != 0)
    throw Fail(kDevice, "SVG output needs the program dot of Graphviz, which is not installed",
               "install graphviz, or write dot: keel graph FILE -o FILE.dot");
  if (waitpid(child, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Fail(kDevice, "dot failed to draw the graph",
               "write dot and look at it: keel graph FILE -o FILE.dot");
  return read_file(out);
}

}  // namespace cli
