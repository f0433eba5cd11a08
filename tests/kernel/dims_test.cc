// dims_test.cc: symbolic dims. The oracle is plain integer arithmetic on the same random expression.

#include "kernel/language/dims/dim_table.h"

#include <algorithm>
#include <limits>
#include <random>

#include "gtest/gtest.h"

namespace keel {
namespace {

std::string Canonical(DimTable& t, std::string_view text) {
  auto d = t.Parse(text);
  return d.ok() ? t.Print(*d) : std::string(d.status().message());
}

TEST(Dims, NumbersNeverTouchTheTable) {
  DimTable t;
  EXPECT_EQ(*t.Parse("2*3+4"), 10);
  EXPECT_EQ(*t.Add(3, -5), -2);
  EXPECT_EQ(*t.FloorDiv(-7, 2), -4);
  EXPECT_EQ(*t.Parse("7 % 4"), 3);
  EXPECT_EQ(*t.Parse("-7 % 4"), 1);
  EXPECT_EQ(t.symbol_count(), 0u);
}

TEST(Dims, EqualExpressionsHaveEqualHandles) {
  DimTable t;
  EXPECT_EQ(*t.Parse("b*s + b"), *t.Parse("b*(1+s)"));
  EXPECT_EQ(*t.Parse("(b+1)*(b-1)"), *t.Parse("b*b - 1"));
  EXPECT_EQ(*t.Parse("b - b"), 0);
  EXPECT_EQ(*t.Parse("max(a, b)"), *t.Parse("max(b, a)"));
  EXPECT_EQ(*t.Parse("(b*s*768)//(b*s*12)"), 64);
  EXPECT_EQ(*t.Parse("(3*b + 3*s)//(b+s)"), 3);
  EXPECT_EQ(*t.Parse("(b//2)//3"), *t.Parse("b//6"));
  EXPECT_EQ(*t.Parse("max(b, 0)"), *t.Symbol("b"));
  EXPECT_EQ(*t.Parse("max(max(a, b), b)"), *t.Parse("max(a, b)"));
  EXPECT_EQ(*t.Parse("max(max(max(1, a), b+2), max(b, a))"), *t.Parse("max(max(1, a), b+2)"));
  EXPECT_NE(*t.Parse("max(max(a, b), c)"), *t.Parse("max(a, b)"));
  EXPECT_EQ(*t.Parse("min(b+1, b)"), *t.Symbol("b"));
  EXPECT_EQ(*t.Parse("min(min(a, b), b)"), *t.Parse("min(a, b)"));
  EXPECT_EQ(*t.Parse("max(min(a, b), a)"), *t.Symbol("a"));
  EXPECT_EQ(*t.Parse("min(max(a, b), b)"), *t.Symbol("b"));
  EXPECT_NE(*t.Parse("min(min(a, b), c)"), *t.Parse("min(a, b)"));
}

TEST(Dims, PrintsShortCanonicalText) {
  DimTable t;
  EXPECT_EQ(Canonical(t, "1 + b*2"), "2*b+1");
  EXPECT_EQ(Canonical(t, "b*s*768"), "768*b*s");
  EXPECT_EQ(Canonical(t, "-b"), "-b");
  EXPECT_EQ(Canonical(t, "(4*b+3)//2"), "2*b+1");
  EXPECT_EQ(Canonical(t, "(b+1)//2 - 1"), "(b+1)//2-1");
  EXPECT_EQ(Canonical(t, "2*(b//2)"), "2*(b//2)");
  EXPECT_EQ(Canonical(t, "max(b-1, 0)"), "max(b-1, 0)");
}

TEST(Dims, ComparesForAllValues) {
  DimTable t;
  Dim b = *t.Symbol("b"), s = *t.Symbol("s"), more = *t.Parse("b+1");
  EXPECT_EQ(t.Compare(b, more), Order::kLess);
  EXPECT_EQ(t.Compare(more, b), Order::kGreater);
  EXPECT_EQ(t.Compare(b, b), Order::kEqual);
  EXPECT_EQ(t.Compare(b, s), Order::kUnknown);
  EXPECT_EQ(t.Compare(b, -1), Order::kGreater);
  EXPECT_EQ(t.Compare(b, kMaxDim + 1), Order::kLess);
  EXPECT_TRUE(t.NeverNegative(*t.Parse("b*s + b//3")));
  EXPECT_FALSE(t.NeverNegative(*t.Parse("b - 1")));
  EXPECT_TRUE(t.AlwaysLessEqual(b, *t.Parse("b+s")));
  EXPECT_FALSE(t.AlwaysLessEqual(*t.Parse("b+s"), b));
  EXPECT_TRUE(t.AlwaysLessEqual(*t.Parse("min(b, 2)"), more));
  EXPECT_TRUE(t.AlwaysLessEqual(b, *t.Parse("min(b+s, b+1)")));
  EXPECT_FALSE(t.AlwaysLessEqual(b, *t.Parse("min(b+s, s)")));
}

TEST(Dims, SymbolsAreNumberedAndFound) {
  DimTable t;
  Dim b = *t.Symbol("b"), s = *t.Symbol("s");
  EXPECT_EQ(t.symbol_index(s), 1u);
  EXPECT_EQ(t.symbol_name(0), "b");
  EXPECT_EQ(t.symbol_index(*t.Add(b, 1)), std::nullopt);
  EXPECT_EQ(t.FindSymbol("x"), std::nullopt);
  std::vector<size_t> seen;
  t.Symbols(*t.Parse("max(s, b//2) + s"), &seen);
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, (std::vector<size_t>{0, 1}));
}

TEST(Dims, BadTextIsAnError) {
  DimTable t;
  for (const char* text :
       {"", "b+", "(b", "b)", "1 2", "b//0", "99999999999999999999", "max(b)", "max(b,", "2b", "b $", "b..",
        "9223372036854775807", "4611686018427387904*3", "-4611686018427387905"}) {
    auto d = t.Parse(text);
    EXPECT_TRUE(!d.ok() || !IsSymbolic(*d)) << text;
    if (std::string_view(text) != "9223372036854775807") {
      EXPECT_FALSE(d.ok()) << text;
    }
  }
  EXPECT_FALSE(t.Parse(std::string(100000, '(')).ok());
  EXPECT_FALSE(t.Parse(std::string(60000, '-')).ok());
  EXPECT_FALSE(t.Symbol("").ok());
  EXPECT_FALSE(t.Symbol("a b").ok());
  EXPECT_FALSE(t.Symbol(std::string(300, 'a')).ok());
}

TEST(Dims, HandlesOfNobodyAreRefused) {
  DimTable t;
  Dim stray = std::numeric_limits<int64_t>::min() + 5;
  EXPECT_FALSE(t.Contains(stray));
  EXPECT_FALSE(t.Add(stray, 1).ok());
  EXPECT_FALSE(t.Evaluate(stray, {}).ok());
  EXPECT_EQ(t.Compare(stray, 1), Order::kUnknown);
  EXPECT_EQ(t.Print(stray), "?");
}

TEST(Dims, GrowthIsLimitedNotEndless) {
  DimTable t;
  Dim d = *t.Symbol("b");
  absl::Status status;
  for (int i = 0; i < 200 && status.ok(); i++) {  // each step doubles the text
    auto half = t.FloorDiv(d, *t.Symbol("s"));
    auto next = half.ok() ? t.Max(*half, *t.Sub(d, 1)) : half;
    status = next.status();
    if (status.ok()) d = *next;
  }
  EXPECT_FALSE(status.ok());
  EXPECT_LT(t.Print(d).size(), 100000u);
  std::string sum = "a0";
  for (int i = 1; i < 500; i++) sum += "+a" + std::to_string(i);
  EXPECT_EQ(t.Parse(sum).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Dims, EvaluateReportsOverflowAndZeroDivisor) {
  DimTable t;
  Dim power = *t.Parse("b*b*b"), ratio = *t.Parse("7//s + b");
  int64_t values[] = {int64_t{1} << 40, 0};
  EXPECT_FALSE(t.Evaluate(power, values).ok());
  EXPECT_FALSE(t.Evaluate(ratio, values).ok());
  EXPECT_FALSE(t.Evaluate(ratio, std::span<const int64_t>(values, 1)).ok());
}

// A random expression as a Dim and as its expected value (nullopt: undefined).
struct Both {
  Dim dim;
  std::optional<int64_t> number;
};

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {
    for (int i = 0; i < 3; i++) symbols.push_back(*table.Symbol(std::string(1, static_cast<char>('a' + i))));
    for (int i = 0; i < 3; i++) values.push_back(Draw(0, 9));
  }
  int64_t Draw(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random_); }

