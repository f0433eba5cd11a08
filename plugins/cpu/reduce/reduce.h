// reduce.h: traversals of a reduction's operand. The elements come from a Source: a tensor (reduce.cc) or a
// group of elementwise ops (map/reduce.cc).
//
// ReduceShape merges the dims into kept and reduced ones. If the last dim is reduced, Reducer reduces
// contiguous lines (or rows) to one accumulator each; else it adds rows into columns of accumulators. With
// fewer results than threads, tiles or blocks of rows are summed separately: loops.h explains why the bits
// stay the same.
//
// A Source has `cost` (per element, see parallel/parallel.h), `most` (elements it provides at once, a
// multiple of kReduceTile), `columns` (at most kReduceColumns, such that kReduceDeep rows do not exceed
// `most`), and Part, one per thread. Part::Get(first, rows, n, &stride) returns rows of n elements. On entry
// `first` and `stride` locate them in the operand; on return stride is that of the returned data.
#pragma once

#include <vector>

#include "plugins/cpu/elementwise/broadcast.h"
#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/reduce/loops.h"

namespace keel_cpu {

struct ReduceShape {
  Walk<1> kept, reduced;  // over the operand
  bool last_reduced = false;
  int64_t count = 1;  // elements per result
  bool Lines() const { return last_reduced && reduced.rank == 1 && kept.rank <= 1; }
};
ReduceShape ShapeOfReduction(const int64_t* dims, int ndim, const Dims& axes);

template <class Source>
class Reducer {
 public:
  Reducer(const keel_call* call, const ReduceOp& op, const ReduceShape& shape, const Source& source)
      : call_(call), op_(op), s_(shape), source_(source), y_(Out<char>(call, 0)) {}
  void Run() {
    if (s_.count == 0) return FillEmpty();
    if (s_.Lines()) return Lines();
    return s_.last_reduced ? Rows() : Columns();
  }

 private:
  using Part = typename Source::Part;

  void FillEmpty() {
    alignas(kAccumulatorSize) char acc[kAccumulatorSize];
    op_.start(acc, 1);
    for (int64_t i = 0; i < call_->count; i++) op_.finish(acc, 1, 0, y_ + i * op_.size);
  }

  // ---- one accumulator

  // Contiguous elements.
  void Row(Part* part, int64_t first, int64_t n, void* acc) {
    for (int64_t i = 0; i < n && !Cancelled(call_); i += source_.most) {
      const int64_t m = std::min(source_.most, n - i);
      op_.row(Get(part, first + i, m), m, acc);
    }
  }
  // Only the last dims are reduced: each line gives one element.
  void Lines() {
    const int64_t lines = call_->count, n = s_.count, most = source_.most;
    if (NeedsPartialSums(lines, n / kReduceTile, lines * n, 1)) {
      for (int64_t line = 0; line < lines; line++) LineByPartialSums(line);
      return;
    }
    ParallelFor(call_, lines, n * source_.cost + 4, [&](int64_t begin, int64_t end) {
      Part part(source_);
      for (; n > most && begin < end; begin++) {
        alignas(kAccumulatorSize) char acc[kAccumulatorSize];
        op_.start(acc, 1);
        Row(&part, begin * n, n, acc);
        op_.finish(acc, 1, n, y_ + begin * op_.size);
      }
      for (; begin < end; begin += most / n) {
        const int64_t together = std::min(most / n, end - begin);
        op_.lines(Get(&part, begin * n, together * n), together, n, y_ + begin * op_.size);
      }
    });
  }
  void LineByPartialSums(int64_t line) {
    const int64_t n = s_.count, most = source_.most / kReduceTile;
    alignas(kAccumulatorSize) char acc[kAccumulatorSize];
    op_.start(acc, 1);
    AddPartialSums((n + kReduceTile - 1) / kReduceTile, 1, kReduceTile, acc,
                   [&](int64_t from, int64_t to, char* apart) {
                     Part part(source_);
                     for (; from < to && !Cancelled(call_); from += most) {
                       const int64_t at = from * kReduceTile,
                                     m = std::min(n - at, std::min(most, to - from) * kReduceTile);
                       const char* x = Get(&part, line * n + at, m);
                       for (int64_t i = 0; i < m; i += kReduceTile, apart += op_.acc_size)
                         op_.row(x + i * op_.size, std::min(kReduceTile, m - i), apart);
                     }
                   });
    op_.finish(acc, 1, n, y_ + line * op_.size);
  }
  // Several results take turns, so that the operand is read in its own order.
  void Rows() {
    constexpr int64_t kTogether = 256;
    Walk<1> kept = s_.kept;
    kept.dims[kept.rank] = 1;  // a dummy dim, so that Rows() visits all real dims
    kept.steps[0][kept.rank++] = 0;
    const int64_t n = s_.reduced.Inner(), rows = s_.reduced.Rows();
    ParallelFor(call_, kept.Rows(), s_.count * source_.cost + 4, [&](int64_t begin, int64_t end) {
      Part part(source_);
      alignas(kAccumulatorSize) char acc[kTogether * kAccumulatorSize];
      for (; begin < end; begin += kTogether) {
        const int64_t stop = std::min(end, begin + kTogether);
        op_.start(acc, stop - begin);
        InChunks(call_, 0, rows, (stop - begin) * (n * source_.cost + 2), [&](int64_t first, int64_t last) {
          s_.reduced.Rows(first, last, [&](int64_t, const int64_t* in) {
            kept.Rows(begin, stop, [&](int64_t r, const int64_t* at) {
              Row(&part, at[0] + in[0], n, acc + (r - begin) * op_.acc_size);
            });
          });
        });
        op_.finish(acc, stop - begin, s_.count, y_ + begin * op_.size);
      }
    });
  }

