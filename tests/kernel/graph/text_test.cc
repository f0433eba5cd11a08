// text_test.cc: the text form: canonical output, exact round trips, errors of invalid text.

#include "kernel/language/graph/element.h"
#include "tests/kernel/graph/helpers.h"

namespace keel::test {
namespace {

class Samples : public ::testing::TestWithParam<std::string> {};

TEST_P(Samples, ReadBackExactly) {
  std::string text = SampleText(GetParam());
  auto m = Parse(text);
  EXPECT_EQ(PrintText(*m), text);
  EXPECT_TRUE(Verify(*m).ok()) << Verify(*m);
}

// A change of any byte either fails with a position or gives a module that round-trips.
TEST_P(Samples, SurviveDamage) {
  std::string text = SampleText(GetParam());
  const std::string bytes = std::string("\0\xff\"(){}[]=,@-#", 15);
  for (size_t i = 0; i < text.size(); i++) {
    for (size_t k = 0; k < 3; k++) {
      std::string damaged = text;
      damaged[i] = bytes[(i * 3 + k) % bytes.size()];
      auto m = ParseText(damaged, Ops());
      if (!m.ok()) {
        EXPECT_FALSE(m.status().message().empty());
        continue;
      }
      std::string printed = PrintText(**m);
      auto again = ParseText(printed, Ops());
      ASSERT_TRUE(again.ok()) << again.status() << printed;
      ASSERT_EQ(PrintText(**again), printed);
    }
    if (i % 5 == 0) (void)ParseText(std::string_view(text).substr(0, i), Ops());
  }
}

INSTANTIATE_TEST_SUITE_P(, Samples, ::testing::ValuesIn(SampleNames()),
                         [](const auto& i) { return i.param; });

absl::Status Error(std::string_view body) {
  return ParseText(absl::StrCat("keel 1\nfn @f(x: f32[b, 2], k: i32[3]) {\n", body, "\n}\n"), Ops()).status();
}
std::string Printed(std::string_view body) {
  auto m = Parse(absl::StrCat("keel 1\nfn @f(x: f32[b, 2], k: i32[3]) {\n", body, "\n}\n"));
  std::string text = PrintText(*m);
  EXPECT_EQ(PrintText(*Parse(text)), text);
  size_t begin = text.find('\n', text.find("fn @")) + 1;
  return text.substr(begin, text.rfind("}\n") - begin);
}

TEST(Text, SugarIsReadAndNeverPrinted) {
  EXPECT_EQ(Printed("y = relu(x * 2 + 1) - -x\nreturn y"),
            "  v0 = mul(x, 2.0) : f32[b, 2]\n  v1 = add(v0, 1.0) : f32[b, 2]\n  v2 = relu(v1) : f32[b, 2]\n"
            "  v3 = neg(x) : f32[b, 2]\n  y = sub(v2, v3) : f32[b, 2]\n  return y\n");
  EXPECT_EQ(Printed("return x < 1, 1.5, 3, true"),
            "  v0 = less(x, 1.0) : bool[b, 2]\n  return v0, f32(1.5), i32(3), true\n");
  EXPECT_EQ(Printed("y = reduce_sum(x){axes=[-1], keep=false}; return y"),
            "  y = reduce_sum(x){axes=[-1]} : f32[b]\n  return y\n");
}

TEST(Text, NamesThatLookLikeUnnamedResults) {
  EXPECT_EQ(Printed("v5 = neg(x)\nv0 = neg(v5)\nreturn v0"),
            "  \"v5\" = neg(x) : f32[b, 2]\n  \"v0\" = neg(\"v5\") : f32[b, 2]\n  return \"v0\"\n");
  EXPECT_ERROR(Error("v0 = neg(x)\nv0 = neg(x)\nreturn v0"), "'v0' is already");
  EXPECT_ERROR(Error("v1 = neg(x)\nv1 = relu(x)\nreturn v1"), "4:1: value 'v1' is already defined");
  EXPECT_ERROR(Error("v1 = neg(x)\ny = neg(v1)\nv1 = relu(x)\nreturn v1"), "'v1' is already");
  EXPECT_EQ(
      Printed("\"none\" = neg(x)\n\"a b\" = neg(\"none\")\nlayer.0.out = neg(\"a b\")\nreturn layer.0.out"),
      "  \"none\" = neg(x) : f32[b, 2]\n  \"a b\" = neg(\"none\") : f32[b, 2]\n"
      "  layer.0.out = neg(\"a b\") : f32[b, 2]\n  return layer.0.out\n");
}

// Inserts lines into a printed text: later line numbers shift.
TEST(Text, NumbersMoveOn) {
  EXPECT_EQ(Printed("v0 = neg(x)\nprint(v0)\nv1 = relu(v0)\nv2 = neg(v1)\nreturn v2"),
            "  v0 = neg(x) : f32[b, 2]\n  print(v0)\n  v2 = relu(v0) : f32[b, 2]\n"
            "  v3 = neg(v2) : f32[b, 2]\n  return v3\n");
  EXPECT_EQ(Printed("exp(x)\nv0 = neg(x)\nv1 = relu(v0)\nreturn v1, v0"),
            "  v0 = exp(x) : f32[b, 2]\n  v1 = neg(x) : f32[b, 2]\n  v2 = relu(v1) : f32[b, 2]\n"
            "  return v2, v1\n");
  EXPECT_EQ(Printed("v0 = relu(x * 2)\nreturn v0"),
            "  v0 = mul(x, 2.0) : f32[b, 2]\n  v1 = relu(v0) : f32[b, 2]\n  return v1\n");
  EXPECT_ERROR(Error("v0 = neg(x)\nprint(v0)\nv1 = relu(v0)\nv1 = neg(v0)\nreturn v1"), "6:1: value 'v1'");
  EXPECT_ERROR(Error("v0 = neg(x)\nprint(v0)\nv1 = relu(v0)\nv0 = neg(v1)\nreturn v1"), "6:1: value 'v0'");
}

TEST(Text, EntryNamesResults) {
  auto m = Parse("keel 1\nfn @f(x: f32[2]) { return x, x }\nentry f = @f (x) -> (a, _)\n");
  EXPECT_EQ(m->graphs[0]->result_names, (std::vector<std::string>{"a", ""}));
  EXPECT_ERROR(ParseText("keel 1\nfn @f(x: f32[2]) { return x }\nentry f = @f (z)\n", Ops()).status(),
               "3:15: 'z' is not parameter 0");
  EXPECT_ERROR(
      ParseText("keel 1\nfn @f(x: f32[2]) -> p: f32[2] { return x }\nentry f = @f (x) -> (q)\n", Ops())
          .status(),
      "called 'p'");
}

TEST(Text, ErrorsNameThePlaceAndShowTheLines) {
  absl::Status s = Error("y = relu(x)\nz = relux(y)\nreturn z");
  EXPECT_ERROR(s, "4:5: ");
  EXPECT_ERROR(s, "relux");
  EXPECT_ERROR(s, "> 4 | z = relux(y)");
  EXPECT_ERROR(s, "  2 | fn @f");
  EXPECT_ERROR(s, "  6 | }");
  EXPECT_ERROR(Error("y = relu(w)\nreturn y"), "no value 'w'");
  EXPECT_ERROR(Error("y = relu(x){alpha=1}\nreturn y"), "relu has no attribute 'alpha'");
  EXPECT_ERROR(Error("y = relu(x) : f32[b, 3]\nreturn y"), "declared as f32[b, 3]");
  EXPECT_ERROR(Error("y = add(x, k)\nreturn y"), "3:");
  EXPECT_ERROR(Error("y = add(k, 1.5)\nreturn y"), "3:");
  EXPECT_ERROR(Error("y = add(k, 2147483648)\nreturn y"), "i32 can hold");
  EXPECT_ERROR(Error("y = x\nreturn y"), "identity(x)");
  EXPECT_ERROR(Error("a, b = relu(x)\nreturn a"), "1 results");
  EXPECT_ERROR(Error("y = reshape(x){to=[c, 2]}\nreturn y"), "declares the dim 'c'");
  EXPECT_ERROR(Error("y = relu@7(x)\nreturn y"), "3:5: ");
  EXPECT_ERROR(Error("y = relu(x"), "got '}'");
  EXPECT_ERROR(ParseText("keel 2", Ops()).status(), "version 2");
  EXPECT_ERROR(ParseText("", Ops()).status(), "expected 'keel'");
  EXPECT_ERROR(ParseText("keel 1 what", Ops()).status(), "expected meta, const");
}

TEST(Text, ConstantsMustFitTheirType) {
  auto error = [](std::string_view rest) {
    return ParseText(absl::StrCat("keel 1\nconst c: ", rest), Ops()).status();
  };
  EXPECT_ERROR(error("f32[3] = [1, 2]"), "3 elements, got 2");
  EXPECT_ERROR(error("i8[1] = [128]"), "i8 can hold");
  EXPECT_ERROR(error("f16[1] = [65520.0]"), "f16 can hold");
  EXPECT_ERROR(error("f32[1] = [1e39]"), "f32 can hold");
  EXPECT_ERROR(error("u8[1] = [-1]"), "u8 can hold");
  EXPECT_ERROR(error("f32[2] = hex\"00\""), "expected 16 hex digits, got 2");
  EXPECT_ERROR(error("f32[1] = hex\"0000000g\""), "not a hex digit");
  EXPECT_ERROR(error("f32[1099511627776] = hex\"\""), "limit of one tensor");
  EXPECT_ERROR(error("f32[b] = [1]"), "dims of a constant");
  EXPECT_ERROR(error("f32[2] = ..."), "omitted");
}

TEST(Text, LongConstantsAreHexAndMayBeLeftOut) {
  Module m(Ops());
  alignas(64) static uint8_t data[65] = {1, 2, 255};
  TensorType type;
  type.dtype = DType::kU8;
  type.dims.push_back(65);
  ASSERT_TRUE(m.AddConstant({"c", type, data, 65, nullptr}).ok());
  std::string text = PrintText(m);
  EXPECT_EQ(text.substr(0, 36), "keel 1\nconst c: u8[65] = hex\"0102ff0");
  EXPECT_EQ(PrintText(*Parse(text)), text);
  EXPECT_EQ(PrintText(m, 64), "keel 1\nconst c: u8[65] = ...\n");
}

TEST(Text, DepthIsLimited) {
  auto nested = [](int depth) {
    std::string s = "y = ";
    for (int i = 0; i < depth; i++) s += "neg(";
    s += "x";
    return s + std::string(static_cast<size_t>(depth), ')') + "\nreturn y";
  };
  EXPECT_TRUE(Error(nested(32)).ok()) << Error(nested(32));
  EXPECT_ERROR(Error(nested(33)), "nested more than 32 deep");
  EXPECT_ERROR(Error("y = " + std::string(100000, '(')), "nested");
  EXPECT_ERROR(Error("y = " + std::string(100000, '-') + "x"), "nested");
  EXPECT_FALSE(Error("y = relu(x)" + std::string(100000, '{')).ok());
  EXPECT_FALSE(Error("y = reshape(x){to=[" + std::string(4000, '(')).ok());
}

// Independent oracle: the known numbers of significant digits of the formats.
TEST(Element, SpellingsAreShortAndExact) {
  auto spell = [](DType d, std::string_view text) {
    uint64_t element = 0;
    EXPECT_TRUE(ParseElement(d, text, &element).ok()) << text;
    return PrintElement(d, &element);
  };
  EXPECT_EQ(spell(DType::kF32, "0.1"), "0.1");
  EXPECT_EQ(spell(DType::kF32, "0.100000001490116"), "0.1");
  EXPECT_EQ(spell(DType::kF64, "0.1"), "0.1");
  EXPECT_EQ(spell(DType::kF16, "0.0999755859375"), "0.1");
  EXPECT_EQ(spell(DType::kF16, "65504"), "65504.0");
  EXPECT_EQ(spell(DType::kBF16, "1"), "1.0");
  EXPECT_EQ(spell(DType::kF64, "-0.0"), "-0.0");
  EXPECT_EQ(spell(DType::kF32, "-inf"), "-inf");
  EXPECT_EQ(spell(DType::kF32, "nan"), "nan");
  EXPECT_EQ(spell(DType::kI64, "-9223372036854775808"), "-9223372036854775808");
  uint64_t e = 0;
  for (std::string_view bad : {"", "+1", "1x", "--1", "0x10", "1 ", "-nan", "1e999"})
    EXPECT_FALSE(ParseElement(DType::kF64, bad, &e).ok()) << bad;
}

// Known bit patterns of IEEE half and of bfloat16.
TEST(Element, SmallFloatsHaveTheKnownBits) {
  auto bits = [](DType d, std::string_view text) {
    uint16_t b = 0;
    EXPECT_TRUE(ParseElement(d, text, &b).ok()) << text;
    return b;
  };
  EXPECT_EQ(bits(DType::kF16, "1"), 0x3c00);
  EXPECT_EQ(bits(DType::kF16, "-2"), 0xc000);
  EXPECT_EQ(bits(DType::kF16, "65504"), 0x7bff);
  EXPECT_EQ(bits(DType::kF16, "65519"), 0x7bff);
  EXPECT_EQ(bits(DType::kF16, "5.960464477539063e-08"), 0x0001);
  EXPECT_EQ(bits(DType::kF16, "6.103515625e-05"), 0x0400);
  EXPECT_EQ(bits(DType::kF16, "inf"), 0x7c00);
  EXPECT_EQ(bits(DType::kF16, "nan"), 0x7e00);
  EXPECT_EQ(bits(DType::kF16, "2049"), 0x6800);  // a tie rounds to even
  EXPECT_EQ(bits(DType::kF16, "2051"), 0x6802);
  EXPECT_EQ(bits(DType::kBF16, "1"), 0x3f80);
  EXPECT_EQ(bits(DType::kBF16, "-inf"), 0xff80);
  EXPECT_EQ(bits(DType::kBF16, "3.140625"), 0x4049);
}

TEST(Element, EveryHalfReadsBack) {
  for (DType d : {DType::kF16, DType::kBF16})
    for (uint32_t i = 0; i < 65536; i++) {
      auto bits = static_cast<uint16_t>(i);
      uint16_t again = 0;
      std::string text = PrintElement(d, &bits);
      if (text.empty()) continue;  // a NaN with a payload
      ASSERT_TRUE(ParseElement(d, text, &again).ok()) << text;
      ASSERT_EQ(again, bits) << text;
    }
}

}  // namespace
}  // namespace keel::test
