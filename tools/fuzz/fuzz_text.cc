// fuzz_text.cc: any text either fails with a message or parses to a module whose printed form parses to the
// same text.
#include <cstdint>
#include <cstdlib>

#include "kernel/language/graph/graph.h"
#include "tests/kernel/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto ops = std::make_shared<keel::Catalogue>();
  auto module = keel::ParseText({reinterpret_cast<const char*>(data), size}, ops);
  if (!module.ok()) return module.status().message().empty() ? (abort(), 0) : 0;
  std::string text = keel::PrintText(**module);
  auto again = keel::ParseText(text, ops);
  if (!again.ok() || keel::PrintText(**again) != text || !keel::test::Verify(**module).ok()) abort();
  return 0;
}
