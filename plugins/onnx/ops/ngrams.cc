// ngrams.cc: TfIdfVectorizer: how often each n-gram of a pool occurs in a row of tokens.
//
// The n-gram at each place of a row is searched in a sorted list; if n-grams are too long for that, all
// places are compared with all of them.
#include <algorithm>

#include "plugins/onnx/ops/classes.h"

namespace onnx_import {
namespace {

// The n-grams of one length: token j of each, and their places in the result.
struct Grams {
  std::vector<Ints> tokens;
  Ints places;
};

// The part of the pool that has n-grams of n tokens.
Grams grams_of(Call& c, int64_t n, const Ints& pool, const Ints& starts, const Ints& places) {
  int64_t index = 0;  // of the first one in the whole pool
  Grams grams = {std::vector<Ints>(static_cast<size_t>(n)), {}};
  for (int64_t k = 1; k <= static_cast<int64_t>(starts.size()); k++) {
    const auto size = static_cast<int64_t>(pool.size());
    const int64_t from = starts[static_cast<size_t>(k - 1)],
                  until = k < static_cast<int64_t>(starts.size()) ? starts[static_cast<size_t>(k)] : size;
    if (from < 0 || until < from || until > size || (until - from) % k)
      c.invalid(cat("ngram_counts: n-grams of ", k, " tokens are from ", from, " to ", until,
                    " in a pool of ", size));
    for (int64_t i = from; i < until; i += k, index++) {
      if (k != n) continue;
      if (index >= static_cast<int64_t>(places.size()))
        c.invalid(cat("ngram_indexes has ", places.size(), " entries, fewer than there are n-grams"));
      for (int64_t j = 0; j < n; j++)
        grams.tokens[static_cast<size_t>(j)].push_back(pool[static_cast<size_t>(i + j)]);
      grams.places.push_back(places[static_cast<size_t>(index)]);
    }
  }
  return grams;
}

template <class T>
Ints first_places(const std::vector<T>& list) {
  std::map<T, int64_t> seen;
  Ints places;
  for (const T& entry : list) places.push_back(seen.emplace(entry, std::ssize(places)).first->second);
  return places;
}

// Token j of the n-gram that begins at each place of x[rows, places]; -1 where the row is too short.
Term token_of(const Term& x, int64_t j, int64_t step) {
  Edit& e = x.edit();
  const int64_t from = j * step;
  const keel_value wide = e.op("pad", {x.v, e.scalar(KEEL_I64, -1)}, Attrs().dims("hi", {0, from}));
  return Term(e, wide).slice(1, from, e.add(x.dim(1), from));
}

// How often each n-gram occurs in the rows of x[rows, places], its tokens `step` apart: f32[rows, grams]. All
// places are compared with all n-grams.
Term compared(const Term& x, const Grams& grams, int64_t step) {
  const auto count = static_cast<keel_dim>(grams.places.size());
  std::vector<Term> found;
  for (size_t j = 0; j < grams.tokens.size(); j++) {
    const Term tokens = token_of(x, static_cast<int64_t>(j), step).unsqueeze(1);
    const Term same = tokens == constant_of(x.edit(), grams.tokens[j]).reshape({count, 1});
    found = {found.empty() ? same : found[0] & same};
  }
  return found[0].to(KEEL_F32).sum({2});
}

// N-grams as numbers whose digits are their tokens, which are below `base`; empty: too large.
Ints keys_of(const Grams& grams, int64_t base) {
  Ints keys(grams.places.size(), 0);
  int64_t limit = 1;
  for (const Ints& tokens : grams.tokens) {
    if (__builtin_mul_overflow(limit, base, &limit)) return {};
    for (size_t i = 0; i < keys.size(); i++) keys[i] = keys[i] * base + tokens[i];
  }
  return keys;
}

// The n-gram at each place of x, by a search; -1: none of them.
Term gram_at(const Term& x, const Grams& grams, const Ints& keys, int64_t base, int64_t step) {
  Term key = token_of(x, 0, step), whole = key.op("greater_equal", 0);
  for (size_t j = 1; j < grams.tokens.size(); j++) {
    const Term token = token_of(x, static_cast<int64_t>(j), step);
    key = key * static_cast<double>(base) + token;
    whole = whole & token.op("greater_equal", 0);
  }
  return select(whole, places_of(key, keys), -1.0);
}

// How often each number from 0 to size - 1 occurs in the rows of x; others do not count: f32[rows, size].
Term counted(const Term& x, int64_t size) {
  Edit& e = x.edit();
  const keel_dim rows = x.dim(0), all = e.mul(rows, size);
  const Term row = counting_term(e, x.dims(), 0, KEEL_I64);
  const Term at = select(x < 0, x.size(all), row * static_cast<double>(size) + x);
  const Term sums =
      at.op("scatter_add", filled(e, KEEL_F32, 1, x.dims()), Attrs().dim("size", e.add(all, 1)));
  return sums.slice(0, 0, all).reshape({rows, size});
}

// The counts of the n-grams of one length at their places in the result: f32[rows, size].
Term counts_at(const Term& x, const Grams& grams, int64_t base, int64_t step, int64_t size) {
  Edit& e = x.edit();
  const Ints keys = keys_of(grams, base);
  const Term places = constant_of(e, grams.places);
  const auto count = std::ssize(grams.places);
  const Ints first = first_places(keys);
  if (!keys.empty() && first == counting(0, count)) {
    const Term gram = gram_at(x, grams, keys, base, step);
    return counted(select(gram < 0, gram, places.gather(gram.op("maximum", 0), 0)), size);
  }
  const Term counts =
      keys.empty() ? compared(x, grams, step)
                   : counted(gram_at(x, grams, keys, base, step), count).gather(constant_of(e, first), 1);
  return places.op("scatter_add", counts, Attrs().i("axis", 1).dim("size", size));
}

// Tokens are numbered by their first places in the pool; -1: not in it.
struct Tokens {
  Ints pool;
  Term x;
};

Tokens tokens_of(Call& c) {
  const Words words = c.strings("pool_strings");
  if (words.empty()) {
    if (holds_strings(c, 0)) c.invalid("its operand holds strings, but pool_strings is missing or empty");
    const Ints numbers = c.ints("pool_int64s");
    if (numbers.empty()) c.invalid("pool_int64s and pool_strings are missing or empty");
    return {first_places(numbers), places_of(Term(c, 0).to(KEEL_I64), numbers)};
  }
  const Strings x(c, 0);
  return {first_places(words),
          x.spread(Vocabulary(c.e, words, cat(c.title(), ": pool_strings")).places(x.rows()))};
}

Term counts_of(Call& c, const Ints& pool, const Term& x, int64_t size) {
  const Ints starts = c.ints("ngram_counts"), places = c.ints("ngram_indexes");
  const int64_t shortest = c.required("min_gram_length"), longest = c.required("max_gram_length"),
                skips = c.required("max_skip_count"), base = std::ssize(pool);
  const keel_dim columns = x.dim(1);
  if (shortest < 1 || longest < shortest || longest > static_cast<int64_t>(starts.size()) || skips < 0)
    c.invalid(cat("n-grams of ", shortest, " to ", longest, " tokens, with ", skips, " skips and ",
                  starts.size(), " ngram_counts"));
  if (longest > 64 || skips > 1000)
    c.unsupported("n-grams of more than 64 tokens or with more than 1000 skips");
  std::vector<Term> sum;
  for (int64_t n = shortest; n <= longest; n++) {
    const Grams grams = grams_of(c, n, pool, starts, places);
    // one token has nothing to skip
    for (int64_t step = 1; step <= (n == 1 ? 1 : skips + 1) && !grams.places.empty(); step++) {
      const int64_t span = (n - 1) * step;
      if (c.e.compare(columns, span) == KEEL_EQUAL || c.e.compare(columns, span) == KEEL_LESS) break;
      const Term counts = counts_at(x, grams, base, step, size);
      sum = {sum.empty() ? counts : sum[0] + counts};
    }
  }
  return sum.empty() ? filled(c.e, KEEL_F32, 0, {x.dim(0), size}) : sum[0];
}

// The weights of n-grams, in the order of their places.
std::vector<float> weights_of(Call& c, const Ints& places, int64_t size) {
  const std::vector<float> weights = c.floats("weights");
  if (weights.size() != places.size())
    c.invalid(cat("weights has ", weights.size(), " entries, ngram_indexes ", places.size()));
  std::vector<float> list(static_cast<size_t>(size), 0);
  std::set<int64_t> taken;
  for (size_t i = 0; i < places.size(); i++) {
    if (!taken.insert(places[i]).second)
      c.unsupported(cat("weights of n-grams that share place ", places[i], " of the result"));
    list[static_cast<size_t>(places[i])] = weights[i];
  }
  return list;
}

void tf_idf_vectorizer(Call& c) {
  const Ints places = c.ints("ngram_indexes");
  if (places.empty() || *std::min_element(places.begin(), places.end()) < 0)
    c.invalid("ngram_indexes is empty or has a negative entry");
  const int64_t size = *std::max_element(places.begin(), places.end()) + 1, rank = c.rank(0);
  if (size > (1 << 24))
    c.unsupported(cat("the place ", size - 1, " in ngram_indexes; at most ", (1 << 24) - 1));
  if (rank != 1 && rank != 2) c.invalid(cat("operand 0 has ", rank, " dims; expected 1 or 2"));
  const auto [pool, given] = tokens_of(c);
  const Term x = rank == 1 ? given.unsqueeze(0) : given;
  const std::string mode = c.s("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    c.invalid(cat("mode is '", mode, "'; expected TF, IDF or TFIDF"));
  Term y = counts_of(c, pool, x, size);
  if (mode == "IDF") y = (y > 0).to(KEEL_F32);
  if (mode != "TF" && c.has_attribute("weights"))
    y = y * constant_of(c.e, KEEL_F32, weights_of(c, places, size));
  c.set(0, rank == 1 ? y.reshape({size}).v : y.v);
}

constexpr Rule kRules[] = {
    {"TfIdfVectorizer", 9, tf_idf_vectorizer,
     "max_gram_length max_skip_count min_gram_length mode ngram_counts ngram_indexes pool_int64s "
     "pool_strings weights",
     0, false, false, true},
};

}  // namespace

Rules ngram_rules() { return kRules; }

}  // namespace onnx_import
