// scope.cc: see scope.h.
#include "plugins/onnx/export/scope.h"

#include <cctype>

namespace onnx_export {

// Reads the text of a dim and makes its value, an operator at a time.
class SizeReader {
 public:
  SizeReader(Scope& scope, std::string_view text) : scope_(scope), text_(text) {}

  // NOLINTNEXTLINE(misc-no-recursion): expressions nest at most 64 deep
  std::string sum() {
    const bool negative = accept("-");
    std::string left = product();
    if (negative) left = scope_.arithmetic("Sub", scope_.model().ints({0}), left);
    while (true) {
      if (accept("+"))
        left = scope_.arithmetic("Add", left, product());
      else if (accept("-"))
        left = scope_.arithmetic("Sub", left, product());
      else
        return left;
    }
  }

 private:
  bool accept(std::string_view word) {
    while (text_.starts_with(" ")) text_.remove_prefix(1);
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  // NOLINTNEXTLINE(misc-no-recursion)
  std::string product() {
    std::string left = primary();
    while (true) {
      if (accept("//"))
        left = floor_div(left, primary());
      else if (accept("*"))
        left = scope_.arithmetic("Mul", left, primary());
      else
        return left;
    }
  }
  // Div truncates.
  std::string floor_div(const std::string& a, const std::string& b) {
    return scope_.arithmetic("Div", scope_.arithmetic("Sub", a, scope_.arithmetic("Mod", a, b)), b);
  }
  // NOLINTNEXTLINE(misc-no-recursion)
  std::string primary() {
    if (accept("-")) return scope_.arithmetic("Sub", scope_.model().ints({0}), primary());
    if (accept("(")) {
      std::string inner = sum();
      accept(")");
      return inner;
    }
    size_t n = 0;
    while (n < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[n])) || text_[n] == '_')) n++;
    if (n == 0) throw Refused{"a size that cannot be computed"};
    std::string word(text_.substr(0, n));
    text_.remove_prefix(n);
    if (std::isdigit(static_cast<unsigned char>(word[0]))) return scope_.model().ints({std::stoll(word)});
    if ((word != "max" && word != "min") || !accept("(")) return scope_.symbol(word);
    std::string a = sum();
    accept(",");
    std::string b = sum();
    accept(")");
    return scope_.arithmetic(word == "max" ? "Max" : "Min", a, b);
  }

  Scope& scope_;
  std::string_view text_;
};

keel_tensor Scope::type(keel_value v) const {
  keel_tensor t;
  check(host_->value_type(edit_, v, &t));
  return t;
}

Dims Scope::dims(keel_value v) const {
  keel_tensor t = type(v);
  return {t.shape, t.shape + t.ndim};
}

std::string Scope::text(keel_dim d) const {
  const char* text = host_->dim_text(edit_, d);
  if (!text) throw Failure{KEEL_INTERNAL, "a dim without a text"};
  return text;
}

keel_dim Scope::sum(keel_dim a, int64_t b) const {
  keel_dim sum = 0;
  check(host_->dim_op(edit_, KEEL_DIM_ADD, a, b, &sum));
  return sum;
}

Names Scope::labels(const Dims& dims) const {
  Names labels;
  for (keel_dim d : dims) {
    std::string label = text(d);
    bool plain = true;
    for (char c : label) plain = plain && (std::isalnum(static_cast<unsigned char>(c)) || c == '_');
    labels.push_back(plain ? label : "");
  }
  return labels;
}

std::string Scope::name(keel_value v) {
  if (auto known = names_.find(v); known != names_.end()) return known->second;
  keel_tensor t = type(v);
  if (!t.data && host_->edit_producer(edit_, v) != KEEL_NO_VALUE)
    throw Failure{KEEL_INTERNAL, "a value is used before it is computed"};
  const char* given = host_->value_name(edit_, v);
  const bool literal = !given || std::string_view(given).find('(') != std::string_view::npos;
  std::string_view bytes{static_cast<const char*>(t.data), keel_bytes(dtype_of(t), count_of(t))};
  if (!t.data) bytes = "";
  return names_[v] = model_.tensor(literal ? "const" : given, dtype_of(t), Ints(t.shape, t.shape + t.ndim),
                                   bytes, true);
}

