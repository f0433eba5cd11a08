// type.cc: types and dims as text. See spec.h.
#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/core.h>

#include "cli/data/spec.h"
#include "cli/exit.h"

namespace cli {
namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front()))) s.remove_prefix(1);
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back()))) s.remove_suffix(1);
  return s;
}

// Splits at commas outside parentheses; "" gives no parts.
std::vector<std::string> split_dims(std::string_view text) {
  std::vector<std::string> out;
  if (trim(text).empty()) return out;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); i++) {
    if (i < text.size()) depth += (text[i] == '(') - (text[i] == ')');
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    out.emplace_back(trim(text.substr(start, i - start)));
    start = i + 1;
  }
  return out;
}

// Recursive descent over + - * // max min, parentheses, names and numbers.
class Evaluator {
 public:
  Evaluator(std::string_view text, const Dims& dims) : s_(text), dims_(dims) {}
  std::optional<int64_t> all() {
    int64_t v = sum();
    skip();
    return ok_ && s_.empty() ? std::optional(v) : std::nullopt;
  }

 private:
  void skip() { s_ = trim(s_); }
  bool eat(std::string_view token) {
    skip();
    if (!s_.starts_with(token)) return false;
    s_.remove_prefix(token.size());
    return true;
  }
  int64_t fail() {
    ok_ = false;
    s_ = {};
    return 0;
  }
  // By reference: the arguments of a call are evaluated in any order.
  int64_t checked(bool overflowed, const int64_t& v) { return overflowed ? fail() : v; }
  int64_t sum() {
    int64_t v = product();
    while (ok_) {
      int64_t r;
      if (eat("+"))
        v = checked(__builtin_add_overflow(v, product(), &r), r);
      else if (eat("-"))
        v = checked(__builtin_sub_overflow(v, product(), &r), r);
      else
        break;
    }
    return v;
  }
  int64_t product() {
    int64_t v = atom();
    while (ok_) {
      int64_t r;
      if (eat("//"))
        v = floor_div(v, atom());
      else if (eat("*"))
        v = checked(__builtin_mul_overflow(v, atom(), &r), r);
      else
        break;
    }
    return v;
  }
  int64_t floor_div(int64_t a, int64_t b) {
    if (b <= 0) return fail();
    return a / b - (a % b != 0 && a < 0);
  }
  int64_t atom() {
    if (++depth_ > 200) return fail();
    int64_t v = primary();
    depth_--;
    return v;
  }
  int64_t primary() {
    int64_t negated;
    if (eat("-")) return checked(__builtin_sub_overflow(int64_t{0}, atom(), &negated), negated);
    if (eat("(")) {
      int64_t v = sum();
      return eat(")") ? v : fail();
    }
    skip();
    size_t n = 0;
    while (n < s_.size() && (std::isalnum(static_cast<unsigned char>(s_[n])) || s_[n] == '_' || s_[n] == '.'))
      n++;
    if (n == 0) return fail();
    std::string word(s_.substr(0, n));
    s_.remove_prefix(n);
    if ((word == "max" || word == "min") && eat("(")) return extreme(word == "max");
    int64_t number = 0;
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error == std::errc() && end == word.data() + word.size()) return number;
    auto found = dims_.find(word);
    return found == dims_.end() ? fail() : found->second;
  }
  int64_t extreme(bool greatest) {
    int64_t a = sum();
    if (!eat(",")) return fail();
    int64_t b = sum();
    return eat(")") ? (greatest ? std::max(a, b) : std::min(a, b)) : fail();
  }

  std::string_view s_;
  const Dims& dims_;
  bool ok_ = true;
  int depth_ = 0;
};

}  // namespace

std::string Type::text() const { return std::string(keel::dtype_name(dtype)) + "[" + join(dims, ", ") + "]"; }

std::optional<Type> parse_type(std::string_view text) {
  text = trim(text);
  size_t open = text.find('[');
  if (open == std::string_view::npos || !text.ends_with("]")) return std::nullopt;
  const keel::DtypeRow* row = keel::find_dtype(trim(text.substr(0, open)));
  if (!row) return std::nullopt;
  Type type{row->code, split_dims(text.substr(open + 1, text.size() - open - 2))};
  for (const std::string& d : type.dims)
    if (d.empty()) return std::nullopt;
  return type;
}

Dims parse_dims(const std::vector<std::string>& assignments) {
  Dims dims;
  for (const std::string& a : assignments) {
    size_t equals = a.find('=');
    std::optional<int64_t> v;
    if (equals != std::string::npos && equals > 0) v = eval_dim(std::string_view(a).substr(equals + 1), {});
    if (!v || *v < 0) throw Fail(kUsage, "--dim " + a + ": expected NAME=NUMBER", "for example --dim b=4");
    auto [at, added] = dims.emplace(a.substr(0, equals), *v);
    if (!added && at->second != *v)
      throw Fail(kUsage, fmt::format("--dim {} is given twice: {} and {}", at->first, at->second, *v));
  }
  return dims;
}

std::optional<int64_t> eval_dim(std::string_view expression, const Dims& dims) {
  auto exact =
      dims.find(std::string(trim(expression)));  // names of imported symbols may contain any character
  return exact != dims.end() ? std::optional(exact->second) : Evaluator(expression, dims).all();
}

std::set<std::string> symbols_in(std::string_view expression, const Dims& known) {
  std::set<std::string> names;
  auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  for (size_t at = 0; at < expression.size();) {
    size_t end = at;
    while (end < expression.size() && part(expression[end])) end++;
    std::string word(expression.substr(at, end - at));
    if (!word.empty() && !std::isdigit(static_cast<unsigned char>(word[0])) && word != "max" && word != "min")
      names.insert(word);
    at = std::max(end, at + 1);
  }
  std::erase_if(names, [&](const std::string& name) { return known.contains(name); });
  return names;
}

bool is_symbol(const std::string& expression) { return symbols_in(expression).contains(expression); }

bool learn_dim(const std::string& expression, int64_t size, Dims& dims) {
  if (std::optional<int64_t> known = eval_dim(expression, dims)) return *known == size;
  const std::set<std::string> open = symbols_in(expression, dims);
  Dims trial = dims;
  auto at = [&](int64_t n) { return trial[*open.begin()] = n, eval_dim(expression, trial); };
  std::optional<int64_t> zero, slope;
  if (open.size() == 1 && (zero = at(0)) && (slope = at(1))) *slope -= *zero;
  if (slope.value_or(0) <= 0) return dims.emplace(expression, size).second;
  if (size < *zero || (size - *zero) % *slope) return false;
  dims[*open.begin()] = (size - *zero) / *slope;
  return eval_dim(expression, dims) == size;
}

int64_t generated_dim(const std::string& expression, Dims& dims) {
  if (std::optional<int64_t> known = eval_dim(expression, dims)) return *known;
  for (const std::string& name : symbols_in(expression)) dims.emplace(name, 1);
  return eval_dim(expression, dims).value_or(1);
}

void bind_dims(const Type& type, std::span<const int64_t> shape, Dims& dims) {
  if (type.dims.size() != shape.size()) return;
  for (bool alone : {true, false})
    for (size_t i = 0; i < shape.size(); i++)
      if (is_symbol(type.dims[i]) == alone) learn_dim(type.dims[i], shape[i], dims);
}

}  // namespace cli
