// fill.cc: arrays from literals and generators. See fill.h.
//
// How to read it: the random source, one function per generator, literals, then the dispatch. The random
// numbers are part of the command's contract: a seed gives the same values on every machine.
#include "cli/data/fill.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <numbers>

#include "cli/data/scalar.h"
#include "cli/exit.h"

namespace cli {
namespace {

// splitmix64: tiny, and good enough for test data.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)
  double normal() {                                                         // Box and Muller
    double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  uint64_t state_;
};

std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

std::vector<std::string_view> split(std::string_view s) {
  std::vector<std::string_view> out;
  for (size_t comma; (comma = s.find(',')) != std::string_view::npos; s.remove_prefix(comma + 1))
    out.push_back(trim(s.substr(0, comma)));
  out.push_back(trim(s));
  return out;
}

// Strict: the whole text must be a number of T, in range.
template <class T>
bool parse_literal(std::string_view text, T& out) {
  if constexpr (std::is_same_v<T, bool>) {
    out = text == "true" || text == "1";
    return out || text == "false" || text == "0";
  } else if constexpr (is_floating<T>) {
    double v = 0;
    bool plus = text.starts_with('+');
    auto [end, error] = std::from_chars(text.data() + plus, text.data() + text.size(), v);
    out = T(v);
    return error == std::errc() && end == text.data() + text.size();
  } else {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size();
  }
}

template <class T>
void fill_literals(T* out, size_t count, std::string_view text, const std::string& what,
                   std::string_view dtype) {
  std::vector<std::string_view> parts = split(text);
  if (trim(text).empty()) parts.clear();
  if (parts.size() != 1 && parts.size() != count)
    throw Fail(kUsage,
               fmt::format("{}: got {} values, expected {} (or one, to fill)", what, parts.size(), count));
  std::vector<T> one(1);
  for (size_t i = 0; i < parts.size(); i++) {
    T v{};
    if (!parse_literal(parts[i], v))
      throw Fail(kUsage, fmt::format("{}: \"{}\" is not a valid {} value", what, parts[i], dtype),
                 "expected numbers, range, randn(SEED), rand(SEED), randint(LO,HI,SEED) or @FILE");
    if (parts.size() == 1)
      std::fill_n(out, count, v);
    else
      out[i] = v;
  }
}

struct Generator {
  std::string_view name;
  size_t max_args;
};
constexpr Generator kGenerators[] = {{"range", 2}, {"randn", 1}, {"rand", 1}, {"randint", 3}};

struct Call {
  std::string_view name;
  std::vector<int64_t> args;
};

// Parses "randn(7)"; the name is empty if it is not a generator.
Call parse_call(std::string_view text, const std::string& what) {
  text = trim(text);
  size_t open = text.find('(');
  std::string_view name = trim(text.substr(0, open));
  const Generator* known = nullptr;
  for (const Generator& g : kGenerators)
    if (g.name == name) known = &g;
  if (!known) return {};
  Call call{known->name, {}};
  if (open == std::string_view::npos) return call;
  std::string_view inside = text.substr(open + 1);
  bool good = inside.ends_with(')');
  if (good) inside.remove_suffix(1);
  if (!trim(inside).empty()) {
    for (std::string_view part : split(inside)) {
      call.args.push_back(0);
      good = good && parse_literal(part, call.args.back());
    }
  }
  if (!good || call.args.size() > known->max_args)
    throw Fail(kUsage, fmt::format("{}: cannot read \"{}\"", what, text),
               "expected range, randn(SEED), rand(SEED) or randint(LO,HI,SEED), with whole numbers");
  return call;
}

template <class T>
void generate(T* out, size_t count, const Call& call, const std::string& what, std::string_view dtype) {
  auto arg = [&](size_t i, int64_t otherwise) { return i < call.args.size() ? call.args[i] : otherwise; };
  if (call.name == "range") {
    for (size_t i = 0; i < count; i++)
      out[i] = static_cast<T>(
          static_cast<int64_t>(static_cast<uint64_t>(arg(0, 0)) + i * static_cast<uint64_t>(arg(1, 1))));
    return;
  }
  if (call.name == "randint") {
    if (call.args.size() < 2 || arg(0, 0) >= arg(1, 0))
      throw Fail(kUsage, what + ": randint takes (LO,HI,SEED) with LO < HI; HI is exclusive");
    Random random(static_cast<uint64_t>(arg(2, 0)));
    uint64_t width = static_cast<uint64_t>(arg(1, 0)) - static_cast<uint64_t>(arg(0, 0));
    for (size_t i = 0; i < count; i++)
      out[i] = static_cast<T>(static_cast<int64_t>(static_cast<uint64_t>(arg(0, 0)) + random.next() % width));
    return;
  }
  if constexpr (is_floating<T>) {
    Random random(static_cast<uint64_t>(arg(0, 0)));
    bool normal = call.name == "randn";
    for (size_t i = 0; i < count; i++) out[i] = T(normal ? random.normal() : random.uniform());
  } else {
    throw Fail(kUsage, fmt::format("{}: {} generates fractions, but the dtype is {}", what, call.name, dtype),
               "use randint(LO,HI,SEED)");
  }
}

// Through f32 or i32.
template <class T>
void store_all(const std::vector<T>& numbers, const keel::Array& array, const std::string& what) {
  const keel_dt dtype = array.dtype();
  for (size_t i = 0; i < numbers.size(); i++) {
    const uint8_t code = keel::storage_code(dtype, static_cast<long double>(numbers[i]), is_floating<T>);
    if (!is_floating<T> && keel::storage_value(dtype, code) != static_cast<double>(numbers[i]))
      throw Fail(kUsage, fmt::format("{}: {} does not fit in {}", what, numbers[i], keel::dtype_name(dtype)));
    keel::store_code(dtype, array.data(), static_cast<int64_t>(i), code);
  }
}

}  // namespace

void fill(const keel::Array& array, std::string_view value, std::string_view what) {
  std::string name(what);
  Call call = parse_call(value, name);
  std::string_view dtype = keel::dtype_name(array.dtype());
  const auto count = static_cast<size_t>(array.size());
  auto numbers = [&](auto* out) {
    if (call.name.empty())
      fill_literals(out, count, value, name, dtype);
    else
      generate(out, count, call, name, dtype);
  };
  auto through = [&](auto all) {
    all.resize(count);
    numbers(all.data());
    store_all(all, array, name);
  };
  if (keel::is_storage_integer(array.dtype())) return through(std::vector<int32_t>());
  if (keel::is_storage(array.dtype())) return through(std::vector<float>());
  visit(array.dtype(), [&](auto tag) { numbers(static_cast<typename decltype(tag)::type*>(array.data())); });
}

size_t count_literals(std::string_view value) {
  if (trim(value).empty() || !parse_call(value, "").name.empty()) return 0;
  return split(value).size();
}

}  // namespace cli
