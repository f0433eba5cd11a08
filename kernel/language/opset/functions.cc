// functions.cc: the shape functions and their table. To add one: write it, add a row, describe it in
// docs/reference/catalogue_language.md. Names must differ from op names.

#include "kernel/language/opset/functions.h"

#include <algorithm>

#include "kernel/language/opset/arith.h"

namespace keel::opset {
namespace {

using Args = std::span<const Val>;

absl::Status RequireList(const Env& env, const Val& v, std::string_view function) {
  return v.kind == Val::kList ? absl::OkStatus() : env.Fail(function, " requires a list");
}

void SetInt(int64_t i, Val* out) {
  out->kind = Val::kInt;
  out->i = i;
}
void SetList(List list, Val* out) {
  out->kind = Val::kList;
  out->list = std::move(list);
}

absl::Status Bcast(Env& env, Args args, Val* out) {
  RETURN_IF_ERROR(RequireList(env, args[0], "bcast"));
  RETURN_IF_ERROR(RequireList(env, args[1], "bcast"));
  List list;
  RETURN_IF_ERROR(Broadcast(env, args[0].list, args[1].list, &list));
  SetList(std::move(list), out);
  return absl::OkStatus();
}

// The dims after a reduction over sorted axes: 1 if kept, otherwise removed.
absl::Status Reduced(Env& env, Args args, Val* out) {
  RETURN_IF_ERROR(RequireList(env, args[0], "reduced"));
  RETURN_IF_ERROR(RequireList(env, args[1], "reduced"));
  if (args[2].kind != Val::kBool) return env.Fail("reduced requires a bool");
  List list;
  for (size_t i = 0; i < args[0].list.size(); i++) {
    bool gone =
        std::find(args[1].list.begin(), args[1].list.end(), static_cast<int64_t>(i)) != args[1].list.end();
    if (!gone)
      list.push_back(args[0].list[i]);
    else if (args[2].i)
      list.push_back(1);
  }
  SetList(std::move(list), out);
  return absl::OkStatus();
}

absl::Status Pick(Env& env, Args args, Val* out) {
  RETURN_IF_ERROR(RequireList(env, args[0], "pick"));
  RETURN_IF_ERROR(RequireList(env, args[1], "pick"));
  List list;
  for (int64_t i : args[1].list) {
    if (i < 0 || i >= static_cast<int64_t>(args[0].list.size()))
      return env.Fail("index ", env.Print(i), " of a list of ", args[0].list.size());
    list.push_back(args[0].list[static_cast<size_t>(i)]);
  }
  SetList(std::move(list), out);
  return absl::OkStatus();
}

absl::Status Total(Env& env, const Val& v, BinOp op, int64_t start, int64_t* out) {
  RETURN_IF_ERROR(RequireList(env, v, op == BinOp::kAdd ? "sum" : "prod"));
  *out = start;
  for (int64_t i : v.list) RETURN_IF_ERROR(Arith(env, op, *out, i, out));
  return absl::OkStatus();
}
absl::Status Sum(Env& env, Args args, Val* out) {
  int64_t total = 0;
  RETURN_IF_ERROR(Total(env, args[0], BinOp::kAdd, 0, &total));
  SetInt(total, out);
  return absl::OkStatus();
}
absl::Status Prod(Env& env, Args args, Val* out) {
  int64_t total = 0;
  RETURN_IF_ERROR(Total(env, args[0], BinOp::kMul, 1, &total));
  SetInt(total, out);
  return absl::OkStatus();
}

// The dims of a reshape, with -1 replaced.
absl::Status Resolved(Env& env, Args args, Val* out) {
  int64_t have = 0;
  RETURN_IF_ERROR(Total(env, args[0], BinOp::kMul, 1, &have));
  RETURN_IF_ERROR(RequireList(env, args[1], "resolved"));
  List to = args[1].list;
  int64_t want = 1;
  ptrdiff_t open = -1;
  for (size_t i = 0; i < to.size(); i++) {
    if (to[i] == -1) {
      if (open >= 0) return env.Fail("only one dim may be -1 in [", env.Print(to), "]");
      open = static_cast<ptrdiff_t>(i);
    } else {
      if (!IsSymbolic(to[i]) && to[i] < 0)
        return env.Fail("dim ", to[i], " in [", env.Print(to), "] is negative");
      RETURN_IF_ERROR(Arith(env, BinOp::kMul, want, to[i], &want));
    }
  }
  if (open >= 0) {
    if (want == 0)
      return env.Fail("-1 next to a dim of 0 in [", env.Print(to), "] is ambiguous: give the dim");
    RETURN_IF_ERROR(Arith(env, BinOp::kFloorDiv, have, want, &to[static_cast<size_t>(open)]));
    RETURN_IF_ERROR(Arith(env, BinOp::kMul, want, to[static_cast<size_t>(open)], &want));
  }
  Truth same = CompareDims(env, BinOp::kEq, have, want);
  auto message = [&] {
    return absl::StrCat("[", env.Print(args[0].list), "] has ", env.Print(have),
                        " elements, which do not fit [", env.Print(args[1].list), "]");
  };
  if (same == Truth::kFalse) return env.FailWith(message());
  if (same == Truth::kUnknown) env.AddCheck(have, want, true, message());
  SetList(std::move(to), out);
  return absl::OkStatus();
}

absl::Status Rank(Env& env, Args args, Val* out) {
  RETURN_IF_ERROR(RequireList(env, args[0], "rank"));
  SetInt(static_cast<int64_t>(args[0].list.size()), out);
  return absl::OkStatus();
}

absl::Status Each(Env& env, Args args, Val* out) {
  RETURN_IF_ERROR(RequireList(env, args[0], "each"));
  if (env.each < 0 || env.each >= static_cast<int64_t>(args[0].list.size()))
    return env.Fail("each(...) outside of a variadic result");
  SetInt(args[0].list[static_cast<size_t>(env.each)], out);
  return absl::OkStatus();
}

absl::Status All(Env& env, Args args, Val* out) {
  RETURN_IF_ERROR(RequireList(env, args[0], "all"));
  List list(args[0].list.size());
  for (size_t i = 0; i < list.size(); i++) list[i] = static_cast<int64_t>(i);
  SetList(std::move(list), out);
  return absl::OkStatus();
}

absl::Status Reversed(Env& env, Args args, Val* out) {
  RETURN_IF_ERROR(All(env, args, out));
  std::reverse(out->list.begin(), out->list.end());
  return absl::OkStatus();
}

absl::Status Inverse(Env& env, Args args, Val* out) {
  RETURN_IF_ERROR(RequireList(env, args[0], "inverse"));
  List list(args[0].list.size());
  for (size_t i = 0; i < list.size(); i++) {
    int64_t to = args[0].list[i];
    if (to < 0 || to >= static_cast<int64_t>(list.size()))
      return env.Fail("inverse of a list that is not a permutation");
    list[static_cast<size_t>(to)] = static_cast<int64_t>(i);
  }
  SetList(std::move(list), out);
  return absl::OkStatus();
}

// The axes of shape P to sum over, to undo a broadcast from shape D.
absl::Status SpreadAxes(Env& env, Args args, Val* out) {
  RETURN_IF_ERROR(RequireList(env, args[0], "spread_axes"));
  RETURN_IF_ERROR(RequireList(env, args[1], "spread_axes"));
  const List &from = args[0].list, &to = args[1].list;
  if (from.size() > to.size()) return env.Fail("spread_axes: the first shape has more dims than the second");
  size_t extra = to.size() - from.size();
  List list;
  for (size_t i = 0; i < to.size(); i++)
    if (i < extra || (from[i - extra] == 1 && to[i] != 1)) list.push_back(static_cast<int64_t>(i));
  SetList(std::move(list), out);
  return absl::OkStatus();
}

// Checks the arguments (list, number of leading entries).
absl::Status RequirePrefix(const Env& env, Args args, std::string_view function) {
  RETURN_IF_ERROR(RequireList(env, args[0], function));
  if (args[1].kind != Val::kInt || IsSymbolic(args[1].i))
    return env.Fail("the number of indices must be a number, not a symbol");
  if (args[1].i < 0 || args[1].i > static_cast<int64_t>(args[0].list.size()))
    return env.Fail(args[1].i, " indices for ", args[0].list.size(), " dims");
  return absl::OkStatus();
}

absl::Status After(Env& env, Args args, Val* out) {
  RETURN_IF_ERROR(RequirePrefix(env, args, "after"));
  List list(args[0].list.begin() + args[1].i, args[0].list.end());
  SetList(std::move(list), out);
  return absl::OkStatus();
}

absl::Status Before(Env& env, Args args, Val* out) {
  RETURN_IF_ERROR(RequirePrefix(env, args, "before"));
  List list(args[0].list.begin(), args[0].list.begin() + args[1].i);
  SetList(std::move(list), out);
  return absl::OkStatus();
}

absl::Status Floating(Env& env, Args args, Val* out) {
  if (args[0].kind != Val::kDType) return env.Fail("floating requires a dtype");
  bool floating = IsFloating(static_cast<DType>(args[0].i));
  out->kind = Val::kBool;
  out->i = floating;
  return absl::OkStatus();
}

// Whether the second dtype represents every value of the first exactly.
absl::Status Lossless(Env& env, Args args, Val* out) {
  if (args[0].kind != Val::kDType || args[1].kind != Val::kDType) return env.Fail("lossless requires dtypes");
  out->kind = Val::kBool;
  out->i = Holds(static_cast<DType>(args[1].i), static_cast<DType>(args[0].i));
  return absl::OkStatus();
}

absl::Status EvaluatedInEval(Env& env, Args, Val*) {
  return env.Fail("this function is evaluated by eval.cc");
}

constexpr Function kFunctions[] = {{"bcast", 2, 2, Bcast},
                                   {"fits", 2, 2, nullptr},
                                   {"reduced", 3, 3, Reduced},
                                   {"pick", 2, 2, Pick},
                                   {"resolved", 2, 2, Resolved},
                                   {"sum", 1, 1, Sum},
                                   {"prod", 1, 1, Prod},
                                   {"rank", 1, 1, Rank},
                                   {"count", 1, 1, Rank},
                                   {"each", 1, 1, Each},
                                   {"ceildiv", 2, 2, EvaluatedInEval},
                                   {"max", 2, 2, EvaluatedInEval},
                                   {"min", 2, 2, EvaluatedInEval},
                                   {"all", 1, 1, All},
                                   {"reversed", 1, 1, Reversed},
                                   {"inverse", 1, 1, Inverse},
                                   {"dims", 1, 1, nullptr, true},
                                   {"given", 1, 1, nullptr, true},
                                   {"dtype", 1, 1, nullptr, true},
                                   {"uses", 1, 1, nullptr, true},
                                   {"constant", 1, 1, nullptr, true},
                                   {"number", 1, 1, nullptr, true},
                                   {"invertible", 1, 1, nullptr, true},
                                   {"spread_axes", 2, 2, SpreadAxes},
                                   {"after", 2, 2, After},
                                   {"before", 2, 2, Before},
                                   {"floating", 1, 1, Floating},
                                   {"lossless", 2, 2, Lossless}};

}  // namespace

const Function* FindFunction(std::string_view name) {
  for (const Function& f : kFunctions)
    if (f.name == name) return &f;
  return nullptr;
}

absl::Status Broadcast(Env& env, std::span<const int64_t> a, std::span<const int64_t> b, List* out) {
  if (a.size() < b.size()) std::swap(a, b);
  out->assign(a.begin(), a.end());
  size_t extra = a.size() - b.size();
  for (size_t i = 0; i < b.size(); i++) {
    int64_t x = a[extra + i], y = b[i];
    if (x == y || y == 1) continue;
    if (x == 1) {
      (*out)[extra + i] = y;
      continue;
    }
    Truth equal = CompareDims(env, BinOp::kEq, x, y);
    if (equal == Truth::kFalse)
      return env.Fail("shapes [", env.Print(a), "] and [", env.Print(b), "] do not broadcast (dims ",
                      env.Print(x), " and ", env.Print(y), ": equal, or one of them 1)");
    env.AddCheck(x, y, true,
                 absl::StrCat("to broadcast, ", env.Print(x), " and ", env.Print(y), " must be equal"));
    if (IsSymbolic(x) && !IsSymbolic(y)) (*out)[extra + i] = y;
  }
  return absl::OkStatus();
}

}  // namespace keel::opset
