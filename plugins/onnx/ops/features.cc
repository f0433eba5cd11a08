// features.cc: operators of ai.onnx.ml around models of tables: FeatureVectorizer, OneHotEncoder,
// DictVectorizer, CastMap, ZipMap.
#include "plugins/onnx/ops/classes.h"

namespace onnx_import {
namespace {

void feature_vectorizer(Call& c) {
  const Ints sizes = c.ints("inputdimensions");
  if (c.n_in() == 0) c.invalid("it has no operands");
  if (!sizes.empty() && sizes.size() != c.n_in())
    c.invalid(cat("inputdimensions has ", sizes.size(), " entries for ", c.n_in(), " operands"));
  std::vector<Term> parts;
  for (size_t i = 0; i < c.n_in(); i++) {
    const Term x(c, i);
    if (x.rank() != 1 && x.rank() != 2)
      c.invalid(cat("operand ", i, " has ", x.rank(), " dims; expected 1 or 2"));
    parts.push_back((x.rank() == 1 ? x.unsqueeze(0) : x).to(KEEL_F32));
    if (!sizes.empty() && !c.e.may_be(parts.back().dim(1), sizes[i]))
      c.unsupported(cat("inputdimensions other than the features of operand ", i));
  }
  c.set(0, parts.size() == 1 ? parts[0].v : concat(parts, 1).v);
}

// The place of each element among the categories; -1: none.
Term category_places(Call& c) {
  const Words words = c.strings("cats_strings");
  const Ints categories = c.ints("cats_int64s");
  if (words.empty() == categories.empty()) c.invalid("expected cats_int64s or cats_strings");
  if (words.empty()) return places_of(Term(c, 0).to(KEEL_I64), categories);
  const Strings x(c, 0);
  return x.spread(Vocabulary(c.e, words, cat(c.title(), ": cats_strings")).places(x.rows()));
}

// With zeros=0 an unknown category is an error: the index of a gather that does not exist.
void one_hot_encoder(Call& c) {
  const Term x = category_places(c);
  const size_t count = std::max(c.ints("cats_int64s").size(), c.strings("cats_strings").size());
  const auto last = static_cast<int64_t>(x.rank());
  const Term all = counting_term(c.e, static_cast<keel_dim>(count), KEEL_I64);
  Term hit = (x.unsqueeze(x.rank()) == all).to(KEEL_F32);
  if (c.i("zeros", 1) == 0) {
    const Term unknown = (hit.reduced("reduce_max", {last}, true) == 0).to(KEEL_I64);
    hit = hit * filled(c.e, KEEL_F32, 1, {1}).gather(unknown, 0);
  }
  c.set(0, hit.v);
}

// Keel has no maps: the result is the operand, whose columns have the order of the labels.
void zip_map(Call& c) {
  const size_t labels = c.has_attribute("classlabels_int64s") ? c.ints("classlabels_int64s").size()
                                                              : c.strings("classlabels_strings").size();
  const Dims dims = c.dims(0);
  if (dims.empty() || dims.size() > 2)
    c.invalid(cat("its operand has ", dims.size(), " dims; expected 1 or 2"));
  if (!c.e.may_be(dims.back(), static_cast<int64_t>(labels)))
    c.invalid(cat("it has ", labels, " labels for ", c.e.text(dims.back()), " columns"));
  c.alias(0, 0);
}

// The values of a map (maps.cc), [n], as a row.
Term map_values(Call& c, int64_t n) {
  const Term x(c, 0);
  if (x.rank() != 1 || (n >= 0 && !c.e.is(x.dim(0), n)))
    c.invalid(cat("its operand has ", x.rank(), " dims; expected a map, or the vector of its values"));
  return x.unsqueeze(0);
}

void dict_vectorizer(Call& c) {
  const size_t words = c.strings("string_vocabulary").size(), numbers = c.ints("int64_vocabulary").size();
  if ((words > 0) == (numbers > 0)) c.invalid("expected string_vocabulary or int64_vocabulary");
  c.set(0, map_values(c, static_cast<int64_t>(words + numbers)).v);
}

void cast_map(Call& c) {
  const std::string to = c.s("cast_to", "TO_FLOAT"), form = c.s("map_form", "DENSE");
  if (to != "TO_FLOAT" && to != "TO_INT64")
    c.unsupported(cat("cast_to '", to, "'; expected TO_FLOAT or TO_INT64"));
  if (form != "DENSE" && form != "SPARSE") c.invalid(cat("map_form '", form, "'; expected DENSE or SPARSE"));
  const int64_t most = c.i("max_map", 1);
  if (most < 1) c.invalid(cat("max_map is ", most, "; expected 1 or more"));
  const Term x = map_values(c, form == "SPARSE" ? most : -1);
  c.set(0, x.to(to == "TO_FLOAT" ? KEEL_F32 : KEEL_I64).v);
}

#define ML "ai.onnx.ml."
constexpr Rule kRules[] = {
    {ML "FeatureVectorizer", 1, feature_vectorizer, "inputdimensions"},
    {ML "OneHotEncoder", 1, one_hot_encoder, "cats_int64s cats_strings zeros", 0, false, false, true},
    {ML "DictVectorizer", 1, dict_vectorizer, "int64_vocabulary string_vocabulary"},
    {ML "CastMap", 1, cast_map, "cast_to map_form max_map"},
    {ML "ZipMap", 1, zip_map, "classlabels_int64s classlabels_strings"},
};

}  // namespace

Rules feature_rules() { return kRules; }

}  // namespace onnx_import
