// terminal.h: output for terminals only: wrapped lines, progress on stderr.
#ifndef KEEL_CLI_TERMINAL_H
#define KEEL_CLI_TERMINAL_H
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

namespace cli {

// Columns of the terminal of a stream; 0 if it is not a terminal.
size_t terminal_width(std::FILE* stream);
size_t columns(std::string_view text);  // that UTF-8 text takes
// Cuts to so many columns and ends with "…"; 0: unchanged.
std::string cut_to(std::string_view text, size_t width);
// Wraps a line at spaces if possible; continuation lines are indented, below the second column if there is
// one.
std::string wrapped(std::string_view line, size_t width);
// Wraps all later lines to stdout and stderr if they are terminals.
void fit_streams();
// Prints a text with lines cut to the width of a terminal.
void print_text(std::string_view text);

// "keel bench: run 31 of 100" on stderr if it is a terminal; erased at the end.
class Progress {
 public:
  explicit Progress(const char* command);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void say(std::string_view what);
  void done();
  void count(std::string_view what, int64_t done, int64_t of);  // updates at most ten times per second

 private:
  std::string command_;
  bool shown_ = false, terminal_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace cli
#endif
