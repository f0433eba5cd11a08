// terminal.h: what a person at a terminal gets and a pipe does not: lines that fit, progress on stderr.
#ifndef KEEL_CLI_TERMINAL_H
#define KEEL_CLI_TERMINAL_H
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

namespace cli {

// Columns of the terminal behind a stream; 0: it is none.
size_t terminal_width(std::FILE* stream);
size_t columns(std::string_view text);  // that UTF-8 text takes
// At most so many columns, the last of them "…" where something is left out; 0: as it is.
std::string cut_to(std::string_view text, size_t width);
// A line as lines of at most so many columns, broken at spaces where that is possible, the later ones
// indented, below the second column if it has two.
std::string wrapped(std::string_view line, size_t width);
// From now on lines that are printed to stdout or stderr are wrapped where that is a terminal.
void fit_streams();
// Lines of a text, cut to the terminal's width if stdout is one.
void print_text(std::string_view text);

// "keel bench: run 31 of 100" on stderr, if that is a terminal; gone when it ends.
class Progress {
 public:
  explicit Progress(const char* command);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void say(std::string_view what);
  void done();
  void count(std::string_view what, int64_t done, int64_t of);  // draws ten times a second at most

 private:
  std::string command_;
  bool shown_ = false, terminal_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace cli
#endif
