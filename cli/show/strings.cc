// strings.cc: see strings.h.
#include "cli/show/strings.h"

#include <algorithm>
#include <sstream>

namespace cli {
namespace {

std::vector<int64_t> dims_of(const keel::Array& array) {
  return {array.shape().begin(), array.shape().end() - 1};
}

std::string row(const keel::Array& array, int64_t k) {
  const auto width = static_cast<size_t>(array.shape().back());
  const std::string bytes(static_cast<const char*>(array.data()) + static_cast<size_t>(k) * width, width);
  return bytes.substr(0, bytes.find_last_not_of('\0') + 1);
}

// In quotes, with escapes.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class StringPrinter {
 public:
  StringPrinter(const keel::Array& array, int64_t whole) : array_(array), dims_(dims_of(array)) {
    int64_t count = 1;
    for (int64_t d : dims_) count *= d;
    edge_ = count > whole ? 3 : count;
    walk(0, 0, count);
  }
  std::string text;

 private:
  // `count` strings from number `at` on, along dim `dim`.
  void walk(size_t dim, int64_t at, int64_t count) {
    if (dim == dims_.size()) return void(text += quoted(row(array_, at)));
    const int64_t n = count == 0 ? 0 : dims_[dim], step = n ? count / n : 0;
    const std::string between = dim + 1 == dims_.size() ? ", " : "\n" + std::string(dim + 1, ' ');
    text += "[";
    for (int64_t i = 0; i < n; i++) {
      if (i > 0) text += between;
      if (n > 2 * edge_ && i == edge_) {
        text += "..." + between;
        i = n - edge_;
      }
      walk(dim + 1, at + i * step, step);
    }
    text += "]";
  }

  const keel::Array& array_;
  std::vector<int64_t> dims_;
  int64_t edge_ = 0;  // strings shown at each end of a long dim
};

}  // namespace

std::set<std::string> string_results(const Model& model) {
  std::set<std::string> names;
  const auto& metadata = model.info.at("metadata");
  if (!metadata.contains("onnx.string_outputs")) return names;
  std::istringstream lines(metadata.at("onnx.string_outputs").get<std::string>());
  for (std::string line; std::getline(lines, line);) names.insert(line);
  return names;
}

std::string strings_text(const keel::Array& array, int64_t whole) { return StringPrinter(array, whole).text; }

nlohmann::ordered_json strings_json(const keel::Array& array) {
  nlohmann::ordered_json data = nlohmann::ordered_json::array();
  const int64_t width = array.shape().back();
  const int64_t count = width ? array.size() / width : 0;
  for (int64_t k = 0; k < count; k++) data.push_back(row(array, k));
  return {{"dtype", "string"}, {"shape", dims_of(array)}, {"data", std::move(data)}};
}

}  // namespace cli
