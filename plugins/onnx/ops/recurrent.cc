// recurrent.cc: RNN, GRU and LSTM: one scan over the sequence per direction.
//
// The products with the inputs are outside of the scan, one for each gate, since a gate's part of a common
// one would be columns, which each step would copy. A step adds the biases: for all steps at once they would
// be read from and written to a cache that is far, and a step's gates are one loop anyway. A sequence shorter
// than the operand keeps its state and gives zeros in the remaining steps; in the reverse direction these
// come first. DynamicQuantizeLSTM of ONNX Runtime has 8-bit W and R, not transposed, and quantises inputs and
// states by their ranges in the run.
#include <optional>

#include "plugins/onnx/ops/activations.h"
#include "plugins/onnx/ops/lengths.h"
#include "plugins/onnx/ops/loop.h"
#include "plugins/onnx/ops/quantize.h"

namespace onnx_import {
namespace {

struct Cell;
// The product of a step's input and W for each gate, and its bias, which is added when a gate is read: a loop
// over all gates at once would have more streams than a cache has ways, and their distances are often powers
// of two.
struct Inputs {
  Terms products, biases;  // biases: none, or one for each gate
  Term operator[](size_t gate) const {
    return biases.empty() ? products[gate] : products[gate] + biases[gate];
  }
};
// One step: states are the carried ones, extra the invariants, in the order of prepared(). Returns the next
// states, output first.
using Step = Terms (*)(const Cell& cell, const Inputs& x, const Terms& states, const Terms& extra);

struct Cell {
  Call* c;
  int64_t gates;
  size_t states;
  Step step;
  std::vector<std::string> defaults;  // activations of one direction
  std::vector<Activation> f;          // of this direction
  double clip = 0;
  bool flag = false;  // linear_before_reset, input_forget
  bool has_peepholes = false;
  bool quantised = false;

