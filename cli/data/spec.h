// spec.h: parsing of inputs: NAME=SPEC, types, dims and random values.
//
// How to read it: Type is "f32[b, 2]" taken apart; Dims are the sizes of symbols; an InputSpec is one -i
// argument, which make_array() turns into an array once the wanted type is known.
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
// Value of "4", "b", "2*b+1", "max(a, b)"; none if a symbol is not in `dims` or it is no expression.
std::optional<int64_t> eval_dim(std::string_view expression, const Dims& dims);
// Symbols of "2*b+max(n, 1)", but those of `known`; whether it is one by itself.
std::set<std::string> symbols_in(std::string_view expression, const Dims& known = {});
bool is_symbol(const std::string& expression);
// Learns from a dim of that size: a symbol takes it, an expression in one unknown symbol tells that. false:
// no size of the symbol makes it that.
bool learn_dim(const std::string& expression, int64_t size, Dims& dims);
// The size of a dim; symbols that nothing is known of are 1 from then on.
int64_t made_up_dim(const std::string& expression, Dims& dims);
// Learns symbols from a known shape.
void bind_dims(const Type& type, std::span<const int64_t> shape, Dims& dims);

struct InputSpec {
  std::string name, text;  // as given, for messages
  keel::Array ready;       // from @in.npz
};
// Takes -i arguments apart; "@in.npz" gives one InputSpec for each array in the file.
std::vector<InputSpec> parse_inputs(const keel::Context& context, const std::vector<std::string>& arguments);
// Does it say dtype and shape itself?
bool self_typed(const InputSpec& input);
// `want` is the entry's type, or null where there is none to lean on.
keel::Array make_array(const keel::Context& context, const InputSpec& input, const Type* want,
                       const Dims& dims);
// The same shape with another dtype.
keel::Array cast_array(const keel::Context& context, const keel::Array& array, keel_dt dtype);

}  // namespace cli
#endif
