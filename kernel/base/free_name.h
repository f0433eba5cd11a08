// free_name.h: names that nothing has yet.
#pragma once

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace keel {

// The stem itself where it is free, else with 1, 2 ... behind it. taken(name): whether something has it.
template <typename Taken>
std::string FreeName(std::string_view stem, const Taken& taken, std::string_view between = "_") {
  std::string name(stem);
  for (int i = 1; taken(name); i++) name = absl::StrCat(stem, between, i);
  return name;
}

}  // namespace keel
