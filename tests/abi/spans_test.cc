// spans_test.cc: a caller's own spans keep the timeline's file valid, whatever their arguments. The oracle is
// another JSON parser.
#include <fstream>
#include <nlohmann/json.hpp>

#include "misuse.h"

namespace {

using namespace misuse;
using nlohmann::json;

class Spans : public Misuse {
 protected:
  void TearDown() override {
    keel_timeline_end(nullptr);
    Misuse::TearDown();
  }
  // Spans of the file, without the events that name tracks.
  std::vector<json> Written() {
    Ok(keel_timeline_end(&error_));
    json all = json::parse(std::ifstream(file_), nullptr, false);
    EXPECT_FALSE(all.is_discarded()) << "the file is not JSON";
    std::vector<json> spans;
    for (const json& event : all)
      if (event["ph"] == "X") spans.push_back(event);
    return spans;
  }
};

TEST_F(Spans, KeepArgumentsThatAreObjects) {
  const char* good[] = {"{}",
                        " { } ",
                        R"({"a": 1})",
                        R"({"a":-0.5e+3,"b":[true,false,null,[],{}],"c":"\u00e9\n\"\\"})",
                        "{\"k\u00e9\":\"\u00e9\"}",
                        "\n{\"a\"\t:\r1E2 , \"b\":0}\n"};
  Ok(keel_timeline_begin(file_.c_str(), 0, &error_));
  for (const char* args : good) keel_timeline_span("track", "span", "kind", 1000, 2000, args);
  std::vector<json> spans = Written();
  ASSERT_EQ(spans.size(), std::size(good));
  for (size_t i = 0; i < spans.size(); i++) EXPECT_EQ(spans[i]["args"], json::parse(good[i])) << good[i];
}

TEST_F(Spans, LeaveOutOtherArguments) {
  const std::string deep = "{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}";
  const std::string bad[] = {"",
                             " ",
                             "{",
                             "}",
                             "[]",
                             "1",
                             "\"a\"",
                             "null",
                             "{}}",
                             "{} {}",
                             "{,}",
                             "{\"a\"}",
                             "{\"a\":}",
                             "{\"a\":1,}",
                             "{\"a\":1 \"b\":2}",
                             "{a:1}",
                             "{'a':1}",
                             "{\"a\":01}",
                             "{\"a\":1.}",
                             "{\"a\":.5}",
                             "{\"a\":+1}",
                             "{\"a\":1e}",
                             "{\"a\":-}",
                             "{\"a\":NaN}",
                             "{\"a\":Infinity}",
                             "{\"a\":tr}",
                             "{\"a\":\"\n\"}",
                             "{\"a\":\"\\x\"}",
                             "{\"a\":\"\\u12g4\"}",
                             "{\"a\":\"\\u12",
                             "{\"a\":\"\\",
                             "{\"a\":\"",
                             "{\"a\":[1,2}",
                             "{\"a\":\"\xff\"}",
                             "},{",
                             deep};
  Ok(keel_timeline_begin(file_.c_str(), 0, &error_));
  for (const std::string& args : bad) keel_timeline_span("track", "span", "kind", 1000, 2000, args.c_str());
  keel_timeline_span("track", "span", "kind", 1000, 2000, nullptr);
  std::vector<json> spans = Written();
  ASSERT_EQ(spans.size(), std::size(bad) + 1);
  for (const json& span : spans) EXPECT_EQ(span["args"], json::object());
}

TEST_F(Spans, HaveNoNegativeLength) {
  const std::pair<int64_t, int64_t> times[] = {
      {5000, 2000}, {INT64_MIN, INT64_MAX}, {INT64_MAX, INT64_MIN}, {-1, -2}, {INT64_MAX, INT64_MAX}};
  Ok(keel_timeline_begin(file_.c_str(), 0, &error_));
  keel_timeline_span("track", "\"quoted\"\n", "kind\\", 1000, 3000, "{}");
  for (auto [begin, end] : times) keel_timeline_span("track", "span", "kind", begin, end, "{}");
  std::vector<json> spans = Written();
  ASSERT_EQ(spans.size(), std::size(times) + 1);
  EXPECT_EQ(spans[0]["dur"], 2.0);
  EXPECT_EQ(spans[0]["name"], "\"quoted\"\n");
  for (const json& span : spans) EXPECT_GE(span["dur"].get<double>(), 0) << span;
  EXPECT_EQ(spans[1]["dur"], 0.0) << "an end before its begin";
}

}  // namespace
