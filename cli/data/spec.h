// spec.h: parsing of inputs: NAME=SPEC, types, dims and random values.
//
// How to read it: Type is a parsed "f32[b, 2]"; Dims are the sizes of symbols; an InputSpec is one -i
// argument, which make_array() turns into an array once the expected type is known.
#ifndef KEEL_CLI_SPEC_H
#define KEEL_CLI_SPEC_H
#include <keel/session.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace cli {

struct Type {
  keel_dt dtype = 0;
  std::vector<std::string> dims;  // numbers or expressions in symbols
  std::string text() const;       // "f32[b, 2]"
};
std::optional<Type> parse_type(std::string_view text);

using Dims = std::map<std::string, int64_t>;
Dims parse_dims(const std::vector<std::string>& assignments);  // "b=4"
// Value of "4", "b", "2*b+1", "max(a, b)"; none if a symbol is not in `dims` or the text is not an
// expression.
std::optional<int64_t> eval_dim(std::string_view expression, const Dims& dims);
// Symbols of "2*b+max(n, 1)" that are not in `known`; whether the text is a plain symbol.
std::set<std::string> symbols_in(std::string_view expression, const Dims& known = {});
bool is_symbol(const std::string& expression);
// Binds symbols from a dim of known size: a plain symbol, or the only unknown symbol of an expression.
// Returns false if no size of the symbol satisfies it.
bool learn_dim(const std::string& expression, int64_t size, Dims& dims);
// The size of a dim; binds unknown symbols to 1.
int64_t generated_dim(const std::string& expression, Dims& dims);
// Binds symbols from a known shape.
void bind_dims(const Type& type, std::span<const int64_t> shape, Dims& dims);

struct InputSpec {
  std::string name, text;  // as given, for messages
  keel::Array ready;       // from @in.npz
};
// Parses -i arguments; "@in.npz" gives one InputSpec per array in the file.
std::vector<InputSpec> parse_inputs(const keel::Context& context, const std::vector<std::string>& arguments);
// Whether it specifies dtype and shape.
bool has_type(const InputSpec& input);
// `want` is the entry's type, or null if unknown.
keel::Array make_array(const keel::Context& context, const InputSpec& input, const Type* want,
                       const Dims& dims);
// The same shape with another dtype.
keel::Array cast_array(const keel::Context& context, const keel::Array& array, keel_dt dtype);

}  // namespace cli
#endif
