#include "kernel/language/graph/effects.h"

#include <algorithm>

namespace keel {
namespace {

void Merge(std::vector<uint32_t>* to, const std::vector<uint32_t>& from) {
  for (uint32_t v : from) {
    auto at = std::lower_bound(to->begin(), to->end(), v);
    if (at == to->end() || *at != v) to->insert(at, v);
  }
}

}  // namespace

void Effects::Add(const Effects& o) {
  Merge(&reads, o.reads);
  Merge(&writes, o.writes);
  err |= o.err;
  out |= o.out;
  guard |= o.guard;
  rng |= o.rng;
  host |= o.host;
  fails |= o.fails;
}

Effects OwnEffects(const OpDef& op, const Attrs& attrs) {
  Effects e;
  const AttrValue* on = FindAttr(attrs, EffectOn(op));
  auto variable = on ? static_cast<uint32_t>(on->i) : 0;
  switch (EffectOf(op)) {
    case EffectKind::kNone:
      break;
    case EffectKind::kRead:
      e.reads.push_back(variable);
      break;
    case EffectKind::kWrite:
      e.writes.push_back(variable);
      break;
    case EffectKind::kIo:
      (on && on->s == "out" ? e.out : e.err) = true;
      break;
    case EffectKind::kGuard:
      e.guard = true;
      break;
    case EffectKind::kRng:
      e.rng = true;
      break;
    case EffectKind::kHost:
      e.host = true;
      break;
  }
  return e;
}

}  // namespace keel
