// opset_text_test.cc: texts of ops: tokens, facts about definitions, ops of plugins, invalid and malicious
// texts.

#include <atomic>
#include <limits>
#include <random>
#include <thread>

#include "gtest/gtest.h"
#include "kernel/language/opset/lexer.h"
#include "kernel/language/opset/opset.h"

namespace keel {
namespace {

TEST(OpsetText, FactsAboutOps) {
  Catalogue catalogue;
  const OpDef& conv = **catalogue.Find("conv", 0);
  EXPECT_EQ(OpOperands(conv)[0].pattern, "T[n, c, S..]");
  EXPECT_EQ(OpAttrs(conv)[0].type, "i64[S]");
  EXPECT_EQ(OpAttrs(conv)[0].default_text, "1");
  EXPECT_EQ(OpAttrs(conv)[2].kind, KEEL_ATTR_DIMS);
  EXPECT_EQ(OpResults(conv)[0].name, "y");
  EXPECT_EQ(OpTypes(conv)[0].second.size(), 4u);
  const OpDef& scatter = **catalogue.Find("scatter_nd", 0);
  EXPECT_EQ(OpAttrs(scatter)[0].choices.size(), 5u);
  EXPECT_TRUE(Has(**catalogue.Find("add", 0), Trait::kCommutative));
  EXPECT_TRUE(Has(**catalogue.Find("reshape", 0), Trait::kAlias));
  EXPECT_TRUE(OpOperands(**catalogue.Find("attention", 0))[3].optional);
  EXPECT_TRUE(OpOperands(**catalogue.Find("concat", 0))[0].variadic);
}

TEST(OpsetText, PluginsAddOps) {
  Catalogue catalogue;
  absl::Status status = catalogue.AddText(
      "opset acme 1\nop acme.twice since 1 in x: T[P..] out y: T[P..] type T: num\n  body { return x + x }\n",
      "acme.ops");
  ASSERT_EQ(status, absl::OkStatus());
  EXPECT_EQ(catalogue.ParseAll(), absl::OkStatus());
  EXPECT_TRUE(HasBody(**catalogue.Find("acme.twice", 0)));
  EXPECT_EQ(catalogue.AddText("opset acme 1\nop acme.twice since 1\n", "other.ops").code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(catalogue.AddText("opset acme 1\nop twice since 1\n", "acme.ops").message(),
            "acme.ops:2:4: an op of a plugin must have a dotted name, like vendor.twice, got 'twice'");
}

// Invalid definitions are refused with their position, when they are added or first used.
TEST(OpsetText, BrokenDefinitionsAreRefused) {
  const char* ops[] = {
      "in",
      "in x T[]",
      "in x: U[P..] out y: U[P..]",
      "in x: f32[P.., Q..] out y: f32[P..]",
      "in x: f32[P.., P..] out y: f32[P..]",
      "in x: f32[P..] out y: f32[Q..]",
      "in x: f32[P..] out y: f32[nothing(P)..]",
      "in x: f32[P..] out y: f32[bcast(P)..]",
      "in x: f32[P..], x: f32[P..] out y: f32[P..]",
      "in x...: f32[], y: f32[] out z: f32[]",
      "in x: f32[n@axis] out y: f32[]",
      "in x: f32[n] attr axis: axis = 0 out y: f32[n]",
      "in x: f32[n] attr a: enum(p, q) = r out y: f32[n]",
      "in x: f32[n] attr a: axes[Z] out y: f32[n]",
      "in x: f32[n] attr a: wat out y: f32[n]",
      "in x: f32[n] attr a: i64, a: i64 out y: f32[n]",
      "in x: f32[n] out y: f32[n] type T: nonsense",
      "in x: f32[n] out y: f32[n] check n \"unclosed {n\"",
      "in x: f32[n] out y: f32[n] check z \"\"",
      "in x: f32[n] out y: f32[n] is wonderful",
      "out y: f32[3] is alias",
      "in x?: f32[3] out y: f32[3] is noop_if_same",
      "in x: f32[n] out y: f32[n] class about",
      "in x: f32[n] out y: f32[n] body { return q }",
      "in x: f32[n] out y: f32[n] body { return x, x }",
      "in x: f32[n] out y: f32[n] body { k = x }",
      "in x: f32[n] out y: f32[n] body { return nothing_such(x) }",
      "in x: f32[n] out y: f32[n] body { return relu(x){bend=1} }",
      "in x: f32[n] out y: f32[n] body { x = x return x }",
      "in x: f32[n] out y: f32[n] vjp (a, b) { return a }",
      "in x: f32[n] out y: f32[n] vjp (a) { return a // a }",
      "in x: f32[n] out y: f32[n] doc 5",
      "in x: f32[n] out y: f32[99999999999999999999]",
      "in x: f32[n] out y: f32[n] doc \"unterminated",
      "what is this",
      "\x01\x02",
  };
  for (const char* text : ops) {
    Catalogue fresh;
    absl::Status status = fresh.AddText(absl::StrCat("opset t 1\nop t.op since 1 ", text, "\n"), "t.ops");
    if (status.ok()) status = fresh.ParseAll();
    EXPECT_FALSE(status.ok()) << text;
    EXPECT_NE(status.message().find("t.op"), absl::string_view::npos) << text << " gave " << status;
  }
}

TEST(OpsetText, HostileTextsAreRefusedQuickly) {
  auto add = [](std::string clause) {
    Catalogue fresh;
    absl::Status status =
        fresh.AddText("opset t 1\nop t.op since 1 in x: f32[n] out y: f32[n] " + clause, "t.ops");
    return status.ok() ? fresh.ParseAll() : status;
  };
  EXPECT_FALSE(add("check " + std::string(100000, '(')).ok());
  EXPECT_FALSE(add("check " + std::string(100000, '-') + "1 \"\"").ok());
  EXPECT_FALSE(add("check " + std::string(100000, '!')).ok());
  EXPECT_FALSE(add("check " + std::string(100000, '[')).ok());
  std::string chain = "check 1";
  for (int i = 0; i < 10000; i++) chain += " + 1";
  EXPECT_FALSE(add(chain + " == 1 \"\"").ok());
  std::string ladder = "check ";
  for (int i = 0; i < 10000; i++) ladder += "true ? 1 : ";
  EXPECT_FALSE(add(ladder + "1 \"\"").ok());
  Catalogue fresh;
  EXPECT_FALSE(fresh.AddText(std::string(2 << 20, ' '), "big").ok());
  EXPECT_FALSE(fresh.AddText("", "empty").ok());
  EXPECT_FALSE(fresh.AddText("opset t 9\n", "future").ok());
  std::string many = "opset t 1\n";
  for (int i = 0; i < 5000; i++) absl::StrAppend(&many, "op t.n", i, " since 1\n");
  EXPECT_FALSE(fresh.AddText(many, "many").ok());
  std::mt19937 random(3);
  DimTable dims;
  Inferred inferred;
  Operand x;
  x.type.dtype = DType::kF32;
  x.type.dims = {2, 3};
  std::string good =
      "opset t 1\nop t.op since 1 in x: T[P.., n@axis, Q..] attr axis: axis = 0, k: i64[P] = 1 out y: T[P.., "
      "n * 2, Q..] type T: num check n > 0 \"{n}\" body { return concat(x, x){axis=axis} }";
  for (int i = 0; i < 3000; i++) {  // one damaged byte: an error or a valid op, never a crash
    std::string text = good;
    text[random() % text.size()] = static_cast<char>(random() % 256);
    Catalogue c;
    (void)c.AddText(text, "fuzz");
    auto def = c.Find("t.op", 0);
    if (def.ok()) (void)Infer(**def, {{x}}, {}, dims, &inferred);
  }
}

TEST(OpsetText, FirstUseFromManyThreads) {
  Catalogue fresh;
  std::vector<std::thread> threads;
  std::atomic<int> found = 0;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&] {
      for (const std::string& name : fresh.Names()) found += fresh.Find(name, 0).ok();
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(found, static_cast<int>(4 * fresh.Names().size()));
}

TEST(Lexer, WordsAndPlaces) {
  Lexer lex("a.b  1..2 1e-05 \"x\\n\\x41\" <= ... // # no\n  end $\x02", "f");
  std::vector<std::string> words;
  while (!lex.AtEnd()) words.emplace_back(lex.Next().text);
  EXPECT_EQ(words, (std::vector<std::string>{"a", ".", "b", "1", "..", "2", "1e-05", "\"x\\n\\x41\"",
                                             "<=", "...", "//", "end", "$", "\x02"}));
  EXPECT_EQ(*Unescape("\"x\\n\\x41\""), "x\nA");
  Lexer bad("one\n  \"two", "f");
  lex = bad;
  EXPECT_EQ(*lex.Name("x"), "one");
  EXPECT_TRUE(lex.Peek().newline_before);
  EXPECT_EQ(lex.Fail("expected a name").message(),
            "f:2:3: expected a name, got '\"two' (unterminated string)");
  Lexer numbers("-9223372036854775808 9223372036854775808 -1.5 inf 1e999");
  EXPECT_EQ(*numbers.Int("x"), std::numeric_limits<int64_t>::min());
  EXPECT_FALSE(numbers.Int("x").ok());
  EXPECT_EQ(*numbers.Number("x"), -1.5);
  EXPECT_EQ(*numbers.Number("x"), std::numeric_limits<double>::infinity());
  EXPECT_FALSE(numbers.Number("x").ok());
}

TEST(Lexer, FloatsAndStringsReadBack) {
  for (double v : {0.1, 1.0, 1e-5, 1e300, -0.0, 123456789.0}) {
    std::string text = PrintFloat(v);
    Lexer lex(text);
    EXPECT_EQ(*lex.Number("x"), v) << text;
  }
  EXPECT_EQ(PrintFloat(1e-5), "1e-05");
  std::string all;
  for (int c = 0; c < 256; c++) all += static_cast<char>(c);
  EXPECT_EQ(*Unescape(Quote(all)), all);
}

}  // namespace
}  // namespace keel
