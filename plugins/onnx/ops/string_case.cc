// string_case.cc: StringNormalizer: letters of one case, and words left out.
//
// Rows of ASCII alone are a sum. Other bytes become code points at the first byte of each character, code
// points others by a table of two levels (most pages of it are alike), and these bytes again: at the same
// places if all are as long as before, otherwise at the places that the lengths before them give.
#include <algorithm>

#include "plugins/onnx/ops/classes.h"
#include "plugins/onnx/ops/letters.h"
#include "plugins/onnx/ops/loop.h"
#include "plugins/onnx/ops/strings.h"

namespace onnx_import {
namespace {

constexpr int kPageBits = 7;
constexpr CodePoint kPage = 1 << kPageBits;

struct Pages {
  Ints page_of;  // by code point / kPage
  Ints changes;  // of the code points of each page
};

Pages pages_of(Case to) {
  const std::vector<CodePoint>& all = case_mapping(to);
  std::map<Ints, int64_t> known;
  Pages made;
  for (CodePoint first = 0; first < kCased; first += kPage) {
    Ints page;
    for (CodePoint c = first; c < first + kPage; c++)
      page.push_back(static_cast<int64_t>(all[c]) - static_cast<int64_t>(c));
    const auto [at, added] = known.emplace(page, std::ssize(known));
    if (added) made.changes.insert(made.changes.end(), page.begin(), page.end());
    made.page_of.push_back(at->second);
  }
  return made;
}

Term numbered(Edit& e, const Ints& numbers) { return constant_of(e, numbers).to(KEEL_I32); }

// Numbers of the bytes: which are the first of a character, and the character's code point, in u32 (bits are
// faster than divisions).
struct Decoded {
  Term leads, points;
};

Decoded decoded(const Term& rows) {
  Edit& e = rows.edit();
  const keel_dim width = rows.dim(1);
  const Term bytes = fitted(rows, e.add(width, 3)).to(KEEL_U32);
  const auto byte = [&](int64_t k) { return bytes.slice(1, k, e.add(width, k)); };
  const auto low = [&](const Term& x, double mask) { return x.op("bit_and", mask); };
  const Term lead = byte(0), second = low(byte(1), 63), third = low(byte(2), 63), last = low(byte(3), 63);
  const Term two = low(lead, 31) * 64 + second, three = (low(lead, 15) * 64 + second) * 64 + third,
             four = ((low(lead, 7) * 64 + second) * 64 + third) * 64 + last;
  const Term points = select(lead < 0x80, lead, select(lead < 0xe0, two, select(lead < 0xf0, three, four)));
  return {(lead > 0) & ((lead < 0x80) | (lead > 0xbf)), points};
}

Term mapped(const Term& points, Case to) {
  Edit& e = points.edit();
  const Pages pages = pages_of(to);
  const auto index = [](const Term& x) { return x.to(KEEL_I32); };
  const Term page =
      points.op("shift_right", kPageBits).op("minimum", static_cast<double>(kCased / kPage - 1));
  const Term at = numbered(e, pages.page_of).gather(index(page), 0) * static_cast<double>(kPage) +
                  index(points.op("bit_and", static_cast<double>(kPage - 1)));
  return points + numbered(e, pages.changes).to(KEEL_U32).gather(at, 0);
}

// Byte k of the characters as UTF-8; it exists where k is below their lengths.
Term encoded(const Term& points, const Term& lengths, int k) {
  constexpr double kLead[] = {0, 0xc0, 0xe0, 0xf0};
  Term made = points;
  for (int n = 2; n <= 4; n++) {
    if (k >= n) continue;
    const Term bits = points.op("shift_right", 6.0 * (n - 1 - k));
    const Term byte = k == 0 ? bits + kLead[n - 1] : bits.op("bit_and", 63) + 128;
    made = select(lengths == static_cast<double>(n), byte, made);
  }
  return made;
}

// Of the result's rows: a character may become half as long again.
keel_dim wide_of(const Term& rows) { return rows.edit().add(rows.dim(1), rows.edit().div(rows.dim(1), 2)); }

// in_case of ASCII.
Term ascii_in_case(const Term& rows, Case to) {
  const bool lower = to == Case::kLower;
  const Term letter = rows - (lower ? 'A' : 'a');  // wraps
  return fitted(select(letter < 26, lower ? rows + 32 : rows - 32, rows), wide_of(rows));
}

// Lengths as UTF-8.
Term lengths_of(const Term& points) {
  const auto more = [&](double from) { return points.op("greater_equal", from).to(KEEL_I32); };
  return more(0x80) + more(0x800) + more(0x10000) + 1;
}

// The bytes of characters that are as long as before, at their places; operands: leads and code points.
Term written_in_place(const Term& leads, const Term& points, keel_dim wide) {
  const Term length = lengths_of(points);
  const auto moved = [&](const Term& x, int64_t k) {  // to the right, by k places
    return x.op("pad", x.n(0), Attrs().dims("lo", {0, k})).slice(1, 0, x.dim(1));
  };
  Term made = points.n(0);
  for (int k = 3; k >= 0; k--) {
    const Term here = leads & (length > static_cast<double>(k)), byte = encoded(points, length, k);
    made = select(k ? moved(here, k) : here, k ? moved(byte, k) : byte, made);
  }
  return fitted(made.to(KEEL_U8), wide);
}

// The bytes at the places that the lengths before them give.
Term written_in_turn(const Term& leads, const Term& points, keel_dim wide) {
  Edit& e = points.edit();
  const keel_dim count = points.dim(0);
  const Term length = lengths_of(points), used = select(leads, length, 0.0);
  const Term start = used.to(KEEL_I64).op("cumsum", Attrs().i("axis", 1).flag("exclusive", true));
  const Term first = counting_term(e, points.dims(), 0, KEEL_I64) * start.size(wide) + start;
  const Term dropped = start.size(e.mul(count, wide));
  std::vector<Term> places, bytes;
  for (int k = 0; k < 4; k++) {
    places.push_back(select(used > static_cast<double>(k), first + static_cast<double>(k), dropped));
    bytes.push_back(encoded(points, length, k));
  }
  const Term all = concat(places, 1).op("scatter_add", concat(bytes, 1),
                                        Attrs().dim("size", e.add(e.mul(count, wide), 1)));
  return all.slice(0, 0, e.mul(count, wide)).reshape({count, wide}).to(KEEL_U8);
}

Term any_in_case(const Term& rows, Case to) {
  const auto [leads, before] = decoded(rows);
  const Term points = mapped(before, to);
  const Term kept = (lengths_of(before) == lengths_of(points)) | leads.op("logical_not");
  const auto branch = [](auto written) {
    return [written](const Terms& in) { return written(in[0], in[1], wide_of(in[0])); };
  };
  return cond(rows.edit(), kept.op("reduce_min"), {leads, points}, branch(written_in_place),
              branch(written_in_turn));
}

// The rows u8[k, width] with letters of the case: u8[k, width * 3 / 2].
Term in_case(const Term& rows, Case to) {
  const auto branch = [to](auto converted) {
    return [to, converted](const Terms& in) { return converted(in[0], to); };
  };
  return cond(rows.edit(), rows.op("reduce_max") < 128, {rows}, branch(ascii_in_case), branch(any_in_case));
}

struct Change {
  bool any = false;
  Case to = Case::kLower;
  Term of(const Term& rows) const { return any ? in_case(rows, to) : rows; }
};

Change change_of(Call& c) {
  const std::string action = c.s("case_change_action", "NONE"), locale = c.s("locale", "");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    c.invalid(cat("case_change_action is '", action, "'; expected LOWER, UPPER or NONE"));
  for (const char* own : {"tr", "az", "lt"})  // languages with rules of their own
    if (locale.compare(0, 2, own) == 0)
      c.unsupported(cat("locale '", locale, "'; expected another language"));
  return {action != "NONE", action == "UPPER" ? Case::kUpper : Case::kLower};
}

// Whether each row is one of the stop words.
Term stopped(Call& c, const Term& rows, const Change& change) {
  Words stop = c.strings("stopwords");
  const bool sensitive = c.i("is_case_sensitive", 0) != 0;
  for (std::string& word : stop) {
    expect_text(word, cat(c.title(), ": stopwords"));
    if (!sensitive) word = in_case(word, change.to);
  }
  const Term compared = sensitive ? rows : in_case(rows, change.to);
  return Vocabulary(c.e, stop, cat(c.title(), ": stopwords")).places(compared).op("greater_equal", 0);
}

// The elements that stay, in order; if there are none, one empty string. dims: [n] or [1, n].
ValueP kept(Call& c, const Term& indices, const Term& keep, const Term& rows, size_t rank) {
  Edit& e = c.e;
  const keel_dim n = keep.dim(0), count = rows.dim(0);
  const Term ones = keep.to(KEEL_I64), found = ones.sum({0});
  const Term turn = select(keep, ones.op("cumsum", Attrs().flag("exclusive", true)), ones.size(n));
  const Term chosen = turn.op("scatter_add", counting_term(e, n, KEEL_I64), Attrs().dim("size", e.add(n, 1)));
  const Term order = select(found == 0, chosen.size(n), chosen).op("trim", found.op("maximum", 1));
  const Term more = concat({indices, indices.size(count).reshape({1})}, 0);
  const Term made = more.gather(order, 0);
  auto value = std::make_shared<Value>();
  value->id = rank == 2 ? made.unsqueeze(0).v : made.v;
  value->table = std::make_shared<Value>();
  value->table->id = concat({rows, filled(e, KEEL_U8, 0, {1, rows.dim(1)})}, 0).v;
  return value;
}

void string_normalizer(Call& c) {
  const Strings x(c, 0);
  const Dims dims = x.dims();
  if (dims.empty() || dims.size() > 2 || (dims.size() == 2 && !c.e.may_be(dims[0], 1)))
    c.invalid(cat("its operand has ", dims.size(), " dims; expected [n] or [1, n]"));
  const Change change = change_of(c);
  const Term rows = x.rows(), made = change.of(rows);
  if (c.strings("stopwords").empty()) return c.set(0, x.spread_rows(made));
  const Term keep = x.spread(stopped(c, rows, change).op("logical_not")).reshape({-1});
  c.set(0, kept(c, Term(c, 0).to(KEEL_I64).reshape({-1}), keep, made, dims.size()));
}

constexpr Rule kRules[] = {
    {"StringNormalizer", 10, string_normalizer, "case_change_action is_case_sensitive locale stopwords", 0,
     false, false, true},
};

}  // namespace

Rules string_case_rules() { return kRules; }

}  // namespace onnx_import
