// spec.cc: -i arguments. See spec.h; types and dims are in type.cc, values in fill.cc.
//
// How to read it: parse_inputs() splits names from specs; a spec is "@FILE[:SUFFIX]", "TYPE=VALUES" or
// "VALUES"; make_array() calls one function for each.
#include "cli/data/spec.h"

#include <fmt/core.h>

#include "cli/data/bytes.h"
#include "cli/data/fill.h"
#include "cli/data/npy.h"
#include "cli/data/scalar.h"
#include "cli/exit.h"

namespace cli {
namespace {

struct FileSpec {
  std::string path, suffix;
};

// The whole text if there is such a file, else split at the last ':'.
FileSpec split_file(const std::string& text) {
  size_t colon = text.rfind(':');
  if (colon == std::string::npos || is_file(text)) return {text, ""};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

std::vector<int64_t> sizes(const InputSpec& in, const Type& type, const Dims& dims) {
  std::vector<int64_t> out;
  for (const std::string& d : type.dims) {
    std::optional<int64_t> v = eval_dim(d, dims);
    if (!v || *v < 0) {
      const std::set<std::string> open = symbols_in(d, dims);
      throw Fail(
          kUsage,
          fmt::format("input \"{}\": the size of dim \"{}\" in {} is unknown", in.name, d, type.text()),
          fmt::format("give --dim {}=4, or the full type: {}={}[...]=...", open.empty() ? d : *open.begin(),
                      in.name, keel::dtype_name(type.dtype)));
    }
    out.push_back(*v);
  }
  return out;
}

keel::Array from_raw(const keel::Context& context, const InputSpec& in, const std::string& bytes,
                     const FileSpec& file, const Type& type, const Dims& dims) {
  keel::Array array = keel::Array::zeros(context, type.dtype, sizes(in, type, dims));
  if (bytes.size() != array.bytes())
    throw Fail(kBadFile, fmt::format("input \"{}\": {} has {} bytes, but {} takes {}", in.name, file.path,
                                     bytes.size(), type.text(), array.bytes()));
  if (!bytes.empty()) std::memcpy(array.data(), bytes.data(), bytes.size());
  return array;
}

keel::Array from_file(const keel::Context& context, const InputSpec& in, const Type* want, const Dims& dims) {
  FileSpec file = split_file(in.text.substr(1));
  std::string bytes = read_file(file.path), where = file.path == "-" ? "stdin" : file.path;
  const keel::DtypeRow* row = keel::find_dtype(std::string_view(file.suffix));
  std::optional<Type> type = parse_type(file.suffix);
  if (is_npy(bytes)) {
    keel_dt as = type ? type->dtype : row ? row->code : want ? want->dtype : 0;
    return read_npy(context, bytes, where, as);
  }
  if (is_zip(bytes)) {
    std::string member = file.suffix.empty() ? in.name : file.suffix;
    return read_npz(context, bytes, where, &member).front().second;
  }
  if (!type && want && file.suffix.empty()) type = *want;
  if (!type)
    throw Fail(kBadFile, fmt::format("input \"{}\": {} is neither .npy nor .npz", in.name, where),
               fmt::format("for raw bytes add the type: {}=@{}:f32[2,3]", in.name, file.path));
  return from_raw(context, in, bytes, file, *type, dims);
}

// Splits "f32[2,2]=VALUES"; a missing type stays empty.
std::pair<std::optional<Type>, std::string> split_typed(const InputSpec& in) {
  size_t equals = in.text.find('='), bracket = in.text.find('[');
  if (bracket == std::string::npos) return {std::nullopt, in.text};
  std::optional<Type> type = parse_type(std::string_view(in.text).substr(0, equals));
  if (!type || equals == std::string::npos)
    throw Fail(kUsage, fmt::format("input \"{}\": cannot read \"{}\"", in.name, in.text),
               fmt::format("for example {}=f32[2,2]=1,2,3,4", in.name));
  return {type, in.text.substr(equals + 1)};
}

// A single unknown dim follows from the number of values.
void infer_dim(const Type& type, std::string_view values, Dims& dims) {
  const std::string* open = nullptr;
  int64_t known = 1, count = static_cast<int64_t>(count_literals(values));
  for (const std::string& d : type.dims) {
    std::optional<int64_t> v = eval_dim(d, dims);
    if (!v && open) return;
    if (!v)
      open = &d;
    else if (__builtin_mul_overflow(known, *v, &known))
      return;
  }
  if (open && known > 0 && count > 0 && count % known == 0) learn_dim(*open, count / known, dims);
}

}  // namespace

std::vector<InputSpec> parse_inputs(const keel::Context& context, const std::vector<std::string>& arguments) {
  std::vector<InputSpec> out;
  for (const std::string& a : arguments) {
    if (a.starts_with("@")) {
      std::string path = a.substr(1), bytes = read_file(path);
      if (!is_zip(bytes))
        throw Fail(kBadFile, path + " is not an .npz file", "for a single array give NAME=" + a);
      for (auto& [name, array] : read_npz(context, bytes, path)) out.push_back({name, a, array});
      continue;
    }
    size_t equals = a.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Fail(kUsage, "input \"" + a + "\": expected NAME=SPEC or @FILE.npz",
                 "for example -i x=f32[2,2]=1,2,3,4");
    out.push_back({a.substr(0, equals), a.substr(equals + 1), {}});
  }
  for (size_t i = 0; i < out.size(); i++)
    for (size_t j = 0; j < i; j++)
      if (out[i].name == out[j].name) throw Fail(kUsage, "input \"" + out[i].name + "\" is given twice");
  return out;
}

bool has_type(const InputSpec& in) {
  if (in.ready) return true;
  if (!in.text.starts_with("@")) return in.text.find('[') != std::string::npos;
  FileSpec file = split_file(in.text.substr(1));
  return file.path != "-" &&
         (!file.suffix.empty() || file.path.ends_with(".npy") || file.path.ends_with(".npz"));
}

keel::Array make_array(const keel::Context& context, const InputSpec& in, const Type* want,
                       const Dims& known) {
  if (in.ready) return in.ready;
  if (in.text.starts_with("@")) return from_file(context, in, want, known);
  auto [type, values] = split_typed(in);
  if (!type && want) type = *want;
  if (!type)
    throw Fail(kUsage, fmt::format("input \"{}\": \"{}\" requires a type", in.name, in.text),
               fmt::format("for example {}=f32[2,2]={}", in.name, in.text));
  Dims dims = known;
  infer_dim(*type, values, dims);
  keel::Array array =
      at(Stage::kRun, [&] { return keel::Array::zeros(context, type->dtype, sizes(in, *type, dims)); });
  fill(array, values, fmt::format("input \"{}\"", in.name));
  return array;
}

// As the op cast does.
static keel::Array to_storage(const keel::PlainElements& from, const keel::Array& out) {
  visit(from.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = static_cast<const T*>(from.data());
    for (int64_t i = 0; i < out.size(); i++) {
      const uint8_t code = keel::storage_code(out.dtype(), static_cast<long double>(in[i]), is_floating<T>);
      keel::store_code(out.dtype(), out.data(), i, code);
    }
  });
  return out;
}

keel::Array cast_array(const keel::Context& context, const keel::Array& array, keel_dt dtype) {
  if (array.dtype() == dtype) return array;
  keel::Array out = keel::Array::zeros(context, dtype, array.shape());
  const keel::PlainElements elements(array);
  if (keel::is_storage(dtype)) return to_storage(elements, out);
  visit(elements.dtype(), [&](auto from) {
    visit(dtype, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      const From* in = static_cast<const From*>(elements.data());
      // Through double for fractions; integers directly, so that i64 keeps all its bits.
      using Middle = std::conditional_t<is_floating<From> || is_floating<To>, double, From>;
      for (int64_t i = 0; i < array.size(); i++) {
        auto v = static_cast<Middle>(in[i]);
        To* result = static_cast<To*>(out.data()) + i;
        if constexpr (is_floating<From> && !is_floating<To>) {
          if (!(std::fabs(v) < 9e18))
            throw Fail(kTyped, fmt::format("cannot convert {} to {}", v, keel::dtype_name(dtype)));
          *result =
              static_cast<To>(static_cast<int64_t>(v));  // wraps, where a direct cast would be undefined
        } else {
          *result = static_cast<To>(v);
        }
      }
    });
  });
  return out;
}

}  // namespace cli
