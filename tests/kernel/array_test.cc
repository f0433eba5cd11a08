// array_test.cc: arrays: sizes, borrowed memory, strides, DLPack with both deleter rules.
#include "kernel/language/values/array.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernel/language/values/dlpack.h"

namespace keel {
namespace {

keel_tensor View(void* data, int64_t* shape, int32_t ndim, int64_t* strides = nullptr) {
  return {data, {1, 0}, ndim, AbiDType(DType::kI32), shape, strides, 0};
}

std::vector<int32_t> Values(const ArrayRef& a) {
  auto* p = reinterpret_cast<const int32_t*>(a->data());
  return {p, p + a->count};
}

TEST(Array, IsAlignedZeroedAndCounted) {
  for (int d = 1; d < static_cast<int>(DType::kCount); d++) {
    auto dtype = static_cast<DType>(d);
    ArrayRef a = *NewArray(dtype, std::vector<int64_t>{3, 5}, true);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a->data()) % 64, 0u);
    EXPECT_EQ(a->bytes(), (15u * BitsOf(dtype) + 7) / 8);
    for (uint64_t i = 0; i < a->bytes(); i++) EXPECT_EQ(a->data()[i], 0);
  }
}

TEST(Array, RefusesImpossibleShapes) {
  EXPECT_EQ(NewArray(DType::kF32, std::vector<int64_t>{2, -1}, true).status().message(),
            "shape [2, -1]: -1 is not in [0, 2^40]");
  EXPECT_EQ(NewArray(DType::kF32, std::vector<int64_t>(9, 1), true).status().message(),
            "a shape of 9 dims; at most 8 are possible");
  int64_t big = int64_t{1} << 39;
  EXPECT_EQ(NewArray(DType::kF32, std::vector<int64_t>{big, big}, true).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ((*NewArray(DType::kF32, std::vector<int64_t>{big, 0, big}, true))->count, 0);
}

TEST(Array, BorrowsWithoutCopyAndReleasesOnce) {
  int32_t data[] = {1, 2, 3, 4, 5, 6};
  int64_t shape[] = {2, 3};
  int released = 0;
  {
    auto count = [](void* p) { ++*static_cast<int*>(p); };
    ArrayRef a = *WrapArray(View(data, shape, 2), count, &released);
    EXPECT_EQ(a->data(), reinterpret_cast<char*>(data));
    ArrayRef second = a;
  }
  EXPECT_EQ(released, 1);
}

TEST(Array, CopiesStridedMemoryRowByRow) {
  int32_t data[] = {1, 2, 3, 4, 5, 6};
  int64_t shape[] = {3, 2}, transposed[] = {1, 3}, backwards[] = {-2, -1};
  EXPECT_EQ(Values(*CopyArray(View(data, shape, 2, transposed))), (std::vector<int32_t>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(Values(*CopyArray(View(data + 5, shape, 2, backwards))),
            (std::vector<int32_t>{6, 5, 4, 3, 2, 1}));
  EXPECT_FALSE((*WrapArray(View(data, shape, 2, transposed), nullptr, nullptr))->contiguous);
}

TEST(Array, RefusesForeignMemoryAndDtypes) {
  int32_t data[] = {1};
  keel_tensor t = View(data, nullptr, 0);
  t.device.type = 2;
  EXPECT_EQ(WrapArray(t, nullptr, nullptr).status().code(), absl::StatusCode::kUnimplemented);
  t = View(data, nullptr, 0);
  t.dtype = {5, 64, 1};
  EXPECT_EQ(WrapArray(t, nullptr, nullptr).status().code(), absl::StatusCode::kInvalidArgument);
  t = View(reinterpret_cast<char*>(data) + 1, nullptr, 0);
  EXPECT_EQ(WrapArray(t, nullptr, nullptr).status().message(),
            "data is not aligned to the 4 bytes of i32; copy it instead");
}

int deleted = 0;

TEST(Dlpack, TakesOverOnSuccessOnly) {
  int32_t data[] = {7, 8};
  int64_t shape[] = {2};
  deleted = 0;
  DLManagedTensor legacy = {View(data, shape, 1), nullptr, [](DLManagedTensor*) { deleted++; }};
  { ArrayRef a = *FromDlpack(&legacy, WrapArray); }
  EXPECT_EQ(deleted, 1);
  DLManagedTensorVersioned wrong = {
      2, 0, nullptr, [](DLManagedTensorVersioned*) { deleted++; }, 0, View(data, shape, 1)};
  EXPECT_FALSE(FromDlpack(&wrong, WrapArray).ok());
  EXPECT_EQ(deleted, 1);
  wrong.major = 1;
  wrong.deleter = nullptr;  // nothing to free
  { ArrayRef a = *FromDlpack(&wrong, WrapArray); }
  EXPECT_EQ(deleted, 1);
}

TEST(Dlpack, GivesStridesAndHoldsAReference) {
  ArrayRef a = *NewArray(DType::kI32, std::vector<int64_t>{2, 3}, true);
  DLManagedTensorVersioned* out = ToDlpack(a.get());
  EXPECT_EQ(out->major, 1u);
  EXPECT_EQ(out->dl_tensor.strides[0], 3);
  EXPECT_EQ(out->dl_tensor.strides[1], 1);
  EXPECT_EQ(out->dl_tensor.data, a->view.data);
  EXPECT_EQ(a->references.load(), 2);
  out->deleter(out);
  EXPECT_EQ(a->references.load(), 1);
  DLManagedTensor* legacy = ToDlpackLegacy(a.get());
  a = ArrayRef();
  EXPECT_EQ(static_cast<int32_t*>(legacy->dl_tensor.data)[5], 0);
  legacy->deleter(legacy);
}

}  // namespace
}  // namespace keel
