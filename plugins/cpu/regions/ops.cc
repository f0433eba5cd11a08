// ops.cc: see ops.h.
#include "plugins/cpu/regions/ops.h"

namespace keel_cpu {
std::optional<Dims> Broadcast(const Dims& dims, const Dims& out) {
  if (dims.size() > out.size()) return {};
  Dims d(out.size() - dims.size(), 1);
  d.insert(d.end(), dims.begin(), dims.end());
  for (size_t i = 0; i < d.size(); i++)
    if (d[i] != 1 && d[i] != out[i]) return {};
  return d;
}

bool Describe(Builder& b, const Recipe& r, const Dims& out, bool in_place, const View& view, Attributes* a) {
  for (const PostOp& p : r.post) {
    if (!b.Allows(p)) return false;
    if (p.kind == PostOp::kUnary) continue;
    const std::optional<Dims> dims = view(b.Value(p.other));
    if (!dims) return false;
    const bool whole = *dims == out;
    if (in_place && whole && a->sum == nullptr && p.algorithm == dnnl::algorithm::binary_add &&
        b.MayOverwrite(p.other, p.node))
      a->sum = &p;
    else
      a->others.push_back({p.other, *dims, whole && in_place});
  }
  return true;
}

dnnl::primitive_attr Attr(const Recipe& r, const Attributes& a, const std::vector<Arg>& others, bool adds,
                          bool last) {
  dnnl::post_ops ops;
  size_t next = 0;
  if (adds) ops.append_sum(1.0f);
  for (const PostOp& p : r.post) {
    if (!last) break;
    if (p.kind == PostOp::kUnary)
      ops.append_eltwise(p.algorithm, p.alpha, p.beta);
    else if (&p == a.sum)
      ops.append_sum(1.0f);
    else
      ops.append_binary(p.algorithm, others[next++].layout);
  }
  dnnl::primitive_attr attr = UserScratch();
  attr.set_post_ops(ops);
  return attr;
}
dnnl::primitive_attr Attr(Builder& b, const Recipe& r, const Attributes& a) {
  std::vector<Arg> wanted;
  for (const auto& o : a.others) {
    const auto type = TypeOf(b.Value(o.value).dtype);
    wanted.push_back({0, o.whole ? AnyLayout(o.view, type) : Plain(o.view, type), -1});
  }
  return Attr(r, a, wanted);
}

int BiasOf(Builder& b, const Recipe& r) {
  if (r.shift.empty()) return -1;
  return b.Constant(b.constants->Vector(r.shift), r.shift.size() * sizeof(float));
}

const void* Scaled(const BodyValue& w, const std::vector<double>& scale, Bytes* own,
                   const Channels& channels) {
  if (scale.empty()) return w.data;
  const int64_t n = w.Count();
  *own = Allocate(static_cast<size_t>(n) * sizeof(float));
  float* to = reinterpret_cast<float*>(own->get());
  const float* from = static_cast<const float*>(w.data);
  for (int64_t i = 0; i < n; i++)
    to[i] = static_cast<float>(from[i] * scale[static_cast<size_t>(i / channels.step % channels.count)]);
  return to;
}
const void* KeyOf(const Builder& b, const BodyNode& node, const Recipe& r) {
  return r.scale.empty() ? b.Value(node.in[1]).data : static_cast<const void*>(&node);
}

int Weights(Builder& b, const BodyNode& node, const Recipe& r, const Layout& plain, const Layout& wanted,
            const Channels& channels) {
  const BodyValue& w = b.Value(node.in[1]);
  if (w.data != nullptr) {
    return b.Constant(b.constants->Get(KeyOf(b, node, r), plain, wanted,
                                       [&](Bytes* own) { return Scaled(w, r.scale, own, channels); }),
                      wanted.get_size());
  }
  const int given = b.BufferIn(node.in[1], b.PlainOf(node.in[1]));
  if (plain == wanted) return given;
  const int packed = b.Scratch(wanted.get_size());
  b.Emit(dnnl::reorder(dnnl::reorder::primitive_desc(Engine(), plain, Engine(), wanted, UserScratch())),
         {{DNNL_ARG_FROM, plain, given}, {DNNL_ARG_TO, wanted, packed}});
  return packed;
}

std::vector<Arg> Operands::All() const {
  std::vector<Arg> all = others;
  all.insert(all.end(), {src, weights, bias, out});
  return all;
}

std::vector<Arg> OtherArgs(Builder& b, const Recipe& r, const Attributes& a,
                           const dnnl::primitive_desc_base& d) {
  std::vector<Arg> args;
  int position = 0;
  size_t next = 0;
  for (const PostOp& p : r.post) {
    if (p.kind == PostOp::kBinary && &p != a.sum) {
      const auto& o = a.others[next++];
      const int id = DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1;
      const Layout layout =
          o.whole ? d.query_md(dnnl::query::exec_arg_md, id) : Plain(o.view, TypeOf(b.Value(o.value).dtype));
      args.push_back({id, layout, b.BufferIn(o.value, layout)});
    }
    position++;
  }
  return args;
}

int OutOf(Builder& b, const Recipe& r, const Attributes& a, const Layout& out) {
  if (a.sum == nullptr) return b.ResultBuffer(r.out, out);
  const int buffer = b.OverwriteBuffer(a.sum->other, a.sum->node, out);
  b.AssignBuffer(r.out, out, buffer);
  return buffer;
}

std::vector<Arg> OthersOf(std::span<const Arg> whole, const Box& box, size_t leading, bool adds) {
  std::vector<Arg> args(whole.begin(), whole.end());
  for (Arg& arg : args) {
    if (adds) arg.id += DNNL_ARG_ATTR_MULTIPLE_POST_OP(1) - DNNL_ARG_ATTR_MULTIPLE_POST_OP(0);
    arg.layout = PartOf(arg.layout, box, leading, &arg.offset);
  }
  return args;
}

}  // namespace keel_cpu
