// format.hpp: tensors as text. `std::cout << t` prints the values only, in the format of NumPy:
//   [[4.]]     [1.  0.5]     [[ 2  6]\n [12 20]]     0.0     [ True False]
// keel::repr(t) adds type and device: "Tensor f32[1, 1]: [[4.]]".
//
// How to read it: Digits (one element), Column (a common width for all), then Walk over the dims. Tensors of
// more than 1,000 elements show three at each edge; lines end before column 75.
#ifndef KEEL_FORMAT_HPP
#define KEEL_FORMAT_HPP
#include <charconv>
#include <ostream>

#include "tensor.hpp"

namespace keel {
namespace detail {

/// The shortest digits that read back as the same value of its type, with the exponent of d.ddd * 10^e.
struct Digits {
  bool negative = false;
  std::string digits;  // at least one
  int exponent = 0;

  template <class T>
  static Digits of(T v) {
    char text[64];
    std::to_chars_result end{};
    if constexpr (std::is_floating_point_v<T>) {
      end = std::to_chars(text, text + sizeof text, v, std::chars_format::scientific);
    } else {  // f16, bf16: the first precision that keeps the value
      for (int precision = 0; precision < 9; precision++) {
        end = std::to_chars(text, text + sizeof text, static_cast<double>(v), std::chars_format::scientific,
                            precision);
        double back = 0;
        std::from_chars(text, end.ptr, back);
        if (T(back).bits == v.bits) break;
      }
    }
    return parse({text, static_cast<size_t>(end.ptr - text)});
  }
  static Digits parse(std::string_view text) {
    Digits d;
    size_t e = text.find('e');
    for (char c : text.substr(0, e))
      if (c >= '0' && c <= '9') d.digits += c;
    d.negative = text.starts_with('-');
    d.exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
    while (d.digits.size() > 1 && d.digits.back() == '0') d.digits.pop_back();
    return d;
  }
};

inline std::string power(int e) {
  std::string n = std::to_string(std::abs(e));
  return (e < 0 ? "e-" : "e+") + (n.size() < 2 ? "0" + n : n);
}

/// The parts of one number around its point. `exact` is the value as a double, for rounding to `places`.
struct Parts {
  std::string whole, fraction, tail;
};
inline Parts plain(const Digits& d, double exact, size_t places) {
  Parts p{d.negative ? "-" : "", "", ""};
  int n = static_cast<int>(d.digits.size());
  if (n - 1 - d.exponent > static_cast<int>(places)) {
    char text[400];
    std::snprintf(text, sizeof text, "%.*f", static_cast<int>(places), exact);
    std::string_view all = text;
    size_t point = all.find('.');
    p.whole = all.substr(0, point);
    p.fraction = point == std::string_view::npos ? "" : all.substr(point + 1);
    while (p.fraction.ends_with('0')) p.fraction.pop_back();
    return p;
  }
  for (int i = std::min(0, d.exponent); i < std::max(n, d.exponent + 1); i++) {
    char c = i >= 0 && i < n ? d.digits[static_cast<size_t>(i)] : '0';
    (i <= d.exponent ? p.whole : p.fraction) += c;
  }
  return p;
}
inline Parts scientific(Digits d, double exact, size_t places) {
  if (d.digits.size() > places + 1) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*e", static_cast<int>(places), exact);
    d = Digits::parse(text);
  }
  return {(d.negative ? "-" : "") + d.digits.substr(0, 1), d.digits.substr(1), power(d.exponent)};
}

/// A number outside a list: 5.5, 0.0, 1e+16.
template <class T>
std::string scalar_text(T v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v ? "True" : "False";
  } else if constexpr (!is_floating<T>) {
    return std::to_string(v);
  } else {
    auto exact = static_cast<double>(v);
    if (std::isnan(exact)) return "nan";
    if (std::isinf(exact)) return exact < 0 ? "-inf" : "inf";
    Digits d = Digits::of(v);
    constexpr double most = sizeof(T) == 8 ? 1e16 : sizeof(T) == 4 ? 1e6 : 1e3;
    if (exact != 0 && (std::fabs(exact) < 1e-4 || std::fabs(exact) >= most)) {
      Parts p = scientific(d, exact, 17);
      return p.whole + (p.fraction.empty() ? "" : "." + p.fraction) + p.tail;
    }
    Parts p = plain(d, exact, 400);
    return p.whole + "." + (p.fraction.empty() ? "0" : p.fraction);
  }
}

