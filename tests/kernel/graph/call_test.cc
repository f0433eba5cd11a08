// call_test.cc: graphs that are bodies of calls: typing, round trips (text and file tests also use the sample
// `call`), errors, limits. Oracles are texts.
#include <filesystem>

#include "tests/kernel/graph/helpers.h"

namespace keel::test {
namespace {

absl::Status ParseError(const std::string& text) { return ParseText("keel 1\n" + text, Ops()).status(); }

constexpr char kBody[] = "fn @body(a: f32[b], c: f32[]) -> f32[b] {\n  r = mul(a, c)\n  return r\n}\n";

std::string Calling(const std::string& statement) {
  return kBody + std::string("fn @main(x: f32[b], y: f32[n], i: i32[b]) -> f32[b] {\n  r = ") + statement +
         "\n  return r\n}\n";
}

TEST(Call, IsTypedByItsBody) {
  auto m = Parse("keel 1\n" + Calling("call(x, 2){body=@body}"));  // the literal takes the parameter's dtype
  EXPECT_NE(PrintText(*m).find("r = call(x, 2.0){body=@body} : f32[b]"), std::string::npos) << PrintText(*m);
  EXPECT_TRUE((*m->FindGraph("body"))->called);
  EXPECT_EQ((*m->FindGraph("main"))->depth, 1u);
  EXPECT_EQ((*m->FindGraph("main"))->expanded, 2u);
  EXPECT_TRUE(Verify(*m).ok());
}

TEST(Call, RefusesOperandsThatAreNotTheBodys) {
  EXPECT_ERROR(ParseError(Calling("call(x){body=@body}")), "its body takes 2 operands, got 1");
  EXPECT_ERROR(ParseError(Calling("call(x, 1, 1){body=@body}")), "its body takes 2 operands, got 3");
  EXPECT_ERROR(ParseError(Calling("call(y, 1){body=@body}")),
               "x[0] must be f32[b], the type of parameter 0 of its body");
  EXPECT_ERROR(ParseError(Calling("call(i, 1){body=@body}")), "x[0] must be f32[b]");
  EXPECT_ERROR(ParseError(Calling("call(2, 1){body=@body}")), "is a literal but its body takes f32[b]");
  EXPECT_ERROR(ParseError(Calling("call(x, 1){body=@nobody}")), "no graph 'nobody'");
  EXPECT_ERROR(ParseError(Calling("call(x, 1){body=3}")), "expected '@'");
  EXPECT_ERROR(ParseError(Calling("call(x, 1)")), "attribute body (graph) must be given");
}

TEST(Call, NoGraphCallsItself) {
  EXPECT_ERROR(ParseError("fn @f(x: f32[]) -> f32[] {\n  y = call(x){body=@f}\n  return y\n}\n"), "f");
  // Bypasses the parser: two graphs that call each other.
  auto m = Parse(
      "keel 1\n"
      "fn @f(x: f32[]) -> f32[] {\n  y = neg(x)\n  return y\n}\n"
      "fn @g(x: f32[]) -> f32[] {\n  y = call(x){body=@f}\n  return y\n}\n");
  Graph& f = *m->graphs[0];
  f.nodes[0] = m->graphs[1]->nodes[0];
  f.nodes[0].attrs[0].value.i = 1;
  EXPECT_ERROR(Verify(*m), "calls itself");
  f.nodes[0].attrs[0].value.i = 77;
  EXPECT_ERROR(Verify(*m), "calls graph 77, which does not exist");
}

TEST(Call, ABodyIsIsolatedAndFinished) {
  EXPECT_ERROR(ParseError("fn @f(x: f32[]) -> f32[] {\n  y = add(x, 1.5)\n  return y\n}\n"
                          "fn @g(x: f32[]) -> f32[] {\n  y = call(x){body=@f}\n  return y\n}\n"),
               "graph 'f' contains the constant f32(1.5) and cannot be a body");
  auto m = Parse("keel 1\n" + Calling("call(x, 2){body=@body}"));
  Graph& body = *m->graphs[0];
  EXPECT_ERROR(body.AddParam("more", F32({})).status(), "is the body of a call");
  EXPECT_ERROR(body.AddResult("more", 0), "is the body of a call");
  EXPECT_ERROR(body.AddNode(*Ops()->Find("neg", 0), {0}, {}).status(), "is the body of a call");
}

TEST(Call, DepthAndSizeAreLimited) {
  std::string deep = "fn @f0(x: f32[]) -> f32[] {\n  y = neg(x)\n  return y\n}\n", wide = deep;
  for (int i = 1; i <= 33; i++) {
    std::string from = std::to_string(i - 1), name = std::to_string(i);
    deep += "fn @f" + name + "(x: f32[]) -> f32[] {\n  y = call(x){body=@f" + from + "}\n  return y\n}\n";
    wide += "fn @f" + name + "(x: f32[]) -> f32[] {\n  t = call(x){body=@f" + from +
            "}\n  y = call(t){body=@f" + from + "}\n  return y\n}\n";
  }
  EXPECT_ERROR(ParseError(deep), "nest 33 deep; the limit is 32");
  EXPECT_ERROR(ParseError(wide), "more than 1000000 nodes, the limit, with the bodies of its calls");
}

// A module built in code may refer to a later body; text and files write the body first.
TEST(Call, TextAndFilePutBodiesFirst) {
  auto made = std::make_unique<Module>(Ops());
  Graph& main = **made->AddGraph("main");
  Graph& body = **made->AddGraph("body");
  ValueId a = *body.AddParam("a", F32({2}));
  NodeId neg = *body.AddNode(*Ops()->Find("neg", 0), {a}, {}, {"r"});
  ASSERT_TRUE(body.AddResult("", body.nodes[neg].out[0]).ok());
  ValueId x = *main.AddParam("x", F32({2}));
  AttrValue graph;
  graph.kind = KEEL_ATTR_GRAPH;
  graph.i = 1;
  NodeId call = *main.AddNode(*Ops()->Find("call", 0), {x}, {{"body", graph}}, {"y"});
  ASSERT_TRUE(main.AddResult("", main.nodes[call].out[0]).ok());
  ASSERT_TRUE(made->AddEntry("main", &main).ok());
  std::string text = PrintText(*made);
  EXPECT_LT(text.find("fn @body"), text.find("fn @main"));
  EXPECT_EQ(PrintText(*Parse(text)), text);
  std::string path = (std::filesystem::temp_directory_path() / "keel_call_test.keel").string();
  ASSERT_TRUE(SaveFile(*made, path).ok());
  auto back = LoadFile(path, Ops());
  std::filesystem::remove(path);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(PrintText(**back), text);
}

}  // namespace
}  // namespace keel::test
