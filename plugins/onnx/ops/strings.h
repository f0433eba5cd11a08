// strings.h: tensors of strings for converters: their bytes as terms, and a vocabulary to search.
//
// A converter computes on the rows of an operand's table, each distinct string of a constant once, and
// spreads the answers over the elements.
#pragma once
#include "plugins/onnx/import/text.h"
#include "plugins/onnx/ops/term.h"

namespace onnx_import {

inline bool holds_strings(Call& c, size_t i) { return c.has(i) && c.value(i).table; }

class Strings {
 public:
  Strings(Call& c, size_t i);  // refuses another operand

  Dims dims() const { return e_->dims(*value_); }
  Term rows() const { return {*e_, e_->id(*value_->table)}; }   // u8[k, width]
  Term bytes() const { return {*e_, bytes_of(*e_, *value_)}; }  // u8[dims.., width]
  // [k, R..] of the rows as [dims.., R..] of the elements.
  Term spread(const Term& of_rows) const;
  ValueP spread_rows(const Term& rows) const;  // other rows u8[k, width] for the elements

 private:
  Edit* e_;
  ValueP value_;
};

Term byte_counts(const Term& bytes);                      // i64[dims..]: the strings' lengths
Term fitted(const Term& bytes, keel_dim width);           // cut or padded
Term same_bytes(const Term& a, const Term& b);            // bool[dims..], broadcast
void give_strings(Call& c, size_t k, const Term& bytes);  // result k from u8[dims.., width]
// Result k: strings of a constant list, by their places.
void give_words(Call& c, size_t k, const Words& words, const Term& places);

// The words of an attribute that is a list of strings or a tensor of them.
Words words_of(Call& c, const char* list, const char* tensor = "");

// Searches constant words: a hash of the bytes among the sorted hashes, then one comparison of bytes.
class Vocabulary {
 public:
  Vocabulary(Edit& e, const Words& words, const std::string& what);
  // i64[k]: the place of each row u8[k, width] in the list, the first of equal words; -1: none.
  Term places(const Term& rows) const;

 private:
  Edit* e_;
  keel_dim width_ = 0;
  Ints powers_, hashes_, order_;  // hashes and places are sorted by hash
  ValueP sorted_;                 // the words in this order
};

// Places of i64 numbers in a constant list, the first of equal ones; -1: none.
Term places_of(const Term& numbers, const Ints& list);

// string_floats.cc: f64[k] from the rows u8[k, width]; the run fails where one is no number.
Term floats_of(Call& c, const Term& rows);

// x * 10^exponent of f64 and i64, in two steps: one power may be too large.
Term scaled(const Term& x, const Term& exponent);
// string_decimal.cc: finite x >= 0 of f64 as digits * 10^(exponent - 7), both i64; the digits are 8, or 0.
struct Decimal {
  Term digits, exponent;
};
Decimal decimal_of(const Term& x, bool wide);  // wide: not from an f32
// string_digits.cc: u8[dims.., width] of floats of any dtype.
Term text_of_floats(const Term& x);

// Operators that also take numbers.
void concat_strings(Call& c);
void where_strings(Call& c);
void equal_strings(Call& c);
void cast_to_strings(Call& c);
void cast_from_strings(Call& c, keel_dt to);

}  // namespace onnx_import
