// printer.cc: see printer.h.
#include "kernel/runtime/plan/printer.h"

#include <unistd.h>
#include <cerrno>

#include "kernel/language/graph/element.h"

namespace keel {
namespace {

void WriteAll(int file, std::string_view text) {
  while (!text.empty()) {
    ssize_t n = write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // print has no way to report the error
    text.remove_prefix(static_cast<size_t>(n));
  }
}

class Formatter {
 public:
  Formatter(const keel_tensor& t, int64_t edge) : t_(t), edge_(edge), dtype_(*DTypeOf(t.dtype)) {}

  std::string Run() {
    Rows(0, 0);
    return std::move(text_);
  }

 private:
  void Element(int64_t i) {
    uint64_t bits = 0;
    LoadElement(dtype_, static_cast<const char*>(t_.data) + t_.byte_offset, i, &bits);
    std::string digits = PrintElement(dtype_, &bits);
    if (digits.empty()) digits = "nan";  // a NaN with a payload
    if (digits.ends_with(".0")) digits.resize(digits.size() - 2);
    text_ += digits;
  }

  void Rows(int32_t dim, int64_t at) {
    if (dim == t_.ndim) return Element(at);
    int64_t n = t_.shape[dim], step = 1;
    for (int32_t d = dim + 1; d < t_.ndim; d++) step *= t_.shape[d];
    bool shorten = edge_ >= 0 && n > 2 * edge_;
    text_ += "[";
    for (int64_t i = 0; i < n; i++) {
      if (i) Separate(dim);
      if (shorten && i == edge_) {
        text_ += "...";
        i = n - edge_ - 1;
        continue;
      }
      Rows(dim + 1, at + i * step);
    }
    text_ += "]";
  }

  void Separate(int32_t dim) {
    int32_t inner = t_.ndim - 1 - dim;
    text_.append(static_cast<size_t>(inner), '\n');
    text_.append(inner ? static_cast<size_t>(dim) + 1 : 1, ' ');
  }

  const keel_tensor& t_;
  int64_t edge_;
  DType dtype_;
  std::string text_;
};

}  // namespace

void Printer::Set(keel_print_fn hook, void* arg) {
  std::lock_guard lock(mutex_);
  hook_ = hook;
  arg_ = arg;
}

void Printer::Write(int32_t stream, std::string_view line) {
  std::lock_guard lock(mutex_);
  if (hook_)
    hook_(arg_, stream, line.data(), line.size());
  else
    WriteAll(stream == KEEL_STREAM_OUT ? STDOUT_FILENO : STDERR_FILENO, line);
}

std::string FormatTensor(const keel_tensor& t, int64_t edge) { return Formatter(t, edge).Run(); }

}  // namespace keel
