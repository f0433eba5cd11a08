// brief.h: the runs that keep the GIL. Releasing and reacquiring it costs 50 ns, as much as a small run, so
// runs that are expected to be brief keep it; all others release it.
//
// A run is brief if one with as many input elements or more took less than kBrief. never(): for runs whose
// time does not depend on sizes, such as loops and output.
#ifndef KEEL_PYTHON_BRIEF_H
#define KEEL_PYTHON_BRIEF_H
#include <algorithm>
#include <chrono>
#include <span>

#include "values/array.h"

namespace keel_python {

/// The number of nodes written by this thread whose run time is unrelated to sizes.
inline constinit thread_local uint64_t endless_written = 0;

/// State of one plan or function; guarded by the GIL.
class Brief {
 public:
  bool expected(int64_t elements) const { return elements <= up_to_; }
  bool possible() const { return possible_; }
  void never() { possible_ = false, up_to_ = -1; }
  /// Runs `once`, which releases the GIL, and records its time.
  template <class F>
  void measured(int64_t elements, F&& once) {
    auto begin = std::chrono::steady_clock::now();
    once();
    if (possible_ && std::chrono::steady_clock::now() - begin < kBrief) up_to_ = std::max(up_to_, elements);
  }

 private:
  static constexpr std::chrono::microseconds kBrief{20};
  bool possible_ = true;
  int64_t up_to_ = -1;
};

}  // namespace keel_python
#endif
