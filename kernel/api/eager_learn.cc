// eager_learn.cc: fills the table of eager.h with the launches of plans that a call may skip.
#include <algorithm>

#include "kernel/api/eager.h"

namespace keel {
namespace {

constexpr uint64_t kMostScratch = 65536;  // the largest block of the free lists
constexpr int64_t kMaxBytes = int64_t{1} << 40;

// True if the plan is one launch of the op itself, from all operands to its only result.
bool IsOneLaunch(const Lowered& l) {
  if (l.steps.size() != 1 || l.fetches.size() != 1) return false;
  const Step& step = l.steps[0];
  if (step.out.size() != 1 || step.out[0] != l.fetches[0]) return false;
  size_t feed = 0;
  for (uint32_t v : step.in)
    if (v != kNoValue && (feed == l.feeds.size() || v != l.feeds[feed++])) return false;
  return feed == l.feeds.size();
}

// False if a `match` function may choose among the device's impls by dims.
bool ChosenByTypes(const Lowered& l, const Step& step) {
  const std::vector<Impl>& rows = l.device->plugin().impls.at(std::string(OpName(*step.op)));
  for (const Impl& impl : rows) {
    if (impl.table.match) return false;
    if (&impl == step.impl) break;
  }
  return true;
}

absl::StatusOr<std::shared_ptr<Launch>> PrepareFor(const Lowered& l, const Step& step, bool any_dims) {
  if (!any_dims) return step.launch;
  ASSIGN_OR_RETURN(keel_node node, ViewStep(l, step, {}));
  for (auto* sides : {&node.in, &node.out})
    for (keel_node::Side& side : *sides) std::fill(side.dims.begin(), side.dims.end(), -1);
  return Prepare(l, step, *l.device, node);
}

void SetShapes(Quick* q, keel_array* const* in, uint32_t n, const Dims& result) {
  bool flat = true;
  q->rank = static_cast<int32_t>(result.size());
  q->count = 1;
  for (size_t d = 0; d < result.size(); d++) q->count *= q->shape[d] = result[d];
  q->flags = KEEL_CALL_FLAT;
  for (uint32_t i = 0; i < n; i++) {
    if (!in[i]) continue;
    q->dims.insert(q->dims.end(), in[i]->dims, in[i]->dims + in[i]->view.ndim);
    flat = flat && (in[i]->count == q->count || in[i]->count == 1);
    if (in[i]->count == 1 && q->count != 1) q->flags |= KEEL_CALL_ONE(i);
  }
  if (!flat) q->flags = 0;
}

}  // namespace

void QuickTable::Learn(keel_array* const* in, uint32_t n, const std::shared_ptr<Plan>& plan,
                       const PlanOptions& options) {
  const Lowered& l = plan->lowered();
  const uint64_t key = QuickKey(in, n);
  if (!key || !IsOneLaunch(l)) return;
  for (uint32_t i = 0; i < n; i++)
    if (in[i] && in[i]->device_block()) return;
  const Step& step = l.steps[0];
  auto q = std::make_unique<Quick>();
  q->key = key;
  if (step.impl->table.flags & KEEL_IMPL_ANY_DIMS && ChosenByTypes(l, step)) q->rule = ShapeRuleOf(*step.op);
  absl::StatusOr<std::shared_ptr<Launch>> launch = PrepareFor(l, step, q->rule != ShapeRule::kInferred);
  if (!launch.ok() || !*launch || (*launch)->launch.scratch_bytes > kMostScratch) return;
  const TensorType& result = l.values[step.out[0]].type;
  q->dtype = result.dtype;
  SetShapes(q.get(), in, n, result.dims);
  q->launch = *std::move(launch);
  q->run = q->launch->launch.run;
  q->state = q->launch->launch.state;
  q->scratch_bytes = q->launch->launch.scratch_bytes;
  uint64_t most = options.memory > q->scratch_bytes ? options.memory - q->scratch_bytes : 0;
  q->max_count = (options.memory ? static_cast<int64_t>(std::min<uint64_t>(most, kMaxBytes)) : kMaxBytes) /
                 SizeOf(result.dtype);
  q->env = {sizeof(keel_env),
            options.threads,
            &HostTable(),
            q->launch->dev,
            nullptr,
            Exported(options.stopper->asked),
            0};
  q->plan = plan;
  Add(std::move(q));
}

void QuickTable::Add(std::unique_ptr<Quick> q) {
  size_t at = SlotOf(q->key), shapes = 0;
  while (slots_[at].load() && slots_[at].load()->key != q->key) at = (at + 1) % kSlots;
  std::atomic<Quick*>* end = &slots_[at];
  for (; Quick* other = end->load(); end = &other->next)
    if (other->rule != ShapeRule::kInferred || ++shapes == kMostShapes) return;
  if (end == &slots_[at] && keys_++ >= kMostKeys) return;
  end->store(q.release(), std::memory_order_release);
}

}  // namespace keel
