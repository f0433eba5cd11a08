// simplify_matmul.cc: a product that takes a transpose into its flags.
#include <algorithm>
#include <utility>

#include "passes.h"

namespace keel_passes {
namespace {

bool is_identity(const Ints& perm) { return std::is_sorted(perm.begin(), perm.end()); }

// A matmul reads an operand whose last two dims are swapped as it lies. Of a longer permutation only the swap
// goes into the flag, where that leaves a transpose which moves whole rows.
bool matmul_of_transpose(Edit& e, NodeId n) {
  Ids in = e.ins(n);
  bool flags[2] = {e.integer(n, "ta") != 0, e.integer(n, "tb") != 0};
  for (size_t i = 0; i < 2; i++) {
    const NodeId t = e.made_by(in[i], "transpose");
    if (t == kNone) continue;
    Ints perm = e.list(t, "perm");
    const size_t rank = perm.size();
    std::swap(perm[rank - 1], perm[rank - 2]);
    const bool whole = is_identity(perm);
    if (!whole && (perm[rank - 1] != static_cast<int64_t>(rank) - 1 || !e.single_use(in[i]))) continue;
    e.at(n);
    in[i] = whole ? e.in(t, 0) : e.add("transpose", {e.in(t, 0)}, Attrs().ints("perm", perm));
    flags[i] = !flags[i];
    return e.replace(n, e.add("matmul", in, Attrs().flag("ta", flags[0]).flag("tb", flags[1])));
  }
  return false;
}

constexpr Rule kRules[] = {{"matmul", matmul_of_transpose}};

}  // namespace

Rules matmul_rules() { return kRules; }

}  // namespace keel_passes
