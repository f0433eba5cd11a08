// orders.h: counts the legal orders of the work on two queues: each queue in order, waits kept, nothing
// before work that the host had seen completed when it was encoded.
#ifndef KEEL_TESTS_HOSTILE_ORDERS_H
#define KEEL_TESTS_HOSTILE_ORDERS_H
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

namespace hostile {

class Orders {
 public:
  void Work(int q) { work_[q].push_back(floor_[q]); }
  void Ticket(int q, uint64_t ticket) { at_[q][ticket] = work_[q].size(); }
  // Queue q waits for a ticket of the other queue.
  void Wait(int q, uint64_t ticket) { Raise(q, At(1 - q, ticket)); }
  void HostSaw(int q, uint64_t ticket) { Raise(1 - q, At(q, ticket)); }

  // log2 of the number of orders of all work since the last call; resets it.
  double Count() {
    constexpr size_t kTooMany = 4'000'000;
    const std::vector<size_t>&a = work_[0], &b = work_[1];
    double bits = (a.size() + 1) * (b.size() + 1) > kTooMany ? 0 : Paths(a, b);
    *this = {};
    return bits;
  }

 private:
  size_t At(int q, uint64_t ticket) const {
    auto it = at_[q].find(ticket);
    return it == at_[q].end() ? 0 : it->second;
  }
  void Raise(int q, size_t n) { floor_[q] = n > floor_[q] ? n : floor_[q]; }

  static double Add(double x, double y) {
    if (x < y) std::swap(x, y);
    return std::isinf(y) ? x : x + std::log2(1 + std::exp2(y - x));
  }

  // Counts paths in a grid: (i, j) means i commands of a and j of b are done.
  static double Paths(const std::vector<size_t>& a, const std::vector<size_t>& b) {
    const double none = -INFINITY;
    std::vector<double> row(b.size() + 1, none);
    row[0] = 0;
    for (size_t i = 0; i <= a.size(); i++)
      for (size_t j = 0; j <= b.size(); j++) {
        double ways = i == 0 ? (j == 0 ? 0 : none) : (j >= a[i - 1] ? row[j] : none);
        if (j > 0 && i >= b[j - 1]) ways = Add(ways, row[j - 1]);
        row[j] = ways;
      }
    return std::isinf(row[b.size()]) ? 0 : row[b.size()];
  }

  std::vector<size_t> work_[2];  // by command: commands of the other queue that must be done before
  std::map<uint64_t, size_t> at_[2];
  size_t floor_[2] = {};
};

}  // namespace hostile
#endif
