// brief.h: which runs keep the GIL. Handing it over and back costs 50 ns, as much as a small run, so runs
// that are expected to be brief keep it; all others let other Python threads go on.
//
// Brief is what was seen to take less than kBrief with as many elements or more among its inputs. Where a
// loop counts, or output may have to wait, sizes tell nothing: never().
#ifndef KEEL_PYTHON_BRIEF_H
#define KEEL_PYTHON_BRIEF_H
#include <algorithm>
#include <chrono>
#include <span>

#include "array.h"

namespace keel_python {

/// Nodes that this thread wrote into traces whose time no size tells.
inline constinit thread_local uint64_t endless_written = 0;

/// Of one plan or function; touched only with the GIL.
class Brief {
 public:
  bool expected(int64_t elements) const { return elements <= up_to_; }
  bool possible() const { return possible_; }
  void never() { possible_ = false, up_to_ = -1; }
  /// Runs `once`, which is to let other threads run, and learns from how long it took.
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
