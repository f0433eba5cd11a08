// indices.cuh: indices given as data, of i32 or i64. One out of range is a fault.
#ifndef KEEL_PLUGINS_CUDA_INDICES_CUH
#define KEEL_PLUGINS_CUDA_INDICES_CUH

// `bytes`: of an index.
DEVICE i64 index_at(const KeelArgs& args, int o, i64 bytes, i64 i) {
  return bytes == 8 ? operand<const i64>(args, o)[i] : (i64)operand<const i32>(args, o)[i];
}
DEVICE bool is_out(const KeelArgs& args, i64 index, i64 bound) {
  if ((u64)index < (u64)bound) return false;
  store_fault(args, index, bound > 0xffffffff ? 0 : (u32)bound);
  return true;
}

#endif
