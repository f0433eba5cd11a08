// terminal.cc: see terminal.h.
#include "cli/terminal.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace cli {
namespace {

// Continuation bytes of UTF-8 have no width.
bool begins_column(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

// The byte position of a column.
size_t end_of(std::string_view text, size_t columns) {
  size_t end = 0;
  for (size_t shown = 0; end < text.size(); end++)
    if (begins_column(text[end]) && ++shown > columns) break;
  return end;
}

size_t width_of(int fd) {
  winsize size{};
  return isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno != EINTR) return false;
    text.remove_prefix(n < 0 ? 0 : static_cast<size_t>(n));
  }
  return true;
}

// A stream that wraps lines for a terminal. A line written in pieces is not wrapped.
struct Fitting {
  int fd;
  bool within_line = false;

  static ssize_t write(void* self, const char* bytes, size_t size) {
    auto& f = *static_cast<Fitting*>(self);
    return write_all(f.fd, f.fit({bytes, size})) ? static_cast<ssize_t>(size) : 0;
  }
  std::string fit(std::string_view text) {
    const size_t width = width_of(fd);
    std::string out;
    while (!text.empty()) {
      const size_t end = text.find('\n');
      const bool whole = !within_line && end != std::string_view::npos && width > 0;
      out += whole ? wrapped(text.substr(0, end), width) : std::string(text.substr(0, end));
      within_line = end == std::string_view::npos;
      if (!within_line) out += '\n';
      text.remove_prefix(within_line ? text.size() : end + 1);
    }
    return out;
  }
};

void fit(std::FILE** stream, Fitting* how, int buffering) {
  if (width_of(how->fd) == 0) return;
  std::FILE* fitting = fopencookie(how, "w", {nullptr, Fitting::write, nullptr, nullptr});
  if (!fitting) return;
  std::setvbuf(fitting, nullptr, buffering, BUFSIZ);
  *stream = fitting;
}

}  // namespace

size_t terminal_width(std::FILE* stream) {
  return width_of(stream == stderr ? STDERR_FILENO : STDOUT_FILENO);
}

std::string wrapped(std::string_view line, size_t width) {
  const size_t first = std::min(line.find_first_not_of(' '), line.size()), gap = line.rfind("  ", width / 2);
  const bool columned = gap != std::string_view::npos && gap > first;
  const size_t indent = std::min(columned ? gap + 2 : first + 4, width / 2);
  std::string out;
  for (size_t room = width; columns(line) > room; room = width - indent) {
    size_t end = end_of(line, room), space = line.rfind(' ', end);
    if (space == std::string_view::npos || space <= line.find_first_not_of(' ')) space = end;
    out += line.substr(0, line.find_last_not_of(' ', space - 1) + 1);
    out += '\n' + std::string(indent, ' ');
    line.remove_prefix(std::min(line.find_first_not_of(' ', space), line.size()));
  }
  return out + std::string(line);
}

void fit_streams() {
  static Fitting out{STDOUT_FILENO}, err{STDERR_FILENO};
  fit(&stdout, &out, _IOLBF);
  fit(&stderr, &err, _IONBF);
}

size_t columns(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_column));
}

std::string cut_to(std::string_view text, size_t width) {
  if (width == 0 || columns(text) <= width) return std::string(text);
  return std::string(text.substr(0, end_of(text, width - 1))) + "…";
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
