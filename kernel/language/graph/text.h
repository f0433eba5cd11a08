// text.h: spellings shared by the printer and the parser.
#pragma once

#include <string>
#include <string_view>

namespace keel {

bool IsPlainName(std::string_view);       // [A-Za-z_][A-Za-z0-9_.]*
std::string SpellName(std::string_view);  // unchanged, or quoted if it could be read as something else
std::string SpellFloat(double);  // of attributes: shortest digits, or f64(hex"...") for NaNs with a payload

}  // namespace keel
