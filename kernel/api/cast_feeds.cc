// cast_feeds.cc: see cast_feeds.h.
#include "kernel/api/cast_feeds.h"

#include "kernel/language/graph/graph_sink.h"
#include "kernel/runtime/plan/op_graph.h"

namespace keel {
namespace {

// A cast keeps the kind or widens it: bool, unsigned, signed, float (NumPy's "same_kind").
bool SameKind(DType from, DType to) {
  if (IsStorage(from) || IsStorage(to)) return false;
  auto rank = [](DType d) {
    DKind kind = Info(d).kind;
    return kind == DKind::kUint ? 1 : kind == DKind::kInt ? 2 : kind == DKind::kFloat ? 3 : 0;
  };
  return rank(from) <= rank(to);
}

// Serves all sizes.
absl::StatusOr<std::shared_ptr<Plan>> MakeCast(const SessionState& s, DType from, int32_t rank, DType to) {
  Module module(s.module->context->catalogue);
  TensorType type{from, {}};
  for (int32_t d = 0; d < rank; d++) {
    ASSIGN_OR_RETURN(type.dims.emplace_back(), module.dims.Symbol(absl::StrCat("n", d)));
  }
  ASSIGN_OR_RETURN(const OpDef* cast, module.catalogue->Find("cast", 0));
  Attrs attrs = MakeAttrs({{"to", KEEL_ATTR_DTYPE, static_cast<int64_t>(to)}});
  ASSIGN_OR_RETURN(OpGraph alone, BuildOp(module, *cast, attrs, {type}));
  return Plan::Make(alone.On(s.device), s.options);
}

absl::StatusOr<std::shared_ptr<Plan>> FindCast(SessionState& s, DType from, int32_t rank, DType to) {
  std::lock_guard lock(s.mutex);
  std::tuple key(from, rank, to);
  if (auto known = s.casts.find(key); known != s.casts.end()) return known->second;
  ASSIGN_OR_RETURN(std::shared_ptr<Plan> made, MakeCast(s, from, rank, to));
  return s.casts[key] = std::move(made);
}

absl::StatusOr<ArrayRef> CastFeed(SessionState& s, keel_array* feed, DType to) {
  ASSIGN_OR_RETURN(std::shared_ptr<Plan> plan, FindCast(s, feed->dtype, feed->view.ndim, to));
  ArrayRef out;
  RETURN_IF_ERROR(plan->Run({&feed, 1}, {&out, 1}));
  return out;
}

}  // namespace

absl::Status CastFeeds(SessionState& s, const Plan& plan, Feeds* in, std::vector<ArrayRef>* made) {
  const Lowered& lowered = plan.lowered();
  for (size_t i = 0; !s.exact_feeds && i < in->size() && i < lowered.feeds.size(); i++) {
    DType to = lowered.values[lowered.feeds[i]].type.dtype;
    keel_array* feed = (*in)[i];
    if (!feed || feed->dtype == to || !SameKind(feed->dtype, to)) continue;
    ASSIGN_OR_RETURN(made->emplace_back(), CastFeed(s, feed, to));
    (*in)[i] = made->back().get();
  }
  return absl::OkStatus();
}

}  // namespace keel
