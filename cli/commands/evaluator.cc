// evaluator.cc: see evaluator.h.
//
// How to read it: Scanner tokenises a statement into texts, brackets and words; list literals become
// parameters of a one-line module, which libkeel parses, types and runs; errors show the position in the
// statement.
#include "cli/commands/evaluator.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/exit.h"

namespace cli {
namespace {

[[noreturn]] void fail(const Statement& s, size_t at, const std::string& message, Exit code = kTyped,
                       const std::string& hint = "") {
  std::string shown = s.text;
  std::replace(shown.begin(), shown.end(), '\n', ' ');
  throw Fail(code, fmt::format("line {}: {}\n  | {}\n  | {}^", s.line, message, shown, std::string(at, ' ')),
             hint);
}

constexpr int kBodyLine = 3;  // of the module that compute() builds for a statement

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

// The end of the quoted text that begins at `at`, or npos.
size_t end_of_text(std::string_view s, size_t at) {
  for (size_t i = at + 1; i < s.size(); i++) {
    if (s[i] == '\\')
      i++;
    else if (s[i] == '"')
      return i + 1;
  }
  return std::string_view::npos;
}

// Calls f(place) for each character outside of texts, with the depth of (), [] and {} around it.
template <class F>
void scan(const Statement& s, size_t from, size_t to, const F& f) {
  std::string open;
  for (size_t i = from; i < to; i++) {
    char c = s.text[i];
    if (c == '"') {
      size_t end = end_of_text(s.text, i);
      if (end == std::string_view::npos || end > to) fail(s, i, "missing closing quote");
      i = end - 1;
      continue;
    }
    f(i, open);
    if (std::string_view("([{").find(c) != std::string_view::npos) open += c;
    if (std::string_view(")]}").find(c) != std::string_view::npos) {
      if (open.empty()) fail(s, i, fmt::format("unmatched '{}'", c));
      open.pop_back();
    }
  }
}

// Positions of a character outside of brackets and texts, except within "==", "<=" and so on.
std::vector<size_t> places(const Statement& s, size_t from, size_t to, char wanted) {
  std::vector<size_t> out;
  scan(s, from, to, [&](size_t i, const std::string& open) {
    auto neighbour = [&](size_t k, std::string_view set) {
      return k < s.text.size() && set.find(s.text[k]) != std::string_view::npos;
    };
    bool compare = wanted == '=' && (neighbour(i + 1, "=") || (i > 0 && neighbour(i - 1, "=<>!")));
    if (s.text[i] == wanted && open.empty() && !compare) out.push_back(i);
  });
  return out;
}

std::string trimmed(std::string_view s) {
  size_t first = s.find_first_not_of(" \t\r"), last = s.find_last_not_of(" \t\r");
  return first == std::string_view::npos ? "" : std::string(s.substr(first, last - first + 1));
}

// Parses [[1, 2.5], [-inf, true]] as a literal and moves `at` past it.
keel::Literal read_list(const Statement& s, size_t& at, int depth = 0) {
  auto skip = [&] {
    while (at < s.text.size() && std::isspace(static_cast<unsigned char>(s.text[at]))) at++;
  };
  if (depth > KEEL_MAX_RANK) fail(s, at, fmt::format("lists are nested more than {} deep", KEEL_MAX_RANK));
  skip();
  if (at < s.text.size() && s.text[at] == '[') {
    std::vector<keel::Literal> rows;
    at++;
    for (skip(); at < s.text.size() && s.text[at] != ']'; skip()) {
      rows.push_back(read_list(s, at, depth + 1));
      skip();
      if (at < s.text.size() && s.text[at] == ',') at++;
    }
    if (at >= s.text.size()) fail(s, at, "missing closing bracket of a list");
    at++;
    return keel::Literal(rows);
  }
  size_t end = at;
  while (end < s.text.size() &&
         (is_word(s.text[end]) || ((s.text[end] == '-' || s.text[end] == '+') &&
                                   (end == at || std::tolower(s.text[end - 1]) == 'e'))))
    end++;
  std::string word = s.text.substr(at, end - at);
  size_t begin = std::exchange(at, end);
  if (word == "true" || word == "false") return keel::Literal(word == "true");
  bool whole = !word.empty() && word.find_first_not_of("0123456789", word[0] == '-') == std::string::npos;
  char* stop = nullptr;
  errno = 0;
  double d = std::strtod(word.c_str(), &stop);
  if (word.empty() || *stop) fail(s, begin, "a list contains numbers, true, false and lists only");
  if (!whole) return keel::Literal(d);
  int64_t i = std::strtoll(word.c_str(), nullptr, 10);
  if (errno == ERANGE) fail(s, begin, "the number is too large");
  return i == static_cast<int32_t>(i) ? keel::Literal(static_cast<int32_t>(i)) : keel::Literal(i);
}

std::string unescaped(std::string_view quoted) {
  std::string out;
  for (size_t i = 1; i + 1 < quoted.size(); i++) {
    if (quoted[i] == '\\') i++;
    out += i > 0 && quoted[i - 1] == '\\' && quoted[i] == 'n' ? '\n' : quoted[i];
  }
  return out;
}

// The error of the one-line module, without the parts that the user did not write.
std::string user_message(std::string said) {
  said = said.substr(0, said.find('\n'));
  if (size_t node = said.find("node '"), end = said.find("': ", node); end < said.size())
    said.erase(node, end + 3 - node);
  constexpr std::string_view kGraph = "graph 'eval' has no";
  if (size_t at = said.find(kGraph); at < said.size()) said.replace(at, kGraph.size(), "there is no");
  return said;
}

}  // namespace

std::vector<Statement> split_statements(const std::string& text) {
  std::vector<Statement> out;
  Statement now;
  int line = 1, depth = 0;
  auto finish = [&] {
    now.text = trimmed(now.text);
    if (!now.text.empty()) out.push_back(now);
    now = {};
  };
  for (size_t i = 0; i < text.size(); i++) {
    char c = text[i];
    if (now.text.empty()) now.line = line;
    if (c == '"') {
      size_t end = std::min(end_of_text(text, i), text.size());
      now.text += text.substr(i, end - i);
      line += static_cast<int>(
          std::count(text.begin() + static_cast<long>(i), text.begin() + static_cast<long>(end), '\n'));
      i = end - 1;
      continue;
    }
    if (c == '#') i = std::min(text.find('\n', i), text.size()), c = '\n';
    line += c == '\n';
    depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    if ((c == '\n' || c == ';') && depth <= 0)
      finish();
    else if (!now.text.empty() || !std::isspace(static_cast<unsigned char>(c)))
      now.text += c == '\n' ? ' ' : c;
  }
  finish();
  return out;
}

std::optional<std::string> Evaluator::run(const Statement& s) {
  if (s.text.starts_with("print") && (s.text.size() == 5 || !is_word(s.text[5])) &&
      s.text.find_first_not_of(' ', 5) != s.text.find('=', 5))
    return print(s, 5);
  std::vector<size_t> equals = places(s, 0, s.text.size(), '=');
  if (equals.empty()) return keel::to_string(evaluate(s, 0, s.text.size(), 1)[0]);
  std::vector<std::string> names;
  size_t from = 0;
  std::vector<size_t> commas = places(s, 0, equals[0], ',');
  commas.push_back(equals[0]);
  for (size_t comma : commas) {
    std::string name = trimmed(std::string_view(s.text).substr(from, comma - from));
    if (name.empty() || !std::all_of(name.begin(), name.end(), is_word) ||
        std::isdigit(static_cast<unsigned char>(name[0])))
      fail(s, from, "expected a name, or names separated by commas, before '='", kUsage);
    names.push_back(name);
    from = comma + 1;
  }
  std::vector<keel::Tensor> made = evaluate(s, equals[0] + 1, s.text.size(), names.size());
  for (size_t k = 0; k < names.size(); k++) values_[names[k]] = made[k];
  return std::nullopt;
}

// print "x is {}", x: each {} is the next value; without a text, values with spaces between.
std::string Evaluator::print(const Statement& s, size_t at) {
  std::vector<size_t> commas = places(s, at, s.text.size(), ',');
  commas.push_back(s.text.size());
  std::string form, out;
  std::vector<std::string> values;
  bool has_form = false;
  for (size_t comma : commas) {
    std::string part = trimmed(std::string_view(s.text).substr(at, comma - at));
    bool quoted = part.size() > 1 && part[0] == '"' && end_of_text(part, 0) == part.size();
    if (part.empty() && commas.size() > 1) fail(s, at, "expected a value before the comma", kUsage);
    if (quoted && values.empty() && !has_form)
      has_form = true, form = unescaped(part);
    else if (!part.empty())
      values.push_back(quoted ? unescaped(part) : keel::to_string(evaluate(s, at, comma, 1)[0]));
    at = comma + 1;
  }
  if (!has_form) return join(values, " ");
  size_t used = 0;
  for (size_t i = 0; i < form.size(); i++) {
    if (form.compare(i, 2, "{}") != 0) {
      out += form[i];
      continue;
    }
    if (used == values.size())
      fail(s, 0, fmt::format("the text has more {{}} than the {} values", used), kUsage);
    out += values[used++];
    i++;
  }
  if (used < values.size())
    fail(s, 0, fmt::format("{} values, but the text has {} {{}}", values.size(), used), kUsage);
  return out;
}

// The outermost list literals of an expression, except in attributes.
std::vector<Evaluator::List> Evaluator::lists_of(const Statement& s, size_t from, size_t to) {
  std::vector<List> lists;
  scan(s, from, to, [&](size_t i, const std::string& open) {
    bool inside = !lists.empty() && i < lists.back().at + lists.back().length;
    if (s.text[i] != '[' || inside || open.find('{') != std::string::npos) return;
    if (i > from && (is_word(s.text[i - 1]) || s.text[i - 1] == ')'))
      fail(s, i, "indexing is not supported", kUsage, "use slice(x){start=[0], stop=[1]} or gather(x, [0])");
    size_t end = i;
    try {
      keel::Literal literal = read_list(s, end);
      lists.push_back({i, end - i, std::move(literal), fmt::format("\"list {}\"", lists.size() + 1)});
    } catch (const keel::Error& e) {
      fail(s, i, e.what());
    }
  });
  return lists;
}

// The expression in libkeel's syntax: names instead of list literals, and 2.0 for the 2. of C++ and Python.
std::vector<Evaluator::Replaced> Evaluator::points_of(const Statement& s, size_t from, size_t to,
                                                      const std::vector<List>& lists) {
  std::vector<Replaced> out;
  for (const List& list : lists) out.push_back({list.at, list.length, list.name});
  auto listed = [&](size_t i) {
    return std::any_of(lists.begin(), lists.end(),
                       [&](const List& l) { return i >= l.at && i < l.at + l.length; });
  };
  scan(s, from, to, [&](size_t i, const std::string&) {
    if (s.text[i] != '.' || i == from || listed(i) || (i + 1 < to && is_word(s.text[i + 1]))) return;
    size_t begin = i;
    while (begin > from && is_word(s.text[begin - 1])) begin--;
    if (s.text.find_first_not_of("0123456789", begin) == i && begin < i) out.push_back({i, 1, ".0"});
  });
  std::sort(out.begin(), out.end(), [](const Replaced& a, const Replaced& b) { return a.at < b.at; });
  return out;
}

std::vector<keel::Tensor> Evaluator::evaluate(const Statement& s, size_t from, size_t to, size_t results) {
  std::vector<List> lists = lists_of(s, from, to);
  std::vector<Replaced> replaced = points_of(s, from, to, lists);
  std::string expression, names;
  size_t done = from;
  for (const Replaced& r : replaced) {
    expression += s.text.substr(done, r.at - done) + r.by;
    done = r.at + r.length;
  }
  expression += s.text.substr(done, to - done);
  if (trimmed(expression).empty()) fail(s, from, "expected an expression", kUsage);
  for (size_t k = 0; k < results; k++) names += (k ? ", r" : "r") + std::to_string(k);
  std::string before = results == 1 ? "  return " : "  " + names + " = ";
  try {
    return settle(before + expression + (results == 1 ? "" : "\n  return " + names), lists);
  } catch (const keel::Error& e) {
    size_t place = from;
    std::string said = user_message(e.what());
    if (size_t at = s.text.find("placeholder(", from); at < to && said.find("placeholder") < said.size())
      fail(s, at, "placeholder() is not compatible with eager execution.", kUsage,
           "statements run immediately; only parameters of a graph are fed (keel run)");
    int line = 0, column = 0, length = 0;
    if (std::sscanf(said.c_str(), "%d:%d: %n", &line, &column, &length) == 2 && length) {
      said.erase(0, static_cast<size_t>(length));
      if (line > kBodyLine) {  // the error is past the end of the statement
        const size_t got = said.rfind(", got ");
        said = (got == said.npos ? "expected a value or an op" : said.substr(0, got)) +
               ", but the statement ends";
        column = static_cast<int>(before.size() + expression.size()) + 1;
      } else if (constexpr std::string_view kEnd = "expected '}'"; said.starts_with(kEnd)) {
        said.replace(0, kEnd.size(), "expected the end of the statement");
      }
      size_t moved = std::max(static_cast<size_t>(column), before.size() + 1) - before.size() - 1;
      for (const Replaced& r : replaced)
        if (r.at - from < moved) moved = std::max(moved + r.length, r.by.size()) - r.by.size();
      place = std::min(from + moved, to);
    }
    fail(s, place, said, line > kBodyLine ? kTyped : to_fail(Stage::kRun, e).code, e.hint());
  }
}

// Lists of weak numbers take the first dtype that fits the other operands: their own, then all others.
std::vector<keel::Tensor> Evaluator::settle(const std::string& body, const std::vector<List>& lists) {
  std::optional<keel::Error> first;
  std::vector<keel_dt> own;
  for (const List& list : lists) own.push_back(list.literal.dtype());
  bool weak = std::any_of(own.begin(), own.end(), [](keel_dt d) { return d != KEEL_BOOL; });
  for (int round = -1; round < static_cast<int>(std::size(keel::kDtypes)); round++) {
    std::vector<keel_dt> dtypes = own;
    const keel::DtypeRow* row = round < 0 ? nullptr : &keel::kDtypes[round];
    for (keel_dt& d : dtypes)
      if (row && row->kind != 'b' && (d == KEEL_I32 || d == KEEL_I64 || (d == KEEL_F32 && row->kind == 'f')))
        d = row->code;
    try {
      return compute(body, lists, dtypes);
    } catch (const keel::Error& e) {
      if (!first) first = e;
      if (!weak || e.code() != KEEL_INVALID) break;
    }
  }
  throw *first;
}

std::vector<keel::Tensor> Evaluator::compute(const std::string& body, const std::vector<List>& lists,
                                             const std::vector<keel_dt>& dtypes) {
  std::string params, names;
  std::vector<keel::Array> in;
  auto add = [&](const std::string& name, const keel::Tensor& t) {
    params += (in.empty() ? "" : ", ") + name + ": " + t.type();
    names += (in.empty() ? "" : ", ") + name;
    in.push_back(t.array());
  };
  for (const auto& [name, value] : values_) {
    size_t at = body.find(name);  // an unused parameter would be harmless
    if (at != std::string::npos) add(name, value);
  }
  for (size_t k = 0; k < lists.size(); k++)
    add(lists[k].name, keel::Tensor(lists[k].literal.to_array(context_.get(), dtypes[k])));
  keel::Module module = keel::Module::parse(
      context_, "keel 1\nfn @eval(" + params + ") {\n" + body + "\n}\nentry eval = @eval (" + names + ")\n");
  std::vector<keel::Tensor> out;
  keel::Plan plan = keel::Session(module, device_, {{"level", "0"}}).prepare();
  for (keel::Array& a : plan.run(in)) out.emplace_back(std::move(a));
  return out;
}

}  // namespace cli
