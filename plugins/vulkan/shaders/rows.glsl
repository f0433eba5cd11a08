// rows.glsl: sums and maxima of a row by its threads. GROUPED: a work group for each row, otherwise a thread.
layout(local_size_x = 64) in;
layout(constant_id = 2) const uint OP = 0;
layout(constant_id = 3) const uint GROUPED = 0;
shared A partial[64];
uint first_row() { return GROUPED != 0 ? gl_WorkGroupID.x : first_element(); }
uint row_step() { return GROUPED != 0 ? gl_NumWorkGroups.x : grid_size(); }
uint first_column() { return GROUPED != 0 ? gl_LocalInvocationID.x : 0; }
uint column_step() { return GROUPED != 0 ? 64 : 1; }

A highest_of(A mine) {
  if (GROUPED == 0) return mine;
  uint thread = gl_LocalInvocationID.x;
  barrier();
  partial[thread] = mine;
  for (uint half_size = 32; half_size > 0; half_size /= 2) {
    barrier();
    if (thread < half_size) partial[thread] = greater(partial[thread], partial[thread + half_size]);
  }
  barrier();
  return partial[0];
}
A sum_of(A mine) {
  if (GROUPED == 0) return mine;
  uint thread = gl_LocalInvocationID.x;
  barrier();
  partial[thread] = mine;
  for (uint half_size = 32; half_size > 0; half_size /= 2) {
    barrier();
    if (thread < half_size) partial[thread] += partial[thread + half_size];
  }
  barrier();
  return partial[0];
}
