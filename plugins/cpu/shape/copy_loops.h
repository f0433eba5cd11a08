// copy_loops.h: copies rows that are apart, such as heads of attention.
#pragma once

#include <cstdint>

namespace keel_cpu {

// Rows, `step` bytes from one to the next.
struct SourceRows {
  const char* data;
  int64_t step;
};
struct CopiedRows {
  char* data;
  int64_t step;
};
// Copies rows of so many bytes. With each the one `ahead` bytes later is fetched, unless that is 0.
using CopyRowsLoop = void (*)(SourceRows from, CopiedRows to, int64_t bytes, int64_t rows, int64_t ahead);
CopyRowsLoop FindCopyRows();

}  // namespace keel_cpu
