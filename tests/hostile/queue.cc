// queue.cc: queues whose work runs late: when the host waits, and sometimes at random. The next queue is
// random; waits are kept unless "drop_wait" injects a fault.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "device.h"

namespace hostile {
namespace {

// Rule of keel_plugin.h: calls that encode on one queue are never made by two threads at once.
class Inside {
 public:
  explicit Inside(keel_queue q) : q_(q) {
    if (q_->inside.fetch_add(1) != 0) control().Violation("two threads encode on one queue");
  }
  ~Inside() { q_->inside.fetch_sub(1); }

 private:
  keel_queue q_;
};

bool MayGoOn(const keel_queue_s& q) {
  if (q.waiting.empty()) return false;
  const Command& next = q.waiting.front();
  return next.kind != Command::kWait || next.other->done >= next.ticket;
}

// A random command that may be the next: the first, or a launch that need not come after what still waits.
size_t Next(keel_queue q, std::mt19937_64& random) {
  const uint32_t first = q->waiting.front().place;
  std::vector<size_t> able{0};
  for (size_t i = 1; first && i < q->waiting.size(); i++) {
    const Command& command = q->waiting[i];
    if (!command.place || command.number == 1) break;
    if (command.number && command.depends < first) able.push_back(i);
  }
  return able[random() % able.size()];
}

// Orders are counted of two queues.
bool Ordered(const keel_queue_s& q) { return q.kind != KEEL_QUEUE_DOWNLOAD; }

void Push(keel_queue q, Command command) {
  if (command.kind == Command::kWork && Ordered(*q)) q->device->orders.Work(static_cast<int>(q->kind));
  if (command.number) q->last_number = command.place = command.number;
  q->waiting.push_back(std::move(command));
}

}  // namespace

keel_rc Encode(keel_queue q, Command command) {
  if (keel_rc rc = q->device->Lost()) return rc;
  if (q->recording) control().Violation("a copy or a fill within a recording");
  Inside inside(q);
  std::lock_guard lock(q->device->mutex);
  Push(q, std::move(command));
  q->device->RunSome();
  return KEEL_OK;
}

keel_rc QueueOpen(keel_dev d, uint32_t kind, keel_queue* out) {
  HOSTILE_FAIL(d->host, "queue_open");
  const uint64_t downloads = control().downloads;
  if (kind == KEEL_QUEUE_DOWNLOAD && !(downloads == 2 ? control().seed % 2 : downloads))
    return d->host->fail(KEEL_UNIMPLEMENTED, "no queue for downloads");
  if (keel_rc rc = d->Lost()) return rc;
  std::lock_guard lock(d->mutex);
  auto* q = new keel_queue_s;
  q->device = d;
  q->kind = kind;
  d->queues.push_back(q);
  control().queues++;
  *out = q;
  return KEEL_OK;
}

void QueueClose(keel_queue q) {
  keel_dev d = q->device;
  std::lock_guard lock(d->mutex);
  d->queues.erase(std::find(d->queues.begin(), d->queues.end(), q));
  control().queues--;
  delete q;  // pending work is dropped
}

keel_rc Copy(keel_queue q, const keel_segment* to, uint64_t to_offset, const keel_segment* from,
             uint64_t from_offset, uint64_t bytes) {
  keel_dev d = q->device;
  HOSTILE_FAIL(d->host, "copy");
  if (q->kind == KEEL_QUEUE_DOWNLOAD && to->kind != KEEL_SEGMENT_READBACK)
    control().Violation("copy: the download queue copies to read-back memory only");
  uint64_t target = to->address + to_offset, source = from->address + from_offset;
  Command command{Command::kWork, nullptr};
  command.upload = from->kind == KEEL_SEGMENT_STAGING;
  command.place = q->last_number + 1;
  command.work = [d, target, source, bytes]() -> std::string {
    std::string why;
    char *t = d->Reach(target, bytes, &why), *s = d->Reach(source, bytes, &why);
    if (!t || !s) return "copy " + why;
    std::memmove(t, s, bytes);
    return "";
  };
  return Encode(q, std::move(command));
}

keel_rc CopyFrom(keel_queue q, const keel_segment* to, uint64_t to_offset, keel_dev other,
                 const keel_segment* from, uint64_t from_offset, uint64_t bytes) {
  keel_dev d = q->device;
  HOSTILE_FAIL(d->host, "copy_from");
  if (!control().peers) return d->host->fail(KEEL_UNIMPLEMENTED, "no way from there");
  if (q->kind != KEEL_QUEUE_TRANSFER || other == d || to->kind != KEEL_SEGMENT_DEVICE)
    control().Violation("copy_from: wrong queue, device or segment");
  uint64_t target = to->address + to_offset, source = from->address + from_offset;
  Command command{Command::kWork, nullptr};
  command.work = [d, other, target, source, bytes]() -> std::string {
    std::string why;
    char *t = d->Reach(target, bytes, &why), *s = other->Reach(source, bytes, &why);
    if (!t || !s) return "copy_from " + why;
    std::memmove(t, s, bytes);
    return "";
  };
  control().peer_copies++;
  return Encode(q, std::move(command));
}

keel_rc Fill(keel_queue q, const keel_segment* to, uint64_t offset, uint64_t bytes, uint32_t value) {
  keel_dev d = q->device;
  HOSTILE_FAIL(d->host, "fill");
  if (q->kind != KEEL_QUEUE_COMPUTE || to->kind != KEEL_SEGMENT_DEVICE || offset % 4 || bytes % 4)
    control().Violation("fill: wrong queue, segment or alignment");
  uint64_t target = to->address + offset;
  Command command{Command::kWork, nullptr};
  command.place = q->last_number + 1;
  command.work = [d, target, bytes, value]() -> std::string {
    std::string why;
    char* t = d->Reach(target, bytes, &why);
    if (!t) return "fill " + why;
    for (uint64_t i = 0; i < bytes; i += 4) std::memcpy(t + i, &value, 4);
    return "";
  };
  return Encode(q, std::move(command));
}

keel_rc Submit(keel_queue q, uint64_t* ticket) {
  keel_dev d = q->device;
  HOSTILE_FAIL(d->host, "submit");
  if (q->recording) control().Violation("submit within a recording");
  if (keel_rc rc = d->Lost()) return rc;
  Inside inside(q);
  std::lock_guard lock(d->mutex);
  *ticket = ++q->submitted;
  if (Ordered(*q)) d->orders.Ticket(static_cast<int>(q->kind), *ticket);
  Command command{Command::kTicket, nullptr};
  command.ticket = *ticket;
  Push(q, std::move(command));
  d->RunSome();
  return KEEL_OK;
}

keel_rc QueueWait(keel_queue q, keel_queue other, uint64_t ticket) {
  keel_dev d = q->device;
  HOSTILE_FAIL(d->host, "queue_wait");
  if (keel_rc rc = d->Lost()) return rc;
  if (q->recording) control().Violation("queue_wait within a recording");
  if (other->device != d) control().Violation("queue_wait for a queue of another device");
  Inside inside(q);
  std::lock_guard lock(d->mutex);
  if (ticket == 0 || ticket > other->submitted)
    control().Violation("queue_wait for a ticket that is not yet");
  if (control().drop_wait) return KEEL_OK;
  if (Ordered(*q) && Ordered(*other)) d->orders.Wait(static_cast<int>(q->kind), ticket);
  Command command{Command::kWait, nullptr};
  command.other = other;
  command.ticket = ticket;
  Push(q, std::move(command));
  d->RunSome();
  return KEEL_OK;
}

namespace {

// Whether all work before the ticket is uploads.
bool OnlyUploads(const keel_queue_s& q, uint64_t ticket) {
  for (const Command& c : q.waiting) {
    if (c.kind == Command::kTicket && c.ticket >= ticket) return true;
    if (c.kind == Command::kWork && !c.upload) return false;
  }
  return true;
}

// When no work is pending, the number of orders so far is final.
void CountOrders(keel_dev d) {
  for (keel_queue q : d->queues)
    if (!q->waiting.empty()) return;
  control().millibits += static_cast<uint64_t>(1000 * d->orders.Count());
}

}  // namespace

keel_rc HostWait(keel_queue q, uint64_t ticket, uint64_t timeout) {
  keel_dev d = q->device;
  HOSTILE_FAIL(d->host, "host_wait");
  if (keel_rc rc = d->Lost()) return rc;
  std::unique_lock lock(d->mutex);
  if (ticket == 0 || ticket > q->submitted) control().Violation("host_wait for a ticket that is not yet");
  if (control().late_read && OnlyUploads(*q, ticket)) return KEEL_OK;
  if (timeout < UINT64_MAX && q->done < ticket && d->random() % 8 == 0)
    return KEEL_CANCELLED;  // time is over
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::nanoseconds(std::min<uint64_t>(timeout, INT64_MAX / 4));
  while (q->done < ticket && d->lost.empty()) {
    if (std::chrono::steady_clock::now() >= end) return KEEL_CANCELLED;
    if (uint64_t delay = control().delay) {  // another thread may encode meanwhile
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(delay));
      lock.lock();
    }
    if (q->done < ticket && !d->RunOne())
      return d->host->fail(KEEL_INTERNAL, "every queue waits: a deadlock");
  }
  if (!d->lost.empty()) return d->Lost();
  if (Ordered(*q)) d->orders.HostSaw(static_cast<int>(q->kind), ticket);
  CountOrders(d);
  return KEEL_OK;
}

