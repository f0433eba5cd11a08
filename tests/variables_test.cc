// variables_test.cc: variables, effects and checkpoints from C++ (sdk/cpp/keel), on the reference device.
#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <keel/keel.hpp>
#include <thread>

#include "gtest/gtest.h"

namespace {

class Variables : public testing::Test {
 protected:
  Variables() {
    context.scan_plugins();
    context.print_to([](void* arg, int32_t, const char* text,
                        uint64_t size) { static_cast<std::string*>(arg)->append(text, size); },
                     &printed);
  }
  ~Variables() override { context.print_to(nullptr, nullptr); }

  keel::Array row(std::vector<float> values) {
    return keel::Array::of<float>(context, std::vector<int64_t>{static_cast<int64_t>(values.size())}, values);
  }
  static std::vector<float> list(const keel::Array& a) {
    auto values = a.values<float>();
    return {values.begin(), values.end()};
  }
  // The message that the call throws.
  template <typename Call>
  static std::string error_of(Call call) {
    try {
      call();
    } catch (const keel::Error& e) {
      return e.what();
    }
    return "";
  }

  std::string printed;
  keel::Context context;
};

using Floats = std::vector<float>;

TEST_F(Variables, AReadIsASnapshot) {
  keel::Variable w(context, row({1, 2}));
  keel::Array before = w.read();
  w.assign_add(row({10, 10}));
  w.assign_sub(row({1, 0}));
  EXPECT_EQ(list(before), (Floats{1, 2}));
  EXPECT_EQ(list(w.read()), (Floats{10, 12}));
  keel::Variable same = w;
  same.assign(row({0, 5}));
  EXPECT_EQ(list(w.read()), (Floats{0, 5}));
  EXPECT_NE(error_of([&] {
              w.assign(row({1, 2, 3}));
            }).find("the variable is f32[2], got f32[3]"),
            std::string::npos);
}

TEST_F(Variables, WhatIsAssignedIsCopied) {
  keel::Array mine = row({1, 2});
  keel::Variable w(context, mine);
  mine.values<float>()[0] = 99;
  EXPECT_EQ(list(w.read()), (Floats{1, 2}));
  w.assign(mine);
  mine.values<float>()[0] = 7;
  EXPECT_EQ(list(w.read()), (Floats{99, 2}));
}

// A training step as in programs: two modules share the variable.
TEST_F(Variables, GraphsAndProgramShareThem) {
  keel::Variable w(context, row({1, 2}));
  keel::Module train(context), serve(context);
  keel::Graph step = train.graph("step"), model = serve.graph("model");
  keel::Attrs var, other;
  var.variable("var", w.number_in(train, "w"));
  other.variable("var", w.number_in(serve, "weights"));
  int64_t two = 2;
  keel_value x = step.param("x", KEEL_F32, {&two, 1});
  step.node("assign_add", std::vector{x}, 0, var, "update");
  train.entry("main", step);
  model.result("y", model.node("read", {}, 1, other)[0]);
  serve.entry("main", model);
  keel::Plan update = keel::Session(train, "reference").prepare(),
             read = keel::Session(serve, "reference").prepare();
  EXPECT_EQ(list(read.run({})[0]), (Floats{1, 2}));
  update.run(std::vector{row({1, 1})});
  update.run(std::vector{row({1, 1})});
  EXPECT_EQ(list(read.run({})[0]), (Floats{3, 4}));
  EXPECT_EQ(list(keel::Variable(serve, "weights").read()), (Floats{3, 4}));
  EXPECT_NE(error_of([&] { keel::Variable(serve, "w"); }).find("it has 'weights'"), std::string::npos);
}

TEST_F(Variables, AnAssertionHoldsBackWhatStandsBehindIt) {
  keel::Module module = keel::Module::parse(
      context,
      "keel 1\nvar w: f32[1] = [0.0]\nfn @main(x: f32[1], ok: bool[]) {\n  print(x){format=\"x is {}\"}\n"
      "  assert(ok, x){message=\"no\"}\n  assign(w, x)\n  print(x)\n  return\n}\nentry main = @main (x, ok) "
      "-> ()\n");
  keel::Plan plan = keel::Session(module, "reference").prepare();
  keel::Array no = keel::Array::zeros(context, KEEL_BOOL, {});
  EXPECT_EQ(error_of([&] { plan.run(std::vector{row({99}), no}); }), "assert \"v1\": no: [99]");
  EXPECT_EQ(printed, "x is [99]\n");
  EXPECT_EQ(list(keel::Variable(module, "w").read()), Floats{0});
}

// Threads that run graphs and threads that add eagerly: no update is lost.
TEST_F(Variables, ManyThreadsAddUp) {
  keel::Module module = keel::Module::parse(
      context,
      "keel 1\nvar n: f32[3] = [0.0, 0.0, 0.0]\nfn @main(x: f32[3]) -> f32[3] {\n  assign_add(n, x)\n"
      "  y = read(n)\n  return y\n}\nentry main = @main (x) -> (_)\n");
  keel::Plan plan = keel::Session(module, "reference", {{"threads", "1"}}).prepare();
  keel::Variable n(module, "n");
  keel::Array one = row({1, 1, 1});
  std::atomic<int> torn{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; t++)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 500; i++) {
          if (t % 2) n.assign_add(one);
          Floats seen = list(t % 2 ? n.read() : plan.run(std::vector{one})[0]);
          torn += seen[0] != seen[1] || seen[1] != seen[2];
        }
      });
  }
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(list(n.read()), (Floats{4000, 4000, 4000}));
}

struct Folder {
  Folder() {
    std::string name = testing::TempDir() + "keel_variables_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path = name;
  }
  ~Folder() {
    unlink((path + "/c.keel").c_str());
    rmdir(path.c_str());  // fails if another file is left
  }
  std::string path;
};

TEST_F(Variables, CheckpointsAreAllOrNothing) {
  Folder folder;
  std::string path = folder.path + "/c.keel";
  keel::Variable a(context, row({1, 2})), b(context, row({3}));
  keel::save_checkpoint(context, path, {{"layer/a", a}, {"b", b}});
  a.assign(row({0, 0}));
  b.assign(row({0}));
  keel::Variable odd(context, row({7, 8, 9}));
  EXPECT_NE(error_of([&] {
              keel::load_checkpoint(context, path, {{"layer/a", a}, {"b", odd}});
            }).find("variable 'b' is f32[3] but the file has f32[1]"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              keel::load_checkpoint(context, path, {{"layer/a", a}, {"c", b}});
            }).find("no variable 'c'; it has 'layer/a', 'b'"),
            std::string::npos);
  EXPECT_EQ(list(a.read()), (Floats{0, 0})) << "a failed load changes nothing";
  keel::load_checkpoint(context, path, {{"layer/a", a}});
  EXPECT_EQ(list(a.read()), (Floats{1, 2}));
  EXPECT_EQ(list(b.read()), Floats{0});
  keel::save_checkpoint(context, path, {{"b", b}});  // over the old file
  keel::load_checkpoint(context, path, {{"b", b}});
}

TEST_F(Variables, ADamagedCheckpointIsRefused) {
  Folder folder;
  std::string path = folder.path + "/c.keel";
  keel::Variable a(context, row({1, 2}));
  keel::save_checkpoint(context, path, {{"a", a}});
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\x55');
  }
  a.assign(row({5, 5}));
  EXPECT_NE(error_of([&] {
              keel::load_checkpoint(context, path, {{"a", a}});
            }).find("checksum"),
            std::string::npos);
  EXPECT_EQ(list(a.read()), (Floats{5, 5}));
}

}  // namespace