  Both Make(int depth) {
    if (depth == 0 || Draw(0, 4) == 0) {
      int64_t k = Draw(0, 4);
      if (k < 3) return {symbols[static_cast<size_t>(k)], values[static_cast<size_t>(k)]};
      int64_t n = Draw(-5, 9);
      return {n, n};
    }
    Both a = Make(depth - 1), b = Make(depth - 1);
    bool known = a.number && b.number;
    int64_t x = a.number.value_or(0), y = b.number.value_or(0);
    switch (Draw(0, 5)) {
      case 0:
        return Make(table.Add(a.dim, b.dim), known, x + y);
      case 1:
        return Make(table.Sub(a.dim, b.dim), known, x - y);
      case 2:
        return Make(table.Mul(a.dim, b.dim), known, x * y);
      case 3:
        return Make(table.Max(a.dim, b.dim), known, std::max(x, y));
      case 4:
        return Make(table.Min(a.dim, b.dim), known, std::min(x, y));
      default: {
        int64_t q = y == 0 ? 0 : x / y - (x % y != 0 && (x % y < 0) != (y < 0) ? 1 : 0);
        return Make(table.FloorDiv(a.dim, b.dim), known && y != 0, q);
      }
    }
  }
  // A full table or a constant zero divisor is an error; then there is nothing to compare.
  static Both Make(absl::StatusOr<Dim> dim, bool known, int64_t number) {
    if (!dim.ok()) return {0, std::nullopt};
    return {*dim, known ? std::optional(number) : std::nullopt};
  }

