// recording.cc: see recording.h.
#include "recording.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "relay.h"

namespace keel_cuda {
namespace {

using Recording = keel_recording_s;
using Graph = Recording::Graph;
using Table = Recording::Table;

// Replays without use after which a graph gives way to one for other addresses. So addresses that change in a
// cycle longer than the list of graphs do not cost a capture in each replay.
constexpr uint64_t kIdle = 16;

keel_rc EncodeAll(keel_queue q, const Recording& r, const Entries& entries) {
  for (const RecordedLaunch& launch : r.launches)
    if (keel_rc rc = Encode(q, launch, entries)) return rc;
  return KEEL_OK;
}

// Ends the capture in any case: it would make later calls of this thread fail.
keel_rc Capture(keel_queue q, const Recording& r, Table table, CUdeviceptr memory, CUgraphExec* out) {
  keel_dev d = q->device;
  CUDA_TRY(d, cuStreamBeginCapture, q->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  keel_rc rc = EncodeAll(q, r, {table, memory, r.kept});
  CUgraph captured = nullptr;
  const CUresult ended = cuda().cuStreamEndCapture_(q->stream, &captured);
  if (!rc) rc = d->Check(ended, "cuStreamEndCapture");
  if (!rc) rc = d->Check(cuda().cuGraphInstantiate_(out, captured, 0), "cuGraphInstantiate");
  if (captured) cuda().cuGraphDestroy_(captured);
  return rc;
}

bool KeepsSame(const Recording& r, Table a, Table b) {
  return std::ranges::all_of(r.kept, [&](uint16_t slot) { return a[slot] == b[slot]; });
}

// A graph that has this table, else the idlest graph that may get it.
Graph* FindGraph(Recording& r, Table table) {
  Graph* best = nullptr;
  for (Graph& graph : r.graphs) {
    if (graph.Has(table)) return &graph;
    if (KeepsSame(r, graph.written, table) && (!best || graph.used < best->used)) best = &graph;
  }
  return best;
}

// Whether a recent replay wanted a graph for such a table, too. exactly: for the same one, else for one with
// the same addresses of products.
bool IsRepeated(Recording& r, Table table, bool exactly) {
  for (const std::vector<uint64_t>& seen : r.seen)
    if (!seen.empty() && (exactly ? std::ranges::equal(seen, table) : KeepsSame(r, seen, table))) return true;
  if (r.wishes % r.seen.size() == 0) r.first = r.replays;
  r.seen[r.wishes++ % r.seen.size()].assign(table.begin(), table.end());
  return false;
}

keel_rc AddGraph(keel_queue q, Recording& r, Table table, Graph** out) {
  const bool is_new = r.graphs.size() < Recording::kMostGraphs;
  Graph* place = is_new ? nullptr : &*std::ranges::min_element(r.graphs, {}, &Graph::used);
  if (place && r.replays - place->used < kIdle) return KEEL_OK;
  Graph made;
  made.memory = place ? place->memory : r.memory + r.graphs.size() * table.size_bytes();
  made.written.assign(table.begin(), table.end());
  keel_rc rc = Capture(q, r, table, made.memory, &made.exec);
  if (rc == KEEL_OOM) r.full = true, rc = KEEL_OK;  // replays do without
  if (rc || r.full) return rc;
  if (place) cuda().cuGraphExecDestroy_(place->exec);  // one in flight ends first
  if (!place) place = &r.graphs.emplace_back();
  *place = std::move(made);
  *out = place;
  return KEEL_OK;
}

// In how many places entry `slot` was in the last wishes.
size_t CountPlaces(const Recording& r, uint16_t slot) {
  std::vector<uint64_t> places;
  for (const std::vector<uint64_t>& seen : r.seen) places.push_back(seen[slot]);
  std::ranges::sort(places);
  return static_cast<size_t>(std::ranges::unique(places).begin() - places.begin());
}

void DropGraphs(Recording& r) {
  for (const Graph& graph : r.graphs) cuda().cuGraphExecDestroy_(graph.exec);
  r.graphs.clear();
}

// For operands that were in more places than there are graphs.
keel_rc RelayWanderers(keel_queue q, Recording& r) {
  constexpr uint64_t kMostBytes = 8 << 20;  // a GPU copies them in the time of a few launches
  std::vector<uint16_t> rest;
  for (uint16_t slot : r.kept) {
    Relays made;
    keel_rc rc = KEEL_OOM;  // the entry stays kept
    if (CountPlaces(r, slot) > Recording::kMostGraphs)
      rc = AddRelays(q, r.launches, slot, kMostBytes - r.relayed, &made);
    if (rc && rc != KEEL_OOM) return rc;
    if (rc) rest.push_back(slot);
    if (!made.memory) continue;
    r.relays.push_back(made.memory);
    r.relayed += made.bytes;
  }
  if (rest.size() < r.kept.size()) DropGraphs(r);
  r.kept = std::move(rest);
  return KEEL_OK;
}

// *out NULL: the launches are encoded. A graph costs more than one encoding, so it is made for the second
// replay of the same addresses.
keel_rc ChooseGraph(keel_queue q, Recording& r, Table table, Graph** out) {
  *out = FindGraph(r, table);
  if ((*out && (*out)->Has(table)) || r.full) return KEEL_OK;
  if (*out && r.graphs.size() == Recording::kMostGraphs) return KEEL_OK;
  if (IsRepeated(r, table, *out)) return AddGraph(q, r, table, out);
  const bool often = r.wishes % r.seen.size() == 0 && r.replays - r.first < 4 * r.seen.size();
  return !*out && often ? RelayWanderers(q, r) : KEEL_OK;
}

// The table travels as numbers of a kernel: the driver copies these at once, and needs no staging memory.
keel_rc WriteTable(keel_queue q, const Recording& r, Graph& graph, Table table) {
  graph.is_written = false;
  graph.written.assign(table.begin(), table.end());
  constexpr size_t kMost = kMostNumbers - 1;
  for (size_t at = 0; at < table.size(); at += kMost) {
    const Table part = table.subspan(at, std::min(kMost, table.size() - at));
    KeelArgs args = {};
    args.address[0] = graph.memory + at * sizeof(uint64_t);
    args.numbers[0] = static_cast<int64_t>(part.size());
    std::ranges::copy(part, args.numbers + 1);
    if (keel_rc rc = Launch(q, r.store, 1, args)) return rc;
  }
  graph.is_written = true;
  return KEEL_OK;
}

keel_rc Begin(keel_queue q, Recording* r) {
  keel_dev d = q->device;
  if (keel_rc rc = d->Kernel("system", "store", &r->store)) return rc;
  const size_t bytes = std::max<size_t>(1, r->table.size()) * sizeof(uint64_t);
  CUDA_TRY(d, cuMemAlloc, &r->memory, Recording::kMostGraphs * bytes);
  return KEEL_OK;
}

void FindKept(Recording* r) {
  std::vector<size_t> counts(r->table.size());
  for (const RecordedLaunch& launch : r->launches) {
    for (const Place& place : launch.places)
      if (place.slot != kNoSlot) counts[place.slot]++;
    if (!launch.work->product) continue;
    for (uint32_t number : launch.work->steps[0].uses)
      if (uint16_t slot = launch.places[number].slot; slot != kNoSlot) r->kept.push_back(slot);
  }
  r->kept.push_back(static_cast<uint16_t>(std::ranges::max_element(counts) - counts.begin()));
  std::ranges::sort(r->kept);
  const auto rest = std::ranges::unique(r->kept);
  r->kept.erase(rest.begin(), rest.end());
}

}  // namespace

keel_rc RecordBegin(keel_queue q, const uint64_t* table, uint32_t n) {
  if (settings().no_recordings) return KEEL_UNIMPLEMENTED;
  auto r = std::make_unique<Recording>();
  r->table.assign(table, table + n);
  if (keel_rc rc = Begin(q, r.get())) return RecordingFree(q->device, r.release()), rc;
  q->recording = r.release();
  return KEEL_OK;
}

keel_rc RecordEnd(keel_queue q, keel_recording* out) {
  auto* r = static_cast<Recording*>(std::exchange(q->recording, nullptr));
  keel_rc rc = q->device->Enter();
  if (out && !rc) {
    FindKept(r);
    Graph* first = nullptr;
    rc = AddGraph(q, *r, r->table, &first);
  }
  if (out && !rc)
    *out = r;
  else
    RecordingFree(q->device, r);
  return rc;
}

keel_rc Replay(keel_queue q, keel_recording r, const uint64_t* at, uint32_t n) {
  if (n != r->table.size()) return q->device->host->fail(KEEL_INVALID, "replay: the table has another size");
  if (keel_rc rc = q->device->Enter()) return rc;
  const Table table(at, n);
  r->replays++;
  Graph* graph = nullptr;
  if (keel_rc rc = ChooseGraph(q, *r, table, &graph)) return rc;
  if (!graph) return EncodeAll(q, *r, {table});
  graph->used = r->replays;
  if (!graph->Has(table))
    if (keel_rc rc = WriteTable(q, *r, *graph, table)) return rc;
  CUDA_TRY(q->device, cuGraphLaunch, graph->exec, q->stream);
  return KEEL_OK;
}

void RecordingFree(keel_dev d, keel_recording r) {
  if (d->EnterToDestroy()) {
    DropGraphs(*r);
    for (CUdeviceptr memory : r->relays) cuda().cuMemFree_(memory);
    if (r->memory) cuda().cuMemFree_(r->memory);
  }
  delete r;
}

}  // namespace keel_cuda

bool keel_recording_s::Graph::Has(Table table) const {
  return is_written && std::ranges::equal(written, table);
}
