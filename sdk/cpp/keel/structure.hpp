// structure.hpp: arguments and results of traced functions as flat lists of leaves.
//
// How to read it: each_leaf() walks a value. Leaves are tensors, variables, numbers, bools and strings.
// Vectors, arrays, maps, pairs, tuples, optionals and plain structs (up to 8 members, or with a member `auto
// fields()` that returns std::tie of them) are containers. Leaves, Replace and Count are walkers.
#ifndef KEEL_STRUCTURE_HPP
#define KEEL_STRUCTURE_HPP
#include <list>
#include <map>
#include <optional>
#include <tuple>
#include <typeinfo>

#include "variable.hpp"

namespace keel::detail {

template <class T>
concept Tuple = requires {
  std::tuple_size<T>::value;
};
template <class T>
concept Text = std::convertible_to<const T&, std::string_view>;
template <class T>
inline constexpr bool is_vector = false;
template <class T, class A>
inline constexpr bool is_vector<std::vector<T, A>> = true;
template <class T>
inline constexpr bool is_map = false;
template <class T, class C, class A>
inline constexpr bool is_map<std::map<std::string, T, C, A>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

struct AnyField {
  template <class T>
  operator T() const;
};
template <class T, size_t n>
constexpr bool takes() {
  return []<size_t... i>(std::index_sequence<i...>) {
    return requires { T{(static_cast<void>(i), AnyField{})...}; };
  }
  (std::make_index_sequence<n>());
}
template <class T, size_t n = 8>
constexpr size_t field_count() {
  if constexpr (n == 0 || takes<T, n>())
    return n;
  else
    return field_count<T, n - 1>();
}

/// std::tie of the members.
template <class T>
auto fields_of(T& x) {
  using Bare = std::remove_const_t<T>;
  if constexpr (requires { x.fields(); }) {
    return x.fields();
  } else {
    static_assert(
        std::is_aggregate_v<Bare> && !takes<Bare, 9>(),
        "arguments and results of a keel::function are tensors, numbers, texts, containers of them and "
        "structs; give this one a member `auto fields()` that returns std::tie(...) of its members");
    constexpr size_t n = field_count<Bare>();
    if constexpr (n == 0) {
      return std::tie();
    } else if constexpr (n == 1) {
      auto& [a] = x;
      return std::tie(a);
    } else if constexpr (n == 2) {
      auto& [a, b] = x;
      return std::tie(a, b);
    } else if constexpr (n == 3) {
      auto& [a, b, c] = x;
      return std::tie(a, b, c);
    } else if constexpr (n == 4) {
      auto& [a, b, c, d] = x;
      return std::tie(a, b, c, d);
    } else if constexpr (n == 5) {
      auto& [a, b, c, d, e] = x;
      return std::tie(a, b, c, d, e);
    } else if constexpr (n == 6) {
      auto& [a, b, c, d, e, f] = x;
      return std::tie(a, b, c, d, e, f);
    } else if constexpr (n == 7) {
      auto& [a, b, c, d, e, f, g] = x;
      return std::tie(a, b, c, d, e, f, g);
    } else {
      auto& [a, b, c, d, e, f, g, h] = x;
      return std::tie(a, b, c, d, e, f, g, h);
    }
  }
}

template <class T, class Walker>
void each_leaf(T& x, Walker& walk);

template <class Tie, class Walker>
void each_member(Tie&& members, Walker& walk) {
  size_t k = 0;
  std::apply(
      [&](auto&... member) {
        ((walk.step("." + std::to_string(k++)), each_leaf(member, walk), walk.back()), ...);
      },
      members);
}

/// A walker has tensor(), variable(), fixed(), open(), close(), step(), back(), and size() for containers of
/// variable length.
template <class T, class Walker>
void each_leaf(T& x, Walker& walk) {
  using Bare = std::remove_const_t<T>;
  if constexpr (std::same_as<Bare, Tensor>) {
    walk.tensor(x);
  } else if constexpr (std::same_as<Bare, Variable>) {
    walk.variable(x);
  } else if constexpr (Number<Bare> || Text<Bare>) {
    walk.fixed(x);
  } else if constexpr (std::is_enum_v<Bare>) {
    walk.open(typeid(Bare).name());
    walk.fixed(static_cast<int64_t>(x));
    walk.close();
  } else if constexpr (is_optional<Bare>) {
    walk.open(x ? "?1" : "?0");
    if (x) each_leaf(*x, walk);
    walk.close();
  } else if constexpr (is_vector<Bare>) {
    walk.size(x);
    walk.open("v" + std::to_string(x.size()));
    for (size_t k = 0; k < x.size(); k++) {
      walk.step("[" + std::to_string(k) + "]");
      if constexpr (std::same_as<Bare, std::vector<bool>>)
        walk.fixed(static_cast<bool>(x[k]));
      else
        each_leaf(x[k], walk);
      walk.back();
    }
    walk.close();
  } else if constexpr (is_map<Bare>) {
    walk.size(x);
    walk.open("m");
    for (auto& [key, value] : x) {
      walk.open(std::to_string(key.size()) + ":" + key);
      walk.step("." + key);
      each_leaf(value, walk);
      walk.back();
      walk.close();
    }
    walk.close();
  } else if constexpr (Tuple<Bare>) {
    walk.open("(");
    std::apply([&](auto&... member) { each_member(std::tie(member...), walk); }, x);
    walk.close();
  } else {
    walk.open(typeid(Bare).name());
    each_member(fields_of(x), walk);
    walk.close();
  }
}

/// Arguments of a call of the C API: the leaves, and the structure as text.
class Leaves {
 public:
  std::vector<keel_leaf> list;
  std::string structure;

