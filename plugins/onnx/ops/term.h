// term.h: Keel values with operators, so that a converter reads like its formula: (x * x + 1).op("sqrt").
//
// A Term is a value of the module under construction; arithmetic adds nodes. A number takes the dtype of the
// term next to it.
#pragma once
#include "plugins/onnx/import/call.h"

namespace onnx_import {

class Term {
 public:
  Term(Edit& edit, keel_value value) : v(value), e_(&edit) {}
  Term(Call& c, size_t i) : Term(c.e, c.in(i)) {}

  Edit& edit() const { return *e_; }
  keel_dt dtype() const { return e_->dtype(v); }
  Dims dims() const { return e_->dims(v); }
  keel_dim dim(size_t k) const { return dims().at(k); }
  size_t rank() const { return dims().size(); }
  Term n(double number) const { return {*e_, e_->scalar(dtype(), number)}; }
  Term size(keel_dim d) const { return {*e_, e_->number(d, dtype())}; }

  Term op(const char* name, const Attrs& attrs = {}) const { return {*e_, e_->op(name, {v}, attrs)}; }
  Term op(const char* name, const Term& b, const Attrs& attrs = {}) const {
    return {*e_, e_->op(name, {v, b.v}, attrs)};
  }
  Term op(const char* name, double b) const { return op(name, n(b)); }
  Term to(keel_dt dtype) const { return {*e_, e_->cast(v, dtype)}; }
  Term reshape(Dims to) const { return {*e_, e_->reshape(v, std::move(to))}; }
  Term transpose(Ints perm) const { return op("transpose", Attrs().ints("perm", std::move(perm))); }
  Term broadcast(Dims to) const { return op("broadcast_to", Attrs().dims("dims", std::move(to))); }
  Term sum(Ints axes, bool keep = false) const { return reduced("reduce_sum", std::move(axes), keep); }
  Term reduced(const char* op_name, Ints axes, bool keep = false) const {
    return op(op_name, Attrs().ints("axes", std::move(axes)).flag("keep", keep));
  }
  Term slice(size_t axis, keel_dim from, keel_dim until, int64_t step = 1) const;
  Term gather(const Term& index, int64_t axis) const { return op("gather", index, Attrs().i("axis", axis)); }
  Term clamp(double low, double high) const { return {*e_, e_->op("clamp", {v, n(low).v, n(high).v})}; }
  Term clamp(const Term& low, const Term& high) const { return {*e_, e_->op("clamp", {v, low.v, high.v})}; }
  // With a dim of 1 in front of dim `at` (at == rank: behind the last).
  Term unsqueeze(size_t at) const;

  // A run fails with the message and the values of `shown` unless this is true.
  void demand(const std::string& message, const Ids& shown = {}) const {
    Ids in = {v};
    in.insert(in.end(), shown.begin(), shown.end());
    e_->ops("assert", in, Attrs().word("message", message.c_str()), 0);
  }

  keel_value v;

 private:
  Edit* e_;
};

inline Term operator+(const Term& a, const Term& b) { return a.op("add", b); }
inline Term operator-(const Term& a, const Term& b) { return a.op("sub", b); }
inline Term operator*(const Term& a, const Term& b) { return a.op("mul", b); }
inline Term operator/(const Term& a, const Term& b) { return a.op("div", b); }
inline Term operator+(const Term& a, double b) { return a + a.n(b); }
inline Term operator-(const Term& a, double b) { return a - a.n(b); }
inline Term operator*(const Term& a, double b) { return a * a.n(b); }
inline Term operator/(const Term& a, double b) { return a / a.n(b); }
inline Term operator+(double a, const Term& b) { return b.n(a) + b; }
inline Term operator-(double a, const Term& b) { return b.n(a) - b; }
inline Term operator*(double a, const Term& b) { return b.n(a) * b; }
inline Term operator/(double a, const Term& b) { return b.n(a) / b; }
inline Term operator-(const Term& a) { return a.op("neg"); }
inline Term operator<(const Term& a, const Term& b) { return a.op("less", b); }
inline Term operator<(const Term& a, double b) { return a.op("less", b); }
inline Term operator>(const Term& a, const Term& b) { return a.op("greater", b); }
inline Term operator>(const Term& a, double b) { return a.op("greater", b); }
inline Term operator==(const Term& a, const Term& b) { return a.op("equal", b); }
inline Term operator==(const Term& a, double b) { return a.op("equal", b); }
inline Term operator&(const Term& a, const Term& b) { return a.op("logical_and", b); }
inline Term operator|(const Term& a, const Term& b) { return a.op("logical_or", b); }

inline Term select(const Term& p, const Term& a, const Term& b) {
  return {p.edit(), p.edit().op("select", {p.v, a.v, b.v})};
}
inline Term select(const Term& p, const Term& a, double b) { return select(p, a, a.n(b)); }
inline Term select(const Term& p, double a, const Term& b) { return select(p, b.n(a), b); }

// Elements whose value is their index along one axis.
Term counting_term(Edit& e, Dims dims, int64_t axis, keel_dt dtype);
inline Term counting_term(Edit& e, keel_dim n, keel_dt dtype) { return counting_term(e, Dims{n}, 0, dtype); }
Term filled(Edit& e, keel_dt dtype, double number, Dims dims);
Term concat(const std::vector<Term>& parts, int64_t axis);
Dims without(Dims dims, size_t axis);
inline bool is_half(keel_dt dtype) { return dtype == KEEL_F16 || dtype == KEEL_BF16; }
inline keel_dt wide(keel_dt dtype) { return is_half(dtype) ? keel_dt{KEEL_F32} : dtype; }
int64_t static_dim(Call& c, keel_dim d, const char* what);  // refuses a symbolic dim
void expect_matrices(Call& c, size_t a, size_t b);          // refuses vectors as these operands

}  // namespace onnx_import