void Scope::set(keel_value v, const std::string& name) {
  names_[v] = name;
  model_.need(dtype_of(type(v)));
  const Dims all = dims(v);
  for (size_t axis = 0; axis < all.size(); axis++)
    if (KEEL_DIM_IS_HANDLE(all[axis]))
      symbols_.try_emplace(text(all[axis]), Place{name, static_cast<int32_t>(axis)});
}

std::string Scope::fresh(keel_value v) {
  auto wanted = wanted_.find(v);
  if (wanted != wanted_.end() && !wanted->second.empty()) return std::exchange(wanted->second, "");
  const char* given = host_->value_name(edit_, v);
  return model_.unique(given ? given : "v");
}

void Scope::input(keel_value v, const std::string& name) {
  graph_.inputs.push_back(value_info(name, dtype_of(type(v)), labels(dims(v))));
  set(v, name);
}

void Scope::output(keel_value v, const std::string& name) {
  if (std::string own = this->name(v); own != name) graph_.add("Identity", {own}, {name});
  graph_.outputs.push_back(value_info(name, dtype_of(type(v)), labels(dims(v))));
}

std::string Scope::add(const char* op, const Names& in, NodeAttrs attrs, const std::string& out) {
  std::string name = out.empty() ? model_.unique(cat(op, "_out")) : out;
  graph_.add(op, in, {name}, std::move(attrs));
  return name;
}

Names Scope::add_many(const char* op, const Names& in, NodeAttrs attrs, size_t n) {
  Names out;
  for (size_t i = 0; i < n; i++) out.push_back(model_.unique(cat(op, "_out")));
  graph_.add(op, in, out, std::move(attrs));
  return out;
}

std::string Scope::arithmetic(const char* op, const std::string& a, const std::string& b) {
  return add(op, {a, b});
}

const std::string* Scope::find_size(const std::string& text) const {
  for (const Scope* s = this; s; s = s->outer_)
    if (auto known = s->sizes_.find(text); known != s->sizes_.end()) return &known->second;
  return nullptr;
}

std::string Scope::symbol(std::string_view name) {
  std::string key(name);
  if (const std::string* known = find_size(key)) return *known;
  for (const Scope* s = this; s; s = s->outer_) {
    auto place = s->symbols_.find(key);
    if (place == s->symbols_.end()) continue;
    const int64_t axis = place->second.axis;
    return sizes_[key] = add("Shape", {place->second.value}, NodeAttrs().i("start", axis).i("end", axis + 1));
  }
  throw Refused{cat("the size ", key, " is not a dim of any value before it")};
}

std::string Scope::size(keel_dim d) {
  if (!KEEL_DIM_IS_HANDLE(d)) return model_.ints({d});
  std::string key = text(d);
  if (const std::string* known = find_size(key)) return *known;
  // An expression that is a dim of a value needs no arithmetic.
  for (const Scope* s = this; s; s = s->outer_)
    if (s->symbols_.contains(key)) return symbol(key);
  std::string made = SizeReader(*this, key).sum();
  return sizes_[key] = made;
}

std::string Scope::shape(const Dims& dims) {
  Names parts;
  Ints numbers;
  auto flush = [&] {
    if (!numbers.empty()) parts.push_back(model_.ints(numbers));
    numbers.clear();
  };
  for (keel_dim d : dims) {
    if (!KEEL_DIM_IS_HANDLE(d)) {
      numbers.push_back(d);
      continue;
    }
    flush();
    parts.push_back(size(d));
  }
  if (parts.empty()) return model_.ints(numbers);
  flush();
  return parts.size() == 1 ? parts[0] : add("Concat", parts, NodeAttrs().i("axis", 0));
}

}  // namespace onnx_export
