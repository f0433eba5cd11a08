// stop.h: latency of keel_context_cancel in different kinds of long runs.
#pragma once

#include <thread>

#include "harness.h"

namespace hot {

// Runs a plan repeatedly, cancels it after a while and measures the time until it returns.
inline Figure StopLatency(keel_context* c, std::string name, keel_plan* plan, std::vector<keel_array*> in) {
  std::vector<double> ns;
  for (int i = 0; i < 15; i++) {
    double asked = 0;
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30 + 7 * i));
      asked = Now();
      keel_context_cancel(c, 1);
    });
    keel_array* y = nullptr;
    keel_rc rc = keel_plan_run(plan, in.data(), static_cast<uint32_t>(in.size()), &y, 1, nullptr);
    double ended = Now();
    other.join();
    keel_context_cancel(c, 0);
    keel_array_free(y);
    if (rc == KEEL_CANCELLED) ns.push_back(ended - asked);
  }
  if (ns.empty()) ns.push_back(-1);  // every run ended before the cancel
  return Summarise(std::move(name), 50e6, std::move(ns));
}

}  // namespace hot
