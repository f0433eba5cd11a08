// functions.cc: the shape functions and their table. To add one: write it, add a row, describe it in
// docs/reference/catalogue_language.md. Names must differ from op names.

#include "kernel/language/opset/functions.h"

#include <algorithm>

#include "kernel/language/opset/arith.h"

namespace keel::opset {
namespace {

using Args = std::span<const Val>;

absl::Status Bcast(Env& env, Args args, Val* out) {
  List list;
  RETURN_IF_ERROR(Broadcast(env, args[0].list, args[1].list, &list));
  return out->SetList(std::move(list));
}

// The index of the entry in the list; the list's size if it is missing.
int64_t IndexOf(const List& list, int64_t entry) {
  return std::find(list.begin(), list.end(), entry) - list.begin();
}
bool Has(const List& list, int64_t entry) { return IndexOf(list, entry) < static_cast<int64_t>(list.size()); }

absl::Status Find(Env&, Args args, Val* out) {
  List list;
  for (int64_t entry : args[1].list) list.push_back(IndexOf(args[0].list, entry));
  return out->SetList(std::move(list));
}

absl::Status Without(Env&, Args args, Val* out) {
  List list;
  for (int64_t entry : args[0].list)
    if (!Has(args[1].list, entry)) list.push_back(entry);
  return out->SetList(std::move(list));
}

// The dims after a reduction over sorted axes: 1 if kept, otherwise removed.
absl::Status Reduced(Env&, Args args, Val* out) {
  List list;
  for (size_t i = 0; i < args[0].list.size(); i++) {
    bool gone = Has(args[1].list, static_cast<int64_t>(i));
    if (!gone)
      list.push_back(args[0].list[i]);
    else if (args[2].i)
      list.push_back(1);
  }
  return out->SetList(std::move(list));
}

absl::Status Pick(Env& env, Args args, Val* out) {
  List list;
  for (int64_t i : args[1].list) {
    if (i < 0 || i >= static_cast<int64_t>(args[0].list.size()))
      return env.Fail("index ", env.Print(i), " of a list of ", args[0].list.size());
    list.push_back(args[0].list[static_cast<size_t>(i)]);
  }
  return out->SetList(std::move(list));
}

absl::Status Total(Env& env, const Val& v, BinOp op, int64_t start, int64_t* out) {
  *out = start;
  for (int64_t i : v.list) RETURN_IF_ERROR(Arith(env, op, *out, i, out));
  return absl::OkStatus();
}
absl::Status Sum(Env& env, Args args, Val* out) {
  out->kind = Val::kInt;
  return Total(env, args[0], BinOp::kAdd, 0, &out->i);
}
absl::Status Prod(Env& env, Args args, Val* out) {
  out->kind = Val::kInt;
  return Total(env, args[0], BinOp::kMul, 1, &out->i);
}

// The dims of a reshape, with -1 replaced.
absl::Status Resolved(Env& env, Args args, Val* out) {
  int64_t have = 0;
  RETURN_IF_ERROR(Total(env, args[0], BinOp::kMul, 1, &have));
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
  return out->SetList(std::move(to));
}

absl::Status Rank(Env&, Args args, Val* out) {
  return out->Set(Val::kInt, static_cast<int64_t>(args[0].list.size()));
}

absl::Status Each(Env& env, Args args, Val* out) {
  if (env.each < 0 || env.each >= static_cast<int64_t>(args[0].list.size()))
    return env.Fail("each(...) outside of a variadic result");
  return out->Set(Val::kInt, args[0].list[static_cast<size_t>(env.each)]);
}

absl::Status All(Env&, Args args, Val* out) {
  List list(args[0].list.size());
  for (size_t i = 0; i < list.size(); i++) list[i] = static_cast<int64_t>(i);
  return out->SetList(std::move(list));
}

absl::Status Reversed(Env& env, Args args, Val* out) {
  RETURN_IF_ERROR(All(env, args, out));
  std::reverse(out->list.begin(), out->list.end());
  return absl::OkStatus();
}

absl::Status Inverse(Env& env, Args args, Val* out) {
  List list(args[0].list.size());
  for (size_t i = 0; i < list.size(); i++) {
    int64_t to = args[0].list[i];
    if (to < 0 || to >= static_cast<int64_t>(list.size()))
      return env.Fail("inverse of a list that is not a permutation");
    list[static_cast<size_t>(to)] = static_cast<int64_t>(i);
  }
  return out->SetList(std::move(list));
}

// The axes of shape P to sum over, to undo a broadcast from shape D.
absl::Status SpreadAxes(Env& env, Args args, Val* out) {
  const List &from = args[0].list, &to = args[1].list;
  if (from.size() > to.size()) return env.Fail("spread_axes: the first shape has more dims than the second");
  size_t extra = to.size() - from.size();
  List list;
  for (size_t i = 0; i < to.size(); i++)
    if (i < extra || (from[i - extra] == 1 && to[i] != 1)) list.push_back(static_cast<int64_t>(i));
  return out->SetList(std::move(list));
}

// Checks the arguments (list, number of leading entries).
absl::Status CheckPrefix(const Env& env, Args args) {
  if (args[1].kind != Val::kInt || IsSymbolic(args[1].i))
    return env.Fail("the number of indices must be a number, not a symbol");
  if (args[1].i < 0 || args[1].i > static_cast<int64_t>(args[0].list.size()))
    return env.Fail(args[1].i, " indices for ", args[0].list.size(), " dims");
  return absl::OkStatus();
}

absl::Status After(Env& env, Args args, Val* out) {
  RETURN_IF_ERROR(CheckPrefix(env, args));
  List list(args[0].list.begin() + args[1].i, args[0].list.end());
  return out->SetList(std::move(list));
}

absl::Status Before(Env& env, Args args, Val* out) {
  RETURN_IF_ERROR(CheckPrefix(env, args));
  List list(args[0].list.begin(), args[0].list.begin() + args[1].i);
  return out->SetList(std::move(list));
}

absl::Status Floating(Env&, Args args, Val* out) {
  return out->Set(Val::kBool, IsFloating(static_cast<DType>(args[0].i)));
}

absl::Status Bits(Env&, Args args, Val* out) {
  return out->Set(Val::kInt, static_cast<int64_t>(BitsOf(static_cast<DType>(args[0].i))));
}

// Whether the second dtype represents every value of the first exactly.
absl::Status Lossless(Env&, Args args, Val* out) {
  return out->Set(Val::kBool, Holds(static_cast<DType>(args[1].i), static_cast<DType>(args[0].i)));
}

absl::Status Max(Env& env, int64_t a, int64_t b, int64_t* out) { return MaxMin(env, true, a, b, out); }
absl::Status Min(Env& env, int64_t a, int64_t b, int64_t* out) { return MaxMin(env, false, a, b, out); }
absl::Status CeilDiv(Env& env, int64_t a, int64_t b, int64_t* out) {
  int64_t up = 0;
  RETURN_IF_ERROR(Arith(env, BinOp::kSub, b, 1, &up));
  RETURN_IF_ERROR(Arith(env, BinOp::kAdd, a, up, &up));
  return Arith(env, BinOp::kFloorDiv, up, b, out);
}

// A symbol for a size that only a run knows.
absl::Status Fresh(Env& env, Args, Val* out) {
  ASSIGN_OR_RETURN(Dim symbol, env.dims.NewSymbol());
  return out->Set(Val::kInt, symbol);
}

constexpr Function kFunctions[] = {{"bcast", "ll", Bcast},
                                   {"fits", "vv", nullptr},
                                   {"reduced", "llb", Reduced},
                                   {"pick", "ll", Pick},
                                   {"find", "ll", Find},
                                   {"without", "ll", Without},
                                   {"resolved", "ll", Resolved},
                                   {"sum", "l", Sum},
                                   {"prod", "l", Prod},
                                   {"rank", "l", Rank},
                                   {"count", "l", Rank},
                                   {"each", "l", Each},
                                   {"ceildiv", "vv", nullptr, CeilDiv},
                                   {"max", "vv", nullptr, Max},
                                   {"min", "vv", nullptr, Min},
                                   {"all", "l", All},
                                   {"reversed", "l", Reversed},
                                   {"inverse", "l", Inverse},
                                   {"dims", "n", nullptr},
                                   {"given", "n", nullptr},
                                   {"dtype", "n", nullptr},
                                   {"uses", "n", nullptr},
                                   {"constant", "n", nullptr},
                                   {"number", "n", nullptr},
                                   {"invertible", "n", nullptr},
                                   {"spread_axes", "ll", SpreadAxes},
                                   {"after", "lv", After},
                                   {"before", "lv", Before},
                                   {"floating", "d", Floating},
                                   {"bits", "d", Bits},
                                   {"lossless", "dd", Lossless},
                                   {"fresh", "", Fresh}};

}  // namespace

absl::Status CheckArguments(const Env& env, const Function& f, std::span<const Val> args) {
  struct Kind {
    char letter;
    Val::Kind kind;
    std::string_view noun;
  };
  constexpr Kind kKinds[] = {
      {'l', Val::kList, "list"}, {'b', Val::kBool, "bool"}, {'d', Val::kDType, "dtype"}};
  for (size_t i = 0; i < args.size(); i++)
    for (const Kind& k : kKinds)
      if (f.arguments[i] == k.letter && args[i].kind != k.kind)
        return env.Fail(f.name, " requires a ", k.noun);
  return absl::OkStatus();
}

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