  DimTable table;
  std::vector<Dim> symbols;
  std::vector<int64_t> values;

 private:
  std::mt19937 random_;
};

TEST(Dims, RandomExpressionsEvaluateAsIntegersDo) {
  int compared = 0;
  for (uint32_t seed = 0; seed < 3000; seed++) {
    Generator g(seed);
    Both e = g.Make(4);
    std::string text = g.table.Print(e.dim);
    EXPECT_EQ(*g.table.Parse(text), e.dim) << text << " became " << Canonical(g.table, text);
    if (!e.number) continue;
    auto got = g.table.Evaluate(e.dim, g.values);
    ASSERT_TRUE(got.ok()) << text << ": " << got.status();
    EXPECT_EQ(*got, *e.number) << text;
    compared++;
  }
  EXPECT_GT(compared, 1500);
}

TEST(Dims, RandomComparisonsNeverContradictValues) {
  for (uint32_t seed = 0; seed < 3000; seed++) {
    Generator g(seed);
    Both a = g.Make(2), b = g.Make(2);
    if (!a.number || !b.number) continue;
    Order order = g.table.Compare(a.dim, b.dim);
    std::string text = g.table.Print(a.dim) + " against " + g.table.Print(b.dim);
    if (order == Order::kLess) {
      EXPECT_LT(*a.number, *b.number) << text;
    }
    if (order == Order::kGreater) {
      EXPECT_GT(*a.number, *b.number) << text;
    }
    if (order == Order::kEqual) {
      EXPECT_EQ(*a.number, *b.number) << text;
    }
    if (g.table.AlwaysLessEqual(a.dim, b.dim)) {
      EXPECT_LE(*a.number, *b.number) << text;
    }
  }
}

}  // namespace
}  // namespace keel
