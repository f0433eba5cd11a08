#include "kernel/language/dims/substitute.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace keel {

// In the text of the dim; a word before '(' is max or min.
absl::StatusOr<Dim> Substitute(Dim dim, const DimTable& of, DimTable& to,
                               absl::FunctionRef<absl::StatusOr<Dim>(std::string_view name)> by) {
  if (!IsSymbolic(dim)) return dim;
  const std::string text = of.Print(dim);
  std::string out;
  auto part_of_name = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && part_of_name(text[end])) end++;
    const std::string word = text.substr(at, std::max<size_t>(end - at, 1));
    const bool symbol = end > at && !absl::ascii_isdigit(static_cast<unsigned char>(word[0])) &&
                        (end == text.size() || text[end] != '(');
    if (symbol) {
      ASSIGN_OR_RETURN(const Dim found, by(word));
      absl::StrAppend(&out, "(", to.Print(found), ")");
    } else {
      out += word;
    }
    at += word.size();
  }
  return to.Parse(out, true);
}

}  // namespace keel
