// print.cc: see print.h.
//
// How to read it: format_element() formats one number, Printer walks the dims.
#include "cli/show/print.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "cli/data/scalar.h"
#include "cli/terminal.h"

namespace cli {
namespace {

template <class T>
std::string format_element(T v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v ? "true" : "false";
  } else if constexpr (is_floating<T>) {
    double d = v;
    return d == 0 && std::signbit(d) ? "-0" : fmt::format("{:.6g}", d);
  } else {
    return fmt::format("{}", v);
  }
}

class Printer {
 public:
  Printer(const keel::Array& array, int64_t whole)
      : array_(array),
        shape_(array.shape()),
        edge_(array.size() > whole ? 3 : array.size()),
        elements_(array),
        room_(terminal_width(stdout)) {
    keel_dt dtype = elements_.dtype();
    size_ = keel::dtype_size(dtype);
    // Two passes: the first finds the widest element.
    visit(dtype, [&](auto tag) { walk<typename decltype(tag)::type>(0, 0, nullptr); });
    visit(dtype, [&](auto tag) { walk<typename decltype(tag)::type>(0, 0, &out_); });
  }
  std::string text() { return std::move(out_); }

 private:
  template <class T>
  void element(int64_t at, std::string* out) {
    T v;
    std::memcpy(&v, static_cast<const char*>(elements_.data()) + at * size_, sizeof v);
    std::string text = format_element(v);
    if (out)
      *out += shape_.empty() ? text : fmt::format("{:>{}}", text, width_);
    else
      width_ = std::max(width_, text.size());
  }

  template <class T>
  void walk(size_t dim, int64_t at, std::string* out) {
    if (dim == shape_.size()) return element<T>(at, out);
    int64_t n = shape_[dim], step = 1;
    for (size_t d = dim + 1; d < shape_.size(); d++) step *= shape_[d];
    bool last = dim + 1 == shape_.size();
    auto text = [&](const std::string& s) {
      if (out) *out += s;
    };
    const std::string line = "\n" + std::string(dim + 1, ' ');
    std::string between = last ? ", " : line;
    size_t column = dim + 1;  // of the terminal, in the last dim
    text("[");
    if (array_.size() == 0) n = 0;
    for (int64_t i = 0; i < n; i++) {
      column += width_ + 2;
      bool full = last && i > 0 && room_ > 0 && column > room_;
      if (full) column = dim + 3 + width_;
      if (i > 0) text(full ? "," + line : between);
      if (n > 2 * edge_ && i == edge_) {
        text("..." + between);
        i = n - edge_;
      }
      walk<T>(dim + 1, at + i * step, out);
    }
    text("]");
  }

  const keel::Array& array_;
  std::span<const int64_t> shape_;
  int64_t edge_;  // elements shown at each end of a long dim
  keel::PlainElements elements_;
  int64_t size_ = 0;
  size_t room_ = 0;  // columns of the terminal; 0: no end
  size_t width_ = 0;
  std::string out_;
};

}  // namespace

std::string array_text(const keel::Array& array, int64_t whole) { return Printer(array, whole).text(); }

nlohmann::ordered_json array_json(const keel::Array& array) {
  nlohmann::ordered_json data = nlohmann::ordered_json::array();
  const keel::PlainElements elements(array);
  visit(elements.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* p = static_cast<const T*>(elements.data());
    for (int64_t i = 0; i < array.size(); i++) {
      if constexpr (is_floating<T>) {
        double v = p[i];
        if (std::isfinite(v))
          data.push_back(v);
        else
          data.push_back(std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
      } else {
        data.push_back(p[i]);
      }
    }
  });
  std::vector<int64_t> shape(array.shape().begin(), array.shape().end());
  return {{"dtype", keel::dtype_name(array.dtype())}, {"shape", shape}, {"data", std::move(data)}};
}

void print_json(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

// Shrinks the widest columns until a line fits; columns of up to 8 characters stay.
static void fit(std::vector<size_t>& widths, size_t terminal) {
  if (terminal == 0 || widths.empty()) return;
  auto all = [&] { return std::accumulate(widths.begin(), widths.end(), 2 * (widths.size() - 1)); };
  for (size_t sum = all(); sum > terminal; sum--) {
    auto widest = std::max_element(widths.begin(), widths.end());
    if (*widest <= 8) return;
    --*widest;
  }
}

void print_table(const std::vector<std::vector<std::string>>& rows, std::FILE* to) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t c = 0; c < row.size(); c++) widths[c] = std::max(widths[c], columns(row[c]));
  }
  const size_t terminal = terminal_width(to);
  fit(widths, terminal);
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); c++) {
      std::string shown = cut_to(row[c], std::max<size_t>(widths[c], 1));
      line += shown + std::string(widths[c] + 2 - std::min(columns(shown), widths[c] + 2), ' ');
    }
    while (line.ends_with(' ')) line.pop_back();
    fmt::print(to, "{}\n", cut_to(line, terminal));
  }
}

std::string cell(const nlohmann::ordered_json& json) {
  if (json.is_null()) return "";
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_array()) return json.dump();
  std::string out;
  for (const auto& item : json) out += (out.empty() ? "" : ", ") + cell(item);
  return out;
}

std::string one_line(const std::string& text, size_t longest) {
  std::string out;
  for (char c : text.substr(0, 4 * longest)) out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  if (text.size() > 4 * longest) out += "…";
  return cut_to(out, longest);
}

std::string human_bytes(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int u = 0;
  for (; bytes >= 1024 && u < 4; u++) bytes /= 1024;
  return u ? fmt::format("{:.1f} {}", bytes, units[u]) : fmt::format("{} B", bytes);
}

}  // namespace cli
