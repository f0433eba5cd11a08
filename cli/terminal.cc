// terminal.cc: see terminal.h.
#include "terminal.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace cli {
namespace {

// Continuation bytes of UTF-8 take no column.
bool begins_column(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

}  // namespace

size_t terminal_width(std::FILE* stream) {
  winsize size{};
  if (!isatty(fileno(stream)) || ioctl(fileno(stream), TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

size_t columns(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_column));
}

std::string cut_to(std::string_view text, size_t width) {
  if (width == 0 || columns(text) <= width) return std::string(text);
  size_t end = 0;
  for (size_t shown = 0; end < text.size(); end++)
    if (begins_column(text[end]) && ++shown == width) break;
  return std::string(text.substr(0, end)) + "…";
}

void print_text(std::string_view text) {
  const size_t width = terminal_width(stdout);
  if (width == 0) return fmt::print("{}", text);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    fmt::print("{}\n", cut_to(text.substr(0, end), width));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

Progress::Progress(const char* command) : command_(command), terminal_(terminal_width(stderr) > 0) {}

Progress::~Progress() { done(); }

void Progress::done() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

void Progress::say(std::string_view what) {
  if (!terminal_) return;
  shown_ = true;
  last_ = std::chrono::steady_clock::now();
  std::string line = cut_to(fmt::format("keel {}: {}", command_, what), terminal_width(stderr) - 1);
  fmt::print(stderr, "\r{}\033[K", line);
  std::fflush(stderr);
}

void Progress::count(std::string_view what, int64_t done, int64_t of) {
  if (!terminal_ || std::chrono::steady_clock::now() - last_ < std::chrono::milliseconds(100)) return;
  say(fmt::format("{} {} of {}", what, done, of));
}

}  // namespace cli
