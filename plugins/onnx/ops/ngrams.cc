// ngrams.cc: TfIdfVectorizer: how often each n-gram of a pool occurs in a row of tokens.
//
// All places of a row are compared with all n-grams of a length at once, a comparison for each of its tokens.
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

// How often each n-gram occurs in the rows of x[rows, tokens], its tokens `step` apart: f32[rows, grams].
Term occurrences(const Term& x, const Grams& grams, int64_t step, int64_t starts) {
  const auto count = static_cast<keel_dim>(grams.places.size());
  std::vector<Term> found;
  for (size_t j = 0; j < grams.tokens.size(); j++) {
    const auto from = static_cast<int64_t>(j) * step;
    const Term tokens = x.slice(1, from, from + starts).unsqueeze(1);
    const Term same = tokens == constant_of(x.edit(), grams.tokens[j]).reshape({count, 1});
    found = {found.empty() ? same : found[0] & same};
  }
  return found[0].to(KEEL_F32).sum({2});
}

// The tokens of the pool as numbers, and the operand's; words are numbered by their first places.
struct Tokens {
  Ints pool;
  Term x;
};

Tokens tokens_of(Call& c) {
  const Words words = c.strings("pool_strings");
  if (words.empty()) {
    if (holds_strings(c, 0)) c.invalid("its operand holds strings, but pool_strings is missing or empty");
    return {c.ints("pool_int64s"), Term(c, 0).to(KEEL_I64)};
  }
  const Strings x(c, 0);
  std::map<Text, int64_t> numbers;
  Ints pool;
  for (size_t i = 0; i < words.size(); i++)
    pool.push_back(numbers.emplace(words[i], static_cast<int64_t>(i)).first->second);
  return {pool, x.spread(Vocabulary(c.e, words, cat(c.title(), ": pool_strings")).places(x.rows()))};
}

Term counts_of(Call& c, const Ints& pool, const Term& x, int64_t size) {
  const Ints starts = c.ints("ngram_counts"), places = c.ints("ngram_indexes");
  const int64_t shortest = c.required("min_gram_length"), longest = c.required("max_gram_length"),
                skips = c.required("max_skip_count"),
                columns = static_dim(c, x.dim(1), "the number of tokens");
  if (shortest < 1 || longest < shortest || longest > static_cast<int64_t>(starts.size()) || skips < 0)
    c.invalid(cat("n-grams of ", shortest, " to ", longest, " tokens, with ", skips, " skips and ",
                  starts.size(), " ngram_counts"));
  if (longest > 64 || skips > 1000)
    c.unsupported("n-grams of more than 64 tokens or with more than 1000 skips");
  Term all = filled(c.e, KEEL_F32, 0, {x.dim(0), size});
  for (int64_t n = shortest; n <= longest; n++) {
    const Grams grams = grams_of(c, n, pool, starts, places);
    // one token has nothing to skip
    for (int64_t step = 1; step <= (n == 1 ? 1 : skips + 1) && !grams.places.empty(); step++) {
      const int64_t span = (n - 1) * step;
      if (span >= columns) break;
      const Term counts = occurrences(x, grams, step, columns - span);
      all = all +
            constant_of(c.e, grams.places).op("scatter_add", counts, Attrs().i("axis", 1).dim("size", size));
    }
  }
  return all;
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
