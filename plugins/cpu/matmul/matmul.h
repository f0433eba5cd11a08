// matmul.h: the geometry of a matmul node, shared by the plugin's loops and by regions, and its launch.
#pragma once

#include <functional>

#include "plugins/cpu/matmul/shape.h"

namespace keel_cpu {

MatmulShape ReadMatmul(const Node& node);
// Of another op with the operands and the result of a product.
MatmulShape ReadProduct(const Node& node, bool ta, bool tb);

// By the own loops; b: a constant right operand, else null.
keel_rc PrepareLoops(keel_dt dtype, const MatmulShape& s, const void* b, keel_launch* launch);
// Rows that go through all panels, a part of k at a time, while the second-level cache holds them and two
// panels; common ones have 512 KiB and more. The fewer such blocks, the less often the panels are read.
int64_t RowsOfBlock();
// Rows and columns of a result, whose matrices are one below the other.
struct Cells {
  int64_t row, rows, column, columns;
};
using UseCells = std::function<void(const Cells&)>;
// Whether RunLoops can run such a launch. Others are of a few rows, or small.
bool ComputesBlocks(const keel_launch& launch);
// Runs it. The thread that computed a block of rows uses it while it is in the thread's caches.
keel_rc RunLoops(const keel_call* call, const UseCells& use);
// Whether MultiplyRows can: one product by a constant matrix, of values that are not converted first.
bool MultipliesRows(const keel_launch& launch);
// Rows of the product, on this thread; `more` rows follow in memory, and are fetched.
void MultiplyRows(const keel_call* call, const char* left, int64_t rows, bool more, char* y);
// By oneDNN or the own loops (choice.h).
keel_rc PrepareMatmul(const Node& node, keel_launch* launch);

}  // namespace keel_cpu
