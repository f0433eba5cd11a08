// string_split.cc: StringSplit: the parts of strings between delimiters, whose number only a run knows.
//
// Each byte gets the number of its part; parts have a start and a length, which are summed up by number in
// one i64, and their bytes are gathered.
#include <algorithm>

#include "plugins/onnx/ops/loop.h"
#include "plugins/onnx/ops/strings.h"

namespace onnx_import {
namespace {

constexpr size_t kLongest = 256;  // delimiter: each byte is compared by a node

// For the rows u8[k, width]: i32 or bool [k, width].
struct Parts {
  Term number;  // of the part that a byte belongs to, or that begins there; -1 before the first
  Term inside;  // whether a byte belongs to a part
  Term starts;  // whether a part begins, other than one at the start of a string
  Term begin;   // the place of its first byte
  Term count;   // i64[k]: the parts of a string
};

Term running(const Term& flags) { return flags.to(KEEL_I32).op("cumsum", Attrs().i("axis", 1)); }
Term negated(const Term& p) { return p.op("logical_not"); }

// x[:, i] becomes x[:, i - by]; zeros come in.
Term shifted(const Term& x, int64_t by) {
  Edit& e = x.edit();
  const Term zero = Term(e, e.cast(e.scalar(KEEL_I64, 0), x.dtype()));
  const keel_value moved = e.op("pad", {x.v, zero.v}, Attrs().dims("lo", {0, by}));
  return Term(e, moved).slice(1, 0, x.dim(1));
}

bool overlaps_itself(const std::string& word) {
  for (size_t n = 1; n < word.size(); n++)
    if (word.compare(0, n, word, word.size() - n, n) == 0) return true;
  return false;
}

// Of matches that overlap, the first counts.
Term without_overlaps(const Term& hit, int64_t length) {
  Edit& e = hit.edit();
  const Term free = filled(e, KEEL_I64, 0, {hit.dim(0)});  // bytes until the next match may begin
  const auto body = [&](const Terms& carried, const Terms&, const Terms& scanned) {
    const Term taken = scanned[0] & (carried[0] == 0);
    const Term left = (carried[0] - 1).op("maximum", 0);
    return Terms{select(taken, static_cast<double>(length - 1), left), taken};
  };
  const Terms out = scan(e, {.carried = {free}, .invariants = {}, .scanned = {hit.transpose({1, 0})}}, body);
  return out[1].transpose({1, 0});
}

// Where the delimiter begins.
Term matches(const Term& rows, const std::string& word) {
  const auto n = std::ssize(word);
  const keel_dim width = rows.dim(1);
  const Term more = fitted(rows, rows.edit().add(width, n - 1));
  Term hit = more.slice(1, 0, width) == static_cast<double>(static_cast<uint8_t>(word[0]));
  for (int64_t j = 1; j < n; j++)
    hit = hit & (more.slice(1, j, rows.edit().add(width, j)) ==
                 static_cast<double>(static_cast<uint8_t>(word[static_cast<size_t>(j)])));
  return overlaps_itself(word) ? without_overlaps(hit, n) : hit;
}

Parts between(const Term& rows, const std::string& delimiter, double most) {
  const auto n = std::ssize(delimiter);
  Term hit = matches(rows, delimiter);
  if (most >= 0) hit = hit & running(hit).op("less_equal", most);
  Term covered = hit;
  for (int64_t j = 1; j < n; j++) covered = covered | shifted(hit, j);
  const Term number = running(hit), place = counting_term(rows.edit(), rows.dim(1), KEEL_I64);
  return {number, negated(covered) & rows.op("not_equal", 0), hit, place + static_cast<double>(n),
          hit.to(KEEL_I64).sum({1}) + 1};
}

// Runs of whitespace are one delimiter; none is at the ends.
Parts of_words(const Term& rows, double most) {
  const Term space = (rows == 32) | ((rows > 8) & (rows < 14)) | ((rows > 27) & (rows < 32));
  const Term text = negated(space) & rows.op("not_equal", 0);
  Term start = text & negated(shifted(text, 1)), inside = text;
  Term number = running(start) - 1;
  if (most >= 0) {
    start = start & (number.op("less_equal", most));
    inside = text | ((number.op("greater_equal", most)) & rows.op("not_equal", 0));
    number = number.op("minimum", most);
  }
  const Term place = counting_term(rows.edit(), rows.dim(1), KEEL_I64);
  return {number, inside, start, place, start.to(KEEL_I64).sum({1})};
}

constexpr double kShift = 4294967296.0;  // above all lengths

// By part and row the place of the first byte * kShift + the length: i64[parts, k].
Term starts_and_lengths(const Parts& p, keel_dim parts) {
  Edit& e = p.number.edit();
  const keel_dim rows = p.number.dim(0);
  const Term row = counting_term(e, rows, KEEL_I64).unsqueeze(1);
  const Term index = p.number.op("maximum", 0).to(KEEL_I64) * row.size(rows) + row;
  const Term both = select(p.starts, p.begin * kShift, 0) + p.inside.to(KEEL_I64);
  return index.op("scatter_add", both, Attrs().dim("size", e.mul(parts, rows))).reshape({parts, rows});
}

// The bytes of all parts: u8[k, parts, longest], from their starts and lengths [parts, k].
Term bytes_of_parts(const Term& rows, const Term& starts, const Term& lengths) {
  Edit& e = rows.edit();
  const keel_dim width = rows.dim(1), wide = e.add(width, 1), count = rows.dim(0), parts = starts.dim(0);
  const Term longest = lengths.reduced("reduce_max", {0, 1}).op("maximum", 1);
  const Term place = counting_term(e, wide, KEEL_I32).op("trim", longest);
  const auto column = [&](const Term& x) { return x.to(KEEL_I32).transpose({1, 0}).unsqueeze(2); };
  const Term from = column(starts) + place;  // beyond the part: the byte after a row, which is 0
  const Term index = select(place < column(lengths), from, from.size(width));
  const Term bytes =
      fitted(rows, wide)
          .op("gather_elements", index.reshape({count, e.mul(parts, place.dim(0))}), Attrs().i("axis", 1));
  return bytes.reshape({count, parts, place.dim(0)});
}

void string_split(Call& c) {
  const Strings x(c, 0);
  const std::string delimiter = c.s("delimiter", "");
  expect_text(delimiter, cat(c.title(), ": delimiter"));
  if (delimiter.size() > kLongest)
    c.unsupported(cat("a delimiter of ", delimiter.size(), " bytes; at most ", kLongest));
  const Dims dims = x.dims();
  Edit& e = c.e;
  const Term bytes = x.bytes();
  const Term rows = bytes.reshape({e.product(dims), bytes.dims().back()});
  const int64_t given = std::min(c.i("maxsplit", 0), int64_t{INT32_MAX});
  const double most = c.has_attribute("maxsplit") ? static_cast<double>(given) : -1;
  const Parts parts = delimiter.empty() ? of_words(rows, most) : between(rows, delimiter, most);
  const Term largest = parts.count.reduced("reduce_max", {0}).op("maximum", 0);
  const Term both = starts_and_lengths(parts, e.add(rows.dim(1), 1)).op("trim", largest);
  const Term starts = both / kShift, lengths = both - starts * kShift;
  const Term made = bytes_of_parts(rows, starts, lengths);
  Dims to = dims;
  to.push_back(made.dim(1)), to.push_back(made.dim(2));
  give_strings(c, 0, made.reshape(to));
  c.set(1, parts.count.reshape(dims).v);
}

constexpr Rule kRules[] = {
    {"StringSplit", 20, string_split, "delimiter maxsplit", 0, false, false, true},
};

}  // namespace

Rules string_split_rules() { return kRules; }

}  // namespace onnx_import