/// The common format of all shown elements: width, number of decimals, with an exponent or not.
class Column {
 public:
  template <class T>
  void see(T v) {
    if constexpr (!is_floating<T>) {
      width_ = std::max(width_, scalar_text(v).size());
    } else {
      auto a = std::fabs(static_cast<double>(v));
      if (!std::isfinite(a)) {
        special_ = std::max(special_, scalar_text(v).size());
        return;
      }
      if (a == 0) return;
      most_ = std::max(most_, a);
      least_ = std::min(least_, a);
    }
  }
  /// After see() of all elements.
  template <class T>
  void measure(T v) {
    if constexpr (is_floating<T>)
      if (std::isfinite(static_cast<double>(v))) {
        Parts p = parts(v);
        whole_ = std::max(whole_, p.whole.size());
        fraction_ = std::max(fraction_, p.fraction.size());
        tail_ = std::max(tail_, p.tail.size());  // e+05, e+300
      }
  }
  template <class T>
  std::string text(T v) const {
    if constexpr (!is_floating<T>) {
      return padded(scalar_text(v), width_);
    } else {
      size_t behind = fraction_ + 1 + tail_;
      size_t all = std::max(whole_ + behind, special_);
      if (!std::isfinite(static_cast<double>(v))) return padded(scalar_text(v), all);
      Parts p = parts(v);
      p.fraction.resize(fraction_, power_() ? '0' : ' ');
      if (!p.tail.empty()) p.tail.insert(2, tail_ - p.tail.size(), '0');
      return padded(p.whole, all - behind) + "." + p.fraction + p.tail;
    }
  }

 private:
  bool power_() const { return most_ > 0 && (most_ >= 1e8 || least_ < 1e-4 || most_ / least_ > 1000); }
  template <class T>
  Parts parts(T v) const {
    auto exact = static_cast<double>(v);
    return power_() ? scientific(Digits::of(v), exact, 8) : plain(Digits::of(v), exact, 8);
  }
  static std::string padded(const std::string& s, size_t width) {
    return std::string(width - std::min(width, s.size()), ' ') + s;
  }
  size_t width_ = 0, special_ = 0, whole_ = 0, fraction_ = 0, tail_ = 0;
  double most_ = 0, least_ = INFINITY;
};

template <class T>
class Walk {
 public:
  Walk(const Array& rows, const PlainElements& elements)
      : data_(static_cast<const char*>(elements.data())), shape_(rows.shape()), shorten_(rows.size() > 1000) {
    each(0, 0, [&](T v) { column_.see(v); });
    each(0, 0, [&](T v) { column_.measure(v); });
  }
  std::string text() const { return dim(0, 0, 75); }

 private:
  T at(int64_t i) const {
    T v;
    std::memcpy(&v, data_ + i * static_cast<int64_t>(sizeof v), sizeof v);
    return v;
  }
  int64_t step(size_t d) const {
    int64_t n = 1;
    while (++d < shape_.size()) n *= shape_[d];
    return n;
  }
  // The indices shown; -1 for the gap between the edges.
  std::vector<int64_t> shown(size_t d) const {
    std::vector<int64_t> all;
    int64_t n = shape_[d];
    for (int64_t i = 0; i < n; i++) {
      if (shorten_ && n > 6 && i == 3) {
        all.push_back(-1);
        i = n - 3;
      }
      all.push_back(i);
    }
    return all;
  }
  template <class F>
  void each(size_t d, int64_t from, const F& f) const {
    if (d == shape_.size()) return f(at(from));
    for (int64_t i : shown(d))
      if (i >= 0) each(d + 1, from + i * step(d), f);
  }
  std::string dim(size_t d, int64_t from, size_t width) const {
    std::string indent(d + 1, ' '), out = "[";
    bool last = d + 1 == shape_.size();
    size_t line = d + 1;  // its length so far
    bool first = true;
    for (int64_t i : shown(d)) {
      std::string word = i < 0  ? "..."
                         : last ? column_.text(at(from + i))
                                : dim(d + 1, from + i * step(d), width - 1);
      if (last && !first && line + 1 + word.size() > width - 1) {
        out += "\n" + indent;
        line = d + 1;
      } else if (!first) {
        out += last ? " " : std::string(shape_.size() - 1 - d, '\n') + indent;
        line++;
      }
      out += word;
      line += word.size();
      first = false;
    }
    return out + "]";
  }
  const char* data_;
  std::span<const int64_t> shape_;
  bool shorten_;
  Column column_;
};

}  // namespace detail

/// The values only, copied from a device if necessary. A symbolic tensor has none: "<f32[?, 3] of a trace>".
inline std::string to_string(const Tensor& t) {
  if (t.empty()) return "<no tensor>";
  if (t.symbolic()) return "<" + t.type() + " of a trace>";
  Array rows = t.rows();
  if (rows.size() == 0) return "[]";
  std::string out;
  const PlainElements elements(rows);
  visit(elements.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (rows.shape().empty()) {
      T v;
      std::memcpy(&v, elements.data(), sizeof v);
      out = detail::scalar_text(v);
    } else {
      out = detail::Walk<T>(rows, elements).text();
    }
  });
  return out;
}
/// "Tensor f32[1, 1]: [[4.]]"; the rows of a matrix start on a new line.
inline std::string repr(const Tensor& t) {
  std::string values = to_string(t);
  if (t.empty() || t.symbolic()) return "Tensor " + values;
  std::string place = t.device().empty() ? "" : " on " + t.device();
  return "Tensor " + t.type() + place + (values.find('\n') == std::string::npos ? ": " : ":\n") + values;
}
inline std::ostream& operator<<(std::ostream& out, const Tensor& t) { return out << to_string(t); }

}  // namespace keel
#endif
