// linear_algebra.cc: cholesky, triangular_solve, solve, det, qr, svd and eigh. Threads share the matrices of
// a batch; each matrix is computed in f64 (dense.h).
#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>

#include "plugins/cpu/common.h"
#include "plugins/cpu/linear_algebra/dense.h"
#include "plugins/cpu/parallel/parallel.h"

namespace keel_cpu {
namespace {

struct Attributes {
  DenseOp op;
  bool lower, ta, unit;
};
constexpr int kMostOperands = 2, kMostResults = 3;
struct Kind {
  int64_t cost;                          // of n^3 elements, in simple operations
  const char *before = "", *after = "";  // the failure, around the number of the matrix
};
constexpr Kind kKinds[kDenseOps] = {{1, "matrix ", " is not positive definite"},
                                    {1, "matrix ", " is singular: element {j} of its diagonal is 0"},
                                    {1, "matrix ", " is singular"},
                                    {1},
                                    {4},
                                    {40, "the singular values of matrix ", " did not converge"},
                                    {20, "the eigenvalues of matrix ", " did not converge"}};

// The failure with the least number of a matrix.
struct Failure {
  std::mutex mutex;
  int64_t matrix = std::numeric_limits<int64_t>::max();
  DenseResult result;

  void Add(int64_t number, DenseResult r) {
    const std::lock_guard lock(mutex);
    if (number < matrix) matrix = number, result = r;
  }
};
[[noreturn]] void ThrowFailure(DenseOp op, const Failure& f) {
  if (f.result.outcome == Outcome::kNoMemory) throw std::bad_alloc();
  std::string after = kKinds[op].after;
  if (const size_t at = after.find("{j}"); at != std::string::npos)
    after.replace(at, 3, std::to_string(f.result.at));
  Throw(KEEL_RANGE, kKinds[op].before + std::to_string(f.matrix) + after);
}

double Wide(double x) { return x; }
template <class T>
double Wide(T x) {
  return static_cast<double>(Widen(x));
}
template <class T>
T Narrowed(double v) {
  if constexpr (sizeof(T) == 2)
    return Rounded<T>(ToOdd(v));
  else
    return static_cast<T>(v);
}

// The matrices of one operand or result, number by number, as doubles.
template <class T>
class Batch {
  static constexpr bool kCopies = !std::is_same_v<T, double>;

 public:
  Batch(const keel_tensor& t, int64_t count)
      : elements_(static_cast<T*>(keel_ptr(&t))), size_(keel_count(&t) / count) {
    if (kCopies) wide_ = std::make_unique_for_overwrite<double[]>(static_cast<size_t>(size_));
  }
  double* Load(int64_t number) {
    const T* const from = elements_ + number * size_;
    if (kCopies) std::transform(from, from + size_, wide_.get(), [](T x) { return Wide(x); });
    return At(number);
  }
  double* At(int64_t number) {
    if constexpr (kCopies)
      return wide_.get();
    else
      return elements_ + number * size_;
  }
  void Store(int64_t number) {
    if (kCopies)
      std::transform(wide_.get(), wide_.get() + size_, elements_ + number * size_,
                     [](double v) { return Narrowed<T>(v); });
  }
  void SetNan(int64_t number) { std::fill_n(At(number), size_, std::numeric_limits<double>::quiet_NaN()); }

 private:
  T* elements_;
  int64_t size_;
  std::unique_ptr<double[]> wide_;
};

DenseShape ShapeOf(const keel_call* call) {
  const auto& s = State<Attributes>(call);
  const keel_tensor& a = *call->in[0];
  const int64_t k = call->n_in > 1 ? call->in[1]->shape[a.ndim - 1] : 0;
  return {a.shape[a.ndim - 2], a.shape[a.ndim - 1], k, s.lower, s.ta, s.unit, call};
}

// Matrices [begin, end).
template <class T>
void RunMatrices(const keel_call* call, int64_t count, int64_t begin, int64_t end, Failure& failure) {
  const DenseShape shape = ShapeOf(call);
  const auto run = Dense(shape.n).of[State<Attributes>(call).op];
  std::vector<Batch<T>> in, out;
  for (uint32_t i = 0; i < call->n_in; i++) in.emplace_back(*call->in[i], count);
  for (uint32_t r = 0; r < call->n_out; r++) out.emplace_back(*call->out[r], count);
  for (int64_t b = begin; b < end && !Cancelled(call); b++) {
    const double* from[kMostOperands] = {};
    double* to[kMostResults] = {};
    for (size_t i = 0; i < in.size(); i++) from[i] = in[i].Load(b);
    for (size_t r = 0; r < out.size(); r++) to[r] = out[r].At(b);
    const DenseResult result = run(shape, from, to);
    if (Cancelled(call)) return;
    if (result.outcome == Outcome::kNan)
      for (auto& t : out) t.SetNan(b);
    else if (result.outcome != Outcome::kDone)
      failure.Add(b, result);
    for (auto& t : out) t.Store(b);
  }
}

template <class T>
keel_rc RunDense(const keel_call* call) {
  const auto& s = State<Attributes>(call);
  const keel_tensor& a = *call->in[0];
  const int64_t count = Product(a.shape, a.ndim - 2);
  const DenseShape shape = ShapeOf(call);
  if (s.op == kDet && shape.n == 0) {  // the only result with elements of empty operands
    Fill(call, Out<T>(call, 0), count, Narrowed<T>(1));
    return Done(call);
  }
  if (count == 0 || shape.m * shape.n == 0 || keel_count(call->out[0]) == 0) return KEEL_OK;
  Failure failure;
  const int64_t cost = shape.m * shape.n * std::min(shape.m, shape.n) * kKinds[s.op].cost;
  ParallelFor(call, count, cost, [&](int64_t begin, int64_t end) {
    try {
      RunMatrices<T>(call, count, begin, end, failure);
    } catch (const std::bad_alloc&) {
      failure.Add(begin, {Outcome::kNoMemory, 0});
    }
  });
  if (Cancelled(call)) return KEEL_CANCELLED;
  if (failure.matrix < count) ThrowFailure(s.op, failure);
  return KEEL_OK;
}

template <DenseOp kOp>
keel_rc PrepareDense(const Node& node, keel_launch* launch) {
  Attributes s = {kOp, false, false, false};
  if (kOp == kSolve || kOp == kTriangularSolve) s.ta = node.Flag("ta");
  if (kOp == kTriangularSolve) s.lower = node.Flag("lower"), s.unit = node.Flag("unit");
  return Keep(launch, s,
              VisitFloats(TypeOf(node.In(0)), []<class T>() -> Run { return Guard<RunDense<T>>; }));
}

template <DenseOp kOp>
constexpr keel_impl Row(const char* op) {
  return Impl(op, "strips", Prepare<PrepareDense<kOp>>, KEEL_IMPL_ANY_DIMS);
}
constexpr keel_impl kImpls[] = {Row<kCholesky>("cholesky"),
                                Row<kTriangularSolve>("triangular_solve"),
                                Row<kSolve>("solve"),
                                Row<kDet>("det"),
                                Row<kQr>("qr"),
                                Row<kSvd>("svd"),
                                Row<kEigh>("eigh")};

}  // namespace

Impls LinearAlgebraImpls() { return kImpls; }

}  // namespace keel_cpu