  // ---- a row of accumulators

  // Columns processed at once: n is split evenly. Wide chunks read memory in order, but several threads need
  // four each.
  int64_t ColumnsAtOnce(int64_t n) const {
    const int64_t threads = call_->env->threads, share = n * s_.kept.Rows() / (4 * threads);
    const int64_t least = threads == 1 ? source_.columns : std::min<int64_t>(512, source_.columns);
    const int64_t most = std::clamp(share, least, source_.columns);
    const int64_t chunks = (n + most - 1) / most;
    return std::min(most, ((n + chunks - 1) / chunks + 15) / 16 * 16);
  }
  // Rows of m columns processed at once.
  int64_t RowsAtOnce(int64_t m) const {
    return std::max(kReduceDeep, source_.deep / m / kReduceDeep * kReduceDeep);
  }
  void Column(Part* part, int64_t first, int64_t rows, int64_t stride, int64_t m, void* acc) {
    const int64_t deep = RowsAtOnce(m);
    for (int64_t r = 0; r < rows && !Cancelled(call_); r += deep) {
      const int64_t together = std::min(deep, rows - r);
      int64_t step = stride;
      const char* x = part->Get(first + r * stride, together, m, &step);
      op_.column(x, together, step, m, acc);
    }
  }
  void Columns() {
    const int64_t n = s_.kept.Inner(), width = ColumnsAtOnce(n), chunks = (n + width - 1) / width;
    const int64_t outer = s_.reduced.Rows(), rows = s_.reduced.Inner(), stride = s_.reduced.InnerStep(0);
    const int64_t units = s_.kept.Rows() * chunks;
    if (op_.splits_columns && s_.kept.Rows() == 1 && outer == 1 &&
        NeedsPartialSums(units, rows / kReduceDeep, s_.count * n, n))
      return ColumnsApart();
    const int64_t cost = s_.count * std::min(n, width) * (source_.cost + 1);
    ParallelFor(call_, units, cost, [&](int64_t begin, int64_t end) {
      Part part(source_);
      alignas(64) char acc[kReduceColumns * kAccumulatorSize];
      for (int64_t unit = begin; unit < end; unit++) {
        const int64_t row = unit / chunks, first = unit % chunks * width, m = std::min(width, n - first);
        s_.kept.Rows(row, row + 1, [&](int64_t, const int64_t* at) {
          op_.start(acc, m);
          InChunks(call_, 0, outer, rows * m * source_.cost, [&](int64_t from, int64_t to) {
            s_.reduced.Rows(from, to, [&](int64_t, const int64_t* in) {
              Column(&part, at[0] + in[0] + first, rows, stride, m, acc);
            });
          });
          op_.finish(acc, m, s_.count, y_ + (row * n + first) * op_.size);
        });
      }
    });
  }
  void ColumnsApart() {
    const int64_t n = s_.kept.Inner(), width = ColumnsAtOnce(n), stride = s_.reduced.InnerStep(0);
    const int64_t blocks = s_.count / kReduceDeep, done = blocks * kReduceDeep;
    std::vector<char> acc(static_cast<size_t>(n * op_.acc_size));
    op_.start(acc.data(), n);
    AddPartialSums(blocks, n, kReduceDeep * n, acc.data(), [&](int64_t from, int64_t to, char* apart) {
      Part part(source_);
      for (int64_t first = 0; first < n; first += width) {
        const int64_t m = std::min(width, n - first), most = RowsAtOnce(m) / kReduceDeep;
        for (int64_t b = from; b < to && !Cancelled(call_); b += most) {
          const int64_t together = std::min(most, to - b);
          int64_t step = stride;
          const char* x = part.Get(b * kReduceDeep * stride + first, together * kReduceDeep, m, &step);
          for (int64_t i = 0; i < together; i++)
            op_.column(x + i * kReduceDeep * step * op_.size, kReduceDeep, step, m,
                       apart + ((b + i - from) * n + first) * op_.acc_size);
        }
      }
    });
    Part part(source_);
    for (int64_t first = 0; first < n; first += width)
      Column(&part, done * stride + first, s_.count - done, stride, std::min(width, n - first),
             acc.data() + first * op_.acc_size);
    op_.finish(acc.data(), n, s_.count, y_);
  }