  Term activated(size_t k, const Term& x) const {
    return f[k].apply(clip > 0 ? x.clamp(-clip, clip) : x, f[k].alpha, f[k].beta);
  }
};

// Part k of an axis of several parts of n.
Term part(const Term& all, size_t axis, int64_t k, keel_dim n) {
  Edit& e = all.edit();
  return all.slice(axis, e.mul(n, k), e.mul(n, k + 1));
}
Term times(const Term& x, const Term& matrix) { return x.op("matmul", matrix, Attrs().flag("tb", true)); }

// The products of a state [b, n] and the gates [from, until) of R [gates, n, n], as one: each is contiguous.
Terms from_state(const Term& state, const Term& r, int64_t from, int64_t until) {
  const Term all = times(state, r.slice(0, from, until));
  Terms gates;
  for (int64_t k = 0; k < until - from; k++) gates.push_back(all.slice(0, k, k + 1).reshape(state.dims()));
  return gates;
}

// x times a matrix of 8-bit integers with a scale and a zero point: a number, or one for each column.
Term quantised_product(const Term& x, const Term& matrix, const Term& scale, const Term& zero) {
  Edit& e = x.edit();
  const DynamicRange range = quantized_dynamically(e, x.v);
  const Term sum = integer_product(Term(e, range.x), matrix, Term(e, range.zero), zero);
  return sum.to(KEEL_F32) * (Term(e, range.scale) * scale);
}

Terms rnn_step(const Cell& cell, const Inputs& x, const Terms& states, const Terms& extra) {
  return {cell.activated(0, x[0] + from_state(states[0], extra[0], 0, 1)[0])};
}

Terms gru_step(const Cell& cell, const Inputs& x, const Terms& states, const Terms& extra) {
  const Term& h = states[0];
  const Term bias = extra[1];  // of the recurrence of the hidden gate
  const auto hidden = [&](const Term& state) { return from_state(state, extra[0], 2, 3)[0] + bias; };
  const Terms zr = from_state(h, extra[0], 0, 2);
  const Term z = cell.activated(0, x[0] + zr[0]), r = cell.activated(0, x[1] + zr[1]);
  const Term next = cell.activated(1, x[2] + (cell.flag ? r * hidden(h) : hidden(r * h)));
  return {(1.0 - z) * next + z * h};
}

Terms quantised_from_state(const Cell& cell, const Term& h, const Terms& extra) {
  const size_t scale = cell.has_peepholes ? 2 : 1;
  const Term all = quantised_product(h, extra[0], extra[scale], extra[scale + 1]);
  Terms gates;
  for (int64_t k = 0; k < cell.gates; k++) gates.push_back(part(all, 1, k, h.dim(1)));
  return gates;
}

Terms lstm_step(const Cell& cell, const Inputs& x, const Terms& states, const Terms& extra) {
  const Term &h = states[0], &before = states[1];
  const Terms y = cell.quantised ? quantised_from_state(cell, h, extra) : from_state(h, extra[0], 0, 4);
  const auto gate = [&](size_t k) { return x[k] + y[k]; };
  const auto peep = [&](size_t k, const Term& state) {
    const Term sum = gate(k);
    if (!cell.has_peepholes) return sum;
    const auto row = static_cast<int64_t>(k);  // the order of P is i, o, f, as that of the gates
    return sum + state * extra[1].slice(0, row, row + 1);
  };
  const Term i = cell.activated(0, peep(0, before));
  const Term f = cell.flag ? 1.0 - i : cell.activated(0, peep(2, before));
  const Term g = cell.activated(1, gate(3));
  const Term state = f * before + i * g;
  const Term o = cell.activated(0, peep(1, state));
  return {o * cell.f[2].apply(state, cell.f[2].alpha, cell.f[2].beta), state};
}

// Operand i of direction d: [directions, ...] without its first dim.
Term of_direction(Call& c, size_t i, int64_t d) {
  const Term x(c, i);
  if (x.rank() < 2) c.invalid(cat("operand ", i, " has ", x.rank(), " dims; expected the direction first"));
  return x.slice(0, d, d + 1).reshape(without(x.dims(), 0));
}

// Scale or zero point of direction d, operand i: [directions] or [directions, columns].
Term scale_of(Call& c, size_t i, int64_t d) {
  const Term all(c, i);
  if (all.rank() != 1 && all.rank() != 2)
    c.invalid(cat("operand ", i, " has ", all.rank(),
                  " dims; expected [directions] or [directions, 4 * hidden_size]"));
  return all.slice(0, d, d + 1).reshape(without(all.dims(), 0));
}

struct Sequence {
  Term x;  // [t, b, inputs]
  keel_dim hidden;
  bool batch_first;
  std::optional<Term> lengths;  // i64[b], from 0 to t
};

// x W^T for each gate.
Terms products(const Cell& cell, const Sequence& s, int64_t d) {
  Call& c = *cell.c;
  const Term w = of_direction(c, 1, d);
  Terms gates;
  if (!cell.quantised) {
    for (int64_t k = 0; k < cell.gates; k++) gates.push_back(times(s.x, part(w, 0, k, s.hidden)));
    return gates;
  }
  const Term all = quantised_product(s.x, w, scale_of(c, 8, d), scale_of(c, 9, d));
  for (int64_t k = 0; k < cell.gates; k++) gates.push_back(part(all, 2, k, s.hidden));
  return gates;
}

// products(); the invariants are appended to `extra`.
Terms prepared(const Cell& cell, const Sequence& s, int64_t d, Terms* extra) {
  Call& c = *cell.c;
  const keel_dim n = s.hidden;
  const Terms x = products(cell, s, d);
  const Term r = of_direction(c, 2, d);
  extra->push_back(cell.quantised ? r : r.reshape({cell.gates, n, n}));
  const bool gru = cell.gates == 3;
  if (gru)  // the recurrent bias of the hidden gate
    extra->push_back(c.has(3) ? part(of_direction(c, 3, d), 0, cell.gates + 2, n)
                              : filled(c.e, x[0].dtype(), 0, {n}));
  if (cell.has_peepholes) extra->push_back(of_direction(c, 7, d).reshape({3, n}));
  if (cell.quantised) extra->insert(extra->end(), {scale_of(c, 10, d), scale_of(c, 11, d)});
  return x;
}

// What each gate adds to products(), as large as a state, so that a step's loop has no rows; or nothing.
Terms biases(const Cell& cell, const Sequence& s, int64_t d) {
  Call& c = *cell.c;
  if (!c.has(3)) return {};
  const Term b = of_direction(c, 3, d);
  Terms gates;
  for (int64_t k = 0; k < cell.gates; k++) {
    const Term own = part(b, 0, k, s.hidden), state = part(b, 0, cell.gates + k, s.hidden);
    const bool is_late = cell.gates == 3 && k == 2;
    gates.push_back((is_late ? own : own + state).broadcast({s.x.dim(1), s.hidden}));
  }
  return gates;
}

Term initial(const Cell& cell, const Sequence& s, size_t k, int64_t d) {
  Call& c = *cell.c;
  if (!c.has(5 + k)) return filled(c.e, s.x.dtype(), 0, {s.x.dim(1), s.hidden});
  Term all(c, 5 + k);
  if (s.batch_first) all = all.transpose({1, 0, 2});
  return all.slice(0, d, d + 1).reshape({s.x.dim(1), s.hidden});
}

// The final states of one direction, then its outputs [t, b, hidden].
Terms direction(const Cell& cell, const Sequence& s, int64_t d, bool reverse) {
  Call& c = *cell.c;
  ScanOperands in;
  in.reverse = reverse;
  in.scanned = prepared(cell, s, d, &in.invariants);
  const Terms added = biases(cell, s, d);
  const auto first = static_cast<ptrdiff_t>(in.invariants.size()), last = first + std::ssize(added);
  in.invariants.insert(in.invariants.end(), added.begin(), added.end());
  for (size_t k = 0; k < cell.states; k++) in.carried.push_back(initial(cell, s, k, d));
  const bool limited = s.lengths.has_value();
  if (limited) {
    in.scanned.push_back(counting_term(c.e, s.x.dim(0), KEEL_I64));
    in.invariants.push_back(s.lengths->reshape({s.x.dim(1), 1}));
  }
  return scan(c.e, in, [&](const Terms& states, const Terms& extra, const Terms& each) {
    const Inputs x = {each, {extra.begin() + first, extra.begin() + last}};
    Terms next = cell.step(cell, x, states, extra);
    Term out = next[0];
    if (limited) {
      const Term runs = each.back() < extra.back();
      out = select(runs, out, 0);
      for (size_t k = 0; k < next.size(); k++) next[k] = select(runs, next[k], states[k]);
    }
    next.push_back(out);
    return next;
  });
}

Term joined(const Terms& parts, size_t axis) {
  Terms wide;
  for (const Term& part : parts) wide.push_back(part.unsqueeze(axis));
  return concat(wide, static_cast<int64_t>(axis));
}

void check_operands(Call& c) {
  if (c.rank(0) != 3) c.invalid(cat("its sequence has ", c.rank(0), " dims; expected 3"));
  for (size_t i : {1, 2})
    if (c.rank(i) != 3)
      c.invalid(cat("operand ", i, " has ", c.rank(i), " dims; expected [directions, gates, ...]"));
}

void run(Call& c, Cell cell) {
  check_operands(c);
  const std::string way = c.s("direction", "forward");
  if (way != "forward" && way != "reverse" && way != "bidirectional")
    c.invalid(cat("direction is '", way, "'; expected forward, reverse or bidirectional"));
  const int64_t directions = way == "bidirectional" ? 2 : 1;
  const keel_dim given = c.dims(1)[0];
  if (!KEEL_DIM_IS_HANDLE(given) && given != directions)
    c.invalid(cat("direction is '", way, "' but W has ", given, " directions"));
  cell.c = &c;
  cell.clip = c.f("clip", 0);
  std::vector<std::string> defaults;
  for (int64_t d = 0; d < directions; d++)
    defaults.insert(defaults.end(), cell.defaults.begin(), cell.defaults.end());
  const std::vector<Activation> all = activations_of(c, defaults);
  const bool batch_first = c.i("layout", 0) != 0;
  const Term x(c, 0);
  Sequence s = {batch_first ? x.transpose({1, 0, 2}) : x, c.dims(2)[cell.quantised ? 1 : 2], batch_first, {}};
  if (c.has(4)) s.lengths = checked_lengths(c, 4, KEEL_I32, s.x.dim(1), s.x.dim(0));
  std::vector<Terms> by_result(cell.states + 1);
  for (int64_t d = 0; d < directions; d++) {
    const auto per = static_cast<ptrdiff_t>(cell.defaults.size());
    cell.f.assign(all.begin() + d * per, all.begin() + (d + 1) * per);
    const Terms out = direction(cell, s, d, d == 1 || way == "reverse");
    for (size_t k = 0; k < out.size(); k++) by_result[k].push_back(out[k]);
  }
  const Term y = joined(by_result.back(), 1);  // [t, directions, b, hidden]
  c.set(0, batch_first ? y.transpose({2, 0, 1, 3}).v : y.v);
  for (size_t k = 0; k < cell.states; k++) c.set(k + 1, joined(by_result[k], batch_first ? 1 : 0).v);
}

void rnn(Call& c) {
  run(c, {.c = &c, .gates = 1, .states = 1, .step = rnn_step, .defaults = {"Tanh"}, .f = {}});
}

void gru(Call& c) {
  run(c, {.c = &c,
          .gates = 3,
          .states = 1,
          .step = gru_step,
          .defaults = {"Sigmoid", "Tanh"},
          .f = {},
          .flag = c.i("linear_before_reset", 0) != 0});
}

void any_lstm(Call& c, bool quantised) {
  run(c, {.c = &c,
          .gates = 4,
          .states = 2,
          .step = lstm_step,
          .defaults = {"Sigmoid", "Tanh", "Tanh"},
          .f = {},
          .flag = c.i("input_forget", 0) != 0,
          .has_peepholes = c.has(7),
          .quantised = quantised});
}
void lstm(Call& c) { any_lstm(c, false); }

void dynamic_quantize_lstm(Call& c) {
  for (size_t i : {8, 9, 10, 11})
    if (!c.has(i)) c.invalid(cat("operand ", i, " is missing; expected scales and zero points of W and R"));
  any_lstm(c, true);
}

#define RECURRENT "activation_alpha activation_beta activations clip direction hidden_size layout"
constexpr Rule kRules[] = {
    {"RNN", 7, rnn, RECURRENT},
    {"GRU", 7, gru, RECURRENT " linear_before_reset"},
    {"LSTM", 7, lstm, RECURRENT " input_forget"},
    {"RNN", 1, rnn, RECURRENT " output_sequence"},
    {"GRU", 1, gru, RECURRENT " linear_before_reset output_sequence"},
    {"LSTM", 1, lstm, RECURRENT " input_forget output_sequence"},
    {"com.microsoft.DynamicQuantizeLSTM", 1, dynamic_quantize_lstm,
     "activation_alpha activation_beta activations clip direction hidden_size input_forget"},
};

}  // namespace

Rules recurrent_rules() { return kRules; }

}  // namespace onnx_import
