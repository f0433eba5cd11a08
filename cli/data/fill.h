// fill.h: arrays from literals and generators. Used by spec.cc and for missing inputs (bench).
#ifndef KEEL_CLI_FILL_H
#define KEEL_CLI_FILL_H
#include <keel/session.hpp>
#include <string_view>

namespace cli {

// `value`: "1,2,3" (as many as elements), "1.5" (fills), "range", "randn(seed)", "rand(seed)",
// "randint(lo, hi, seed)". `what` names the input in messages.
void fill(const keel::Array& array, std::string_view value, std::string_view what);
// Number of values in a comma list; 0 for a generator.
size_t count_literals(std::string_view value);

}  // namespace cli
#endif
