// cast_feeds.h: feeds of a session whose dtype differs from the graph's.
#pragma once

#include <vector>

#include "absl/container/inlined_vector.h"
#include "kernel/api/handles.h"

namespace keel {

using Feeds = absl::InlinedVector<keel_array*, 8>;
// Replaces feeds of another dtype of the same kind by casts, which `made` owns. Plans of casts are kept in
// the session. Thread-safe.
absl::Status CastFeeds(SessionState&, const Plan&, Feeds* in, std::vector<ArrayRef>* made);

}  // namespace keel
