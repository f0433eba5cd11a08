// text.h: spellings that the printer and the parser of graph text share.
#pragma once

#include <string>
#include <string_view>

namespace keel {

bool IsPlainName(std::string_view);       // [A-Za-z_][A-Za-z0-9_.]*
std::string SpellName(std::string_view);  // as it is, or quoted if it could be read as something else
std::string SpellFloat(double);           // of attributes: shortest digits, or f64(hex"...") for odd NaNs

}  // namespace keel
