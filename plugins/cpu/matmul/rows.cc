// rows.cc: the impls of products: one row for each reason to multiply by oneDNN or by the own loops, since
// the name of an impl is all that `keel plan` shows of a choice. All rows prepare alike.
#include <array>
#include <utility>

#include "plugins/cpu/matmul/choice.h"
#include "plugins/cpu/matmul/matmul.h"
#include "plugins/cpu/regions/body.h"

namespace keel_cpu {
namespace {

constexpr size_t kGeneral = SIZE_MAX, kMostReasons = 128;

// kGeneral: prepare chooses, because not all dims are numbers yet. So do nodes of regions, which have no row
// in a report.
size_t ReasonOf(const Node& node) {
  if (IsInner(node) || !(HasDims(node.In(0)) && HasDims(node.In(1)) && HasDims(node.Out(0)))) return kGeneral;
  return ReasonFor(ReadMatmul(node), node.In(1).data != nullptr);
}

template <size_t kReason>
int32_t Matches(keel_dev, const keel_host* host, const keel_node* node) {
  try {
    return ReasonOf({host, node}) == kReason;
  } catch (...) {
    return kReason == kGeneral;  // prepare reports the error
  }
}
using Match = decltype(keel_impl::match);
constexpr auto kMatches = []<size_t... i>(std::index_sequence<i...>) {
  return std::array<Match, sizeof...(i)>{Matches<i>...};
}
(std::make_index_sequence<kMostReasons>());

keel_impl Row(const char* name, bool onednn, Match match) {
  return Impl("matmul", name, Prepare<PrepareMatmul>, onednn ? KEEL_IMPL_THREAD_BITS : 0, "T=f32", 1, match);
}

std::vector<keel_impl> MakeRows() {
  std::vector<keel_impl> rows = {Row("oneDNN or own loops, by size", true, Matches<kGeneral>)};
  const std::vector<ProductReason>& reasons = ProductReasons();
  for (size_t i = 0; i < reasons.size() && i < kMostReasons; i++)
    rows.push_back(Row(reasons[i].name.c_str(), reasons[i].onednn, kMatches[i]));
  rows.push_back(Impl("matmul", "blocked loops", Prepare<PrepareMatmul>));
  return rows;
}

}  // namespace

Impls MatmulImpls() {
  static const std::vector<keel_impl> rows = MakeRows();
  return rows;
}

}  // namespace keel_cpu