  void tensor(const Tensor& t) {
    structure += 'T';
    add({KEEL_LEAF_ARRAY, 0, nullptr, t.get(), 0, 0, nullptr});
  }
  void variable(const Variable& v) {  // by identity
    structure += 'V';
    add({KEEL_LEAF_I64, 0, nullptr, nullptr, static_cast<int64_t>(v.id()), 0, nullptr});
  }
  void fixed(bool v) {
    structure += 'b';
    add({KEEL_LEAF_BOOL, 0, nullptr, nullptr, v, 0, nullptr});
  }
  template <Number T>
  void fixed(const T& v) {
    constexpr bool real = std::is_floating_point_v<T>;
    structure += real ? 'f' : std::is_signed_v<T> ? 'i' : 'u';
    structure += static_cast<char>('0' + sizeof(T));
    if constexpr (real)
      add({KEEL_LEAF_F64, 0, nullptr, nullptr, 0, static_cast<double>(v), nullptr});
    else
      add({KEEL_LEAF_I64, 0, nullptr, nullptr, static_cast<int64_t>(v), 0, nullptr});
  }
  template <Text T>
  requires(!Number<T>) void fixed(const T& v) {
    structure += 's';
    add({KEEL_LEAF_STR, 0, nullptr, nullptr, 0, 0, texts_.emplace_back(std::string_view(v)).c_str()});
  }
  void open(std::string_view what) { (structure += what) += '<'; }
  void close() { structure += '>'; }
  template <class T>
  void size(const T&) {}
  void step(const std::string&) {}
  void back() {}

 private:
  void add(const keel_leaf& leaf) { list.push_back(leaf); }
  std::list<std::string> texts_;  // an empty deque would allocate
};

/// The path of each leaf in its argument: "", ".1", "[0].w".
class Paths {
 public:
  std::vector<std::string> list;
  void tensor(const Tensor&) { list.push_back(path_); }
  void variable(const Variable&) { list.push_back(path_); }
  template <class T>
  void fixed(const T&) {
    list.push_back(path_);
  }
  void open(std::string_view) {}
  void close() {}
  template <class T>
  void size(const T&) {}
  void step(const std::string& what) {
    ends_.push_back(path_.size());
    path_ += what;
  }
  void back() {
    path_.resize(ends_.back());
    ends_.pop_back();
  }

 private:
  std::string path_;
  std::vector<size_t> ends_;
};

/// A walker that replaces the tensors of a value, in order. A vector of results takes the remaining ones.
class Replace {
 public:
  /// all: every leaf in order; only arrays are used.
  explicit Replace(std::span<const keel_leaf> all) : leaves_(all) {}
  Replace(std::vector<Array> arrays, size_t elsewhere) : arrays_(std::move(arrays)), elsewhere_(elsewhere) {}
  void tensor(Tensor& t) {
    t = Tensor(arrays_.empty() ? Array(keel_array_retain(leaves_[at_].array)) : std::move(arrays_[at_]));
    at_++;
  }
  void variable(const Variable&) { at_++; }
  template <class T>
  void fixed(const T&) {
    at_++;
  }
  void open(std::string_view) {}
  void close() {}
  template <class T>
  void size(T& x) {
    if constexpr (std::same_as<T, std::vector<Tensor>>)
      if (leaves_.empty()) x.resize(arrays_.size() - std::min(arrays_.size(), elsewhere_));
  }
  void step(const std::string&) {}
  void back() {}

 private:
  std::span<const keel_leaf> leaves_;
  std::vector<Array> arrays_;
  size_t elsewhere_ = 0, at_ = 0;
};

/// The arrays of a structure of tensors, in order, borrowed; null for empty tensors.
template <class T>
std::vector<keel_array*> arrays_of(const T& value) {
  Leaves leaves;
  each_leaf(value, leaves);
  std::vector<keel_array*> out;
  for (const keel_leaf& leaf : leaves.list) out.push_back(leaf.array);
  return out;
}
/// The same structure with other tensors; `arrays` are borrowed, null makes an empty tensor.
template <class T>
T with_arrays(const T& like, std::span<keel_array* const> arrays) {
  std::vector<keel_leaf> leaves;
  for (keel_array* a : arrays) leaves.push_back({KEEL_LEAF_ARRAY, 0, nullptr, a, 0, 0, nullptr});
  T out = like;
  Replace put(leaves);
  each_leaf(out, put);
  return out;
}

/// A walker over a result type: counts tensors outside of vectors, and vectors.
struct Count {
  size_t tensors = 0, vectors = 0;
  void tensor(const Tensor&) { tensors++; }
  template <std::same_as<Variable> T>
  void variable(const T&) {
    static_assert(std::same_as<T, void>,
                  "a keel::function returns tensors; return the value of the variable");
  }
  template <class T>
  void fixed(const T&) {
    static_assert(std::same_as<T, void>, "results of a keel::function are tensors and structures of tensors");
  }
  void open(std::string_view) {}
  void close() {}
  template <class T>
  void size(const T&) {
    static_assert(std::same_as<T, std::vector<Tensor>>,
                  "results of variable length of a keel::function are vectors of tensors");
    vectors++;
  }
  void step(const std::string&) {}
  void back() {}
};

}  // namespace keel::detail
#endif
