// matmul_onednn.cc: large f32 matrix products by oneDNN. A constant second operand is packed once, into
// the layout that oneDNN likes best.
#include "matmul.h"
#include "onednn.h"

namespace keel_cpu {
namespace {

using Layout = dnnl::memory::desc;

struct Primitive {
  dnnl::matmul::primitive_desc desc;
  dnnl::matmul run;
};

struct BigMatmul {
  Layout a, b, c;
  Layout wanted;  // of b: its own, or where it is a constant what oneDNN chose
  Packed constant;
  uint64_t scratch = 0;
  std::unique_ptr<PerThreads<Primitive>> primitives;

  Primitive Make() const {
    dnnl::matmul::primitive_desc desc(Engine(), a, wanted, c, UserScratch());
    return {desc, dnnl::matmul(desc)};
  }
};

keel_rc RunOneDnn(const keel_call* call) {
  const BigMatmul& s = *State<std::unique_ptr<BigMatmul>>(call);
  const Team team(call);
  const Primitive& p = s.primitives->For(team.Size());
  const Layout pad = p.desc.scratchpad_desc();
  Scratch scratch(call, s.scratch, pad.get_size());
  const void* b = s.constant.data != nullptr ? s.constant.data : keel_ptr(call->in[1]);
  p.run.execute(Stream(), {{DNNL_ARG_SRC, At(s.a, keel_ptr(call->in[0]))},
                           {DNNL_ARG_WEIGHTS, At(s.wanted, b)},
                           {DNNL_ARG_DST, At(s.c, keel_ptr(call->out[0]))},
                           {DNNL_ARG_SCRATCHPAD, At(pad, scratch.Take(pad.get_size()))}});
  Stream().wait();
  return KEEL_OK;
}

}  // namespace

dnnl::memory::desc MatmulOperand(const MatmulShape& s, int which, dnnl::memory::data_type type) {
  const int64_t rows = which == 0 ? s.m : s.k, columns = which == 0 ? s.k : s.n;
  const bool transposed = which == 0 ? s.ta : s.tb;
  Dims dims, strides;
  for (int d = 0; d + 1 < s.batch.rank; d++) {
    const int64_t step = s.batch.steps[which][d];
    dims.push_back(step == 0 ? 1 : s.batch.dims[d]);
    strides.push_back(step == 0 ? rows * columns : step);
  }
  dims.insert(dims.end(), {rows, columns});
  strides.insert(strides.end(), {transposed ? 1 : columns, transposed ? rows : 1});
  return Strided(dims, strides, type);
}

keel_rc PrepareMatmulOneDnn(const Node& node, const MatmulShape& shape, keel_launch* launch) {
  const keel_tensor b = node.In(1);
  auto s = std::make_unique<BigMatmul>();
  SetThreads(Budget());
  s->a = MatmulOperand(shape, 0);
  s->b = MatmulOperand(shape, 1);
  Dims dims(shape.batch.dims, shape.batch.dims + shape.batch.rank - 1);
  dims.insert(dims.end(), {shape.m, shape.n});
  s->c = Plain(dims);
  s->wanted = s->b;
  if (b.data != nullptr) {
    const dnnl::matmul::primitive_desc probe(Engine(), s->a, AnyLayout(s->b.get_dims()), s->c, UserScratch());
    s->wanted = probe.weights_desc();
    s->constant = Pack(s->b, keel_ptr(&b), s->wanted);
  }
  s->primitives = std::make_unique<PerThreads<Primitive>>([raw = s.get()] { return raw->Make(); });
  s->scratch = Aligned(s->primitives->First().desc.scratchpad_desc().get_size());
  const uint64_t bytes = s->scratch;
  return Keep(launch, std::move(s), Guard<RunOneDnn>, bytes);
}

}  // namespace keel_cpu