keel_rc Query(keel_queue q, uint64_t* done) {
  keel_dev d = q->device;
  HOSTILE_FAIL(d->host, "query");
  if (keel_rc rc = d->Lost()) return rc;
  std::lock_guard lock(d->mutex);
  d->RunSome();
  *done = control().early_free ? q->submitted : q->done;
  return KEEL_OK;
}

}  // namespace hostile

bool keel_dev_s::RunOne() {
  std::vector<keel_queue> able;
  for (keel_queue q : queues)
    if (hostile::MayGoOn(*q)) able.push_back(q);
  if (able.empty()) return false;
  keel_queue q = able[random() % able.size()];
  const auto at = q->waiting.begin() + static_cast<std::ptrdiff_t>(hostile::Next(q, random));
  hostile::Command command = std::move(*at);
  q->waiting.erase(at);
  if (command.kind == hostile::Command::kTicket) q->done = command.ticket;
  if (command.kind != hostile::Command::kWork) return true;
  hostile::control().commands++;
  std::string wrong = command.work();
  if (!wrong.empty() && lost.empty()) lost = wrong;
  return true;
}

void keel_dev_s::RunSome() {
  if (random() % 4 || hostile::control().delay) return;  // a slow device has done nothing by the next call
  for (uint64_t n = random() % 4; n > 0 && RunOne(); n--) {
  }
}

keel_rc keel_dev_s::Lost() const {
  if (hostile::control().lost) return host->fail(KEEL_UNAVAILABLE, "the device is lost");
  return lost.empty() ? KEEL_OK : host->fail(KEEL_INTERNAL, lost.c_str());
}