  // ---- separate partial sums

  static constexpr int64_t kPartBytes = 32 * 1024;  // limit of a part's accumulators

  // Whether there are too few units for the threads, but enough work to sum parts of n accumulators
  // separately.
  bool NeedsPartialSums(int64_t units, int64_t parts, int64_t elements, int64_t n) const {
    if (parts < 8 || n * op_.acc_size > kPartBytes || elements * source_.cost < 4 * kParallelCost)
      return false;
    const Team team(call_);
    return units < 4 * team.Size() && units % team.Size() != 0;
  }
  // Calls fill(from, to, apart) to sum ranges of the parts into n accumulators each, which are then merged in
  // order.
  template <class F>
  void AddPartialSums(int64_t parts, int64_t n, int64_t elements, char* acc, F&& fill) {
    constexpr int64_t kColumns = 64;
    const int64_t threads = std::min<int64_t>(call_->env->threads, Budget());
    const int64_t bytes = n * op_.acc_size;
    const int64_t round = std::min(parts, 2 * std::max<int64_t>(8, threads) * kPartBytes / bytes);
    std::vector<char> apart(static_cast<size_t>(round * bytes));
    for (int64_t done = 0; done < parts && !Cancelled(call_); done += round) {
      const int64_t now = std::min(round, parts - done);
      op_.start(apart.data(), now * n);
      ParallelFor(call_, now, elements * source_.cost, [&](int64_t from, int64_t to) {
        fill(done + from, done + to, apart.data() + from * bytes);
      });
      ParallelFor(call_, (n + kColumns - 1) / kColumns, kColumns * now, [&](int64_t from, int64_t to) {
        const int64_t first = from * kColumns, at = first * op_.acc_size;
        op_.merge(apart.data() + at, now, n, std::min(n, to * kColumns) - first, acc + at);
      });
    }
  }

  const char* Get(Part* part, int64_t first, int64_t n) {
    int64_t stride = 0;
    return part->Get(first, 1, n, &stride);
  }

  const keel_call* call_;
  const ReduceOp& op_;
  const ReduceShape& s_;
  const Source& source_;
  char* const y_;
};

}  // namespace keel_cpu
