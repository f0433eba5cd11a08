// linear.cc: matrix products, convolution and its two gradients.
//
// Every element of a result is one sum, kept wide (double; f64: long double or wider) and rounded once.
// window.h relates image cells and window cells.
#include "call.h"
#include "families.h"
#include "window.h"

namespace reference {
namespace {

struct MatmulState {
  bool ta, tb;
  void read(Attributes& a) {
    ta = a.boolean("ta");
    tb = a.boolean("tb");
  }
};
// The last two dims of an operand, optionally transposed.
struct Matrix {
  int64_t rows, columns, down, right;  // down, right: strides of rows and columns
  Matrix(const Dims& d, bool transposed) : rows(d[d.n - 2]), columns(d[d.n - 1]), down(columns), right(1) {
    if (transposed) {
      std::swap(rows, columns);
      std::swap(down, right);
    }
  }
};
template <class T>
keel_rc matmul_typed(const MatmulState& s, const keel_call& c) {
  const Dims da = dims_of(*c.in[0]), db = dims_of(*c.in[1]), dc = dims_of(*c.out[0]);
  const Matrix a(da, s.ta), b(db, s.tb);
  const Dims batch = part(dc, 0, dc.n - 2);
  const Dims sa = broadcast_strides(part(da, 0, da.n - 2), batch);
  const Dims sb = broadcast_strides(part(db, 0, db.n - 2), batch);
  T* y = out<T>(c);
  for (Odometer o(batch); o.valid(); o.next()) {
    const T* p = in<T>(c, 0) + dot(o.index, sa) * a.rows * a.columns;
    const T* q = in<T>(c, 1) + dot(o.index, sb) * b.rows * b.columns;
    for (int64_t m = 0; m < a.rows; ++m) {
      if (cancelled(c)) return KEEL_CANCELLED;
      for (int64_t n = 0; n < b.columns; ++n) {
        Sum<T> sum = 0;
        for (int64_t k = 0; k < a.columns; ++k) {
          sum += wide(p[m * a.down + k * a.right]) * wide(q[k * b.down + n * b.right]);
        }
        *y++ = make<T>(sum);
      }
    }
  }
  return KEEL_OK;
}
keel_rc matmul(const MatmulState& s, const keel_call& c) {
  return typed<Num>(c, in_type(c),
                    [&](auto tag) { return matmul_typed<typename decltype(tag)::type>(s, c); });
}

// ---- convolutions. Channels of x: c = groups * g; output channel o belongs to group o / (outputs / groups).

struct ConvState {
  Window window;
  int64_t groups;
  void read(Attributes& a) {
    window.read(a);
    groups = a.i64("groups");
  }
};

// y[n, o, s] = sum over k and channels i of the group: x[n, i, window(s, k)] * w[o, i, k]
template <class T>
keel_rc conv_typed(const ConvState& state, const keel_call& c) {
  const Dims dx = dims_of(*c.in[0]), dw = dims_of(*c.in[1]);
  const Dims image = image_of(*c.in[0]), cells = image_of(*c.in[1]), places = image_of(*c.out[0]);
  const int64_t pixels = product(image), taps = product(cells), g = dw[1], per_group = dw[0] / state.groups;
  const T *x = in<T>(c, 0), *w = in<T>(c, 1);
  T* y = out<T>(c);
  for (int64_t n = 0; n < dx[0]; ++n) {
    for (int64_t o = 0; o < dw[0]; ++o) {
      if (cancelled(c)) return KEEL_CANCELLED;
      const T* xs = x + (n * dx[1] + o / per_group * g) * pixels;
      const T* ws = w + o * g * taps;
      for (Odometer s(places); s.valid(); s.next()) {
        Sum<T> sum = 0;
        int64_t tap = 0;
        for (Odometer k(cells); k.valid(); k.next(), ++tap) {
          const int64_t at = state.window.offset(s.index, k.index, image);
          for (int64_t i = 0; at >= 0 && i < g; ++i)
            sum += wide(xs[i * pixels + at]) * wide(ws[i * taps + tap]);
        }
        *y++ = make<T>(sum);
      }
    }
  }
  return KEEL_OK;
}

// dx[n, i, z] = sum over k, and over outputs o of i's group: dy[n, o, source(z, k)] * w[o, i, k]
template <class T>
keel_rc conv_grad_x_typed(const ConvState& state, const keel_call& c) {
  const Dims dy = dims_of(*c.in[0]), dw = dims_of(*c.in[1]), dx = dims_of(*c.out[0]);
  const Dims places = image_of(*c.in[0]), cells = image_of(*c.in[1]), image = image_of(*c.out[0]);
  const int64_t count = product(places), taps = product(cells), g = dw[1], per_group = dw[0] / state.groups;
  const T *up = in<T>(c, 0), *w = in<T>(c, 1);
  T* y = out<T>(c);
  for (int64_t n = 0; n < dx[0]; ++n) {
    for (int64_t channel = 0; channel < dx[1]; ++channel) {
      if (cancelled(c)) return KEEL_CANCELLED;
      const int64_t first = channel / g * per_group, i = channel % g;
      for (Odometer z(image); z.valid(); z.next()) {
        Sum<T> sum = 0;
        int64_t tap = 0;
        for (Odometer k(cells); k.valid(); k.next(), ++tap) {
          const int64_t at = state.window.source(z.index, k.index, places);
          for (int64_t o = first; at >= 0 && o < first + per_group; ++o) {
            sum += wide(up[(n * dy[1] + o) * count + at]) * wide(w[(o * g + i) * taps + tap]);
          }
        }
        *y++ = make<T>(sum);
      }
    }
  }
  return KEEL_OK;
}

// dw[o, i, k] = sum over n and s: dy[n, o, s] * x[n, i of o's group, window(s, k)]
template <class T>
keel_rc conv_grad_w_typed(const ConvState& state, const keel_call& c) {
  const Dims dy = dims_of(*c.in[0]), dx = dims_of(*c.in[1]), dw = dims_of(*c.out[0]);
  const Dims places = image_of(*c.in[0]), image = image_of(*c.in[1]), cells = image_of(*c.out[0]);
  const int64_t count = product(places), pixels = product(image), g = dw[1], per_group = dw[0] / state.groups;
  const T *up = in<T>(c, 0), *x = in<T>(c, 1);
  T* y = out<T>(c);
  for (int64_t o = 0; o < dw[0]; ++o) {
    for (int64_t i = 0; i < g; ++i) {
      if (cancelled(c)) return KEEL_CANCELLED;
      const int64_t channel = o / per_group * g + i;
      for (Odometer k(cells); k.valid(); k.next()) {
        Sum<T> sum = 0;
        int64_t place = 0;
        for (Odometer s(places); s.valid(); s.next(), ++place) {
          const int64_t at = state.window.offset(s.index, k.index, image);
          for (int64_t n = 0; at >= 0 && n < dx[0]; ++n) {
            sum += wide(up[(n * dy[1] + o) * count + place]) * wide(x[(n * dx[1] + channel) * pixels + at]);
          }
        }
        *y++ = make<T>(sum);
      }
    }
  }
  return KEEL_OK;
}

keel_rc conv(const ConvState& s, const keel_call& c) {
  return typed<Floats>(c, in_type(c),
                       [&](auto tag) { return conv_typed<typename decltype(tag)::type>(s, c); });
}
keel_rc conv_grad_x(const ConvState& s, const keel_call& c) {
  return typed<Floats>(c, in_type(c),
                       [&](auto tag) { return conv_grad_x_typed<typename decltype(tag)::type>(s, c); });
}
keel_rc conv_grad_w(const ConvState& s, const keel_call& c) {
  return typed<Floats>(c, in_type(c),
                       [&](auto tag) { return conv_grad_w_typed<typename decltype(tag)::type>(s, c); });
}

constexpr keel_impl kImpls[] = {
    row<MatmulState, matmul>(REFERENCE_OP("matmul"), KEEL_IMPL_ANY_DIMS),
    row<ConvState, conv>(REFERENCE_OP("conv"), 0),
    row<ConvState, conv_grad_x>(REFERENCE_OP("conv_grad_x"), 0),
    row<ConvState, conv_grad_w>(REFERENCE_OP("conv_grad_w"), 0),
};

}  // namespace

std::span<const keel_impl> linear_impls() { return kImpls; }

}  // namespace reference
