// fuzz_file.cc: any bytes as a file either fail with a message or load as a module that prints and verifies.
#include <cstdint>
#include <cstdlib>

#include "kernel/language/graph/graph.h"
#include "tests/kernel/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto ops = std::make_shared<keel::Catalogue>();
  auto module = keel::LoadBytes(data, size, nullptr, ops);
  if (!module.ok()) return module.status().message().empty() ? (abort(), 0) : 0;
  std::string text = keel::PrintText(**module, 4096);
  if (text.empty() || !keel::test::Verify(**module).ok()) abort();
  return 0;
}
