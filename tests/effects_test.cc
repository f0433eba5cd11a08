// effects_test.cc: programs of reads, writes and sums in any order, against the same on plain numbers. A
// value read or assigned stays unchanged however often the variable changes before it is inspected.
#include <keel/keel.hpp>
#include <random>

#include "gtest/gtest.h"

namespace {

constexpr int64_t kShape[] = {40};  // i32[40] in the texts
constexpr int kVariables = 3;

std::string Zeros() {
  std::string zeros = "0";
  for (int i = 1; i < kShape[0]; i++) zeros += ", 0";
  return zeros;
}

// A random program and its expected results, then its variables.
class Program {
 public:
  Program(unsigned seed, bool in_branch) : random_(seed), indent_(in_branch ? "      " : "  ") {
    for (int i = 0; i < 30; i++) Step();
    for (int i = 0; i < 4; i++) fetched_.push_back(Below(values_.size()));
    const std::string names = Names();
    text_ = "keel 1\n";
    for (int i = 0; i < kVariables; i++)
      text_ += "var w" + std::to_string(i) + ": i32[40] = [" + Zeros() + "]\n";
    text_ += "fn @main(x: i32[40], flag: bool[]) {\n";
    if (in_branch)
      text_ += "  r0, r1, r2, r3 = cond(flag, x)\n    then(x) {\n" + lines_ + "      yield " + names +
               " }\n    else(x) { yield x, x, x, x }\n  return r0, r1, r2, r3\n}\n";
    else
      text_ += lines_ + "  return " + names + "\n}\n";
    text_ += "entry main = @main (x, flag) -> (a, b, c, d)\n";
  }
  const std::string& text() const { return text_; }

  // The same on numbers: the elements of a value are equal. Changes the variables.
  std::vector<uint32_t> Run(uint32_t x, std::vector<uint32_t>* variables) const {
    std::vector<uint32_t> values{x};
    for (const Line& line : program_) {
      uint32_t& w = (*variables)[line.a];
      if (line.op == "read") values.push_back(w);
      if (line.op == "add") values.push_back(values[line.a] + values[line.b]);
      if (line.op == "sub") values.push_back(values[line.a] - values[line.b]);
      if (line.op == "assign") w = values[line.b];
      if (line.op == "assign_add") w += values[line.b];
      if (line.op == "assign_sub") w -= values[line.b];
    }
    std::vector<uint32_t> results;
    for (size_t i : fetched_) results.push_back(values[i]);
    return results;
  }

 private:
  struct Line {
    std::string op;
    size_t a, b;  // values; the variable and the value of a write
  };
  size_t Below(size_t n) { return random_() % n; }
  static std::string Name(size_t value) { return value ? "n" + std::to_string(value) : "x"; }
  std::string Names() const {
    std::string all;
    for (size_t i : fetched_) all += (all.empty() ? "" : ", ") + Name(i);
    return all;
  }
  void Step() {
    static const std::string kOps[] = {"read",   "read",   "add",        "sub",
                                       "assign", "assign", "assign_add", "assign_sub"};
    const std::string& op = kOps[Below(std::size(kOps))];
    const bool writes = op.starts_with("assign"), reads = op == "read";
    Line line{op, Below(writes || reads ? kVariables : values_.size()), Below(values_.size())};
    program_.push_back(line);
    const std::string variable = "w" + std::to_string(line.a);
    lines_ += indent_;
    if (writes) {
      lines_ += op + "(" + variable + ", " + Name(line.b) + ")\n";
      return;
    }
    values_.push_back(values_.size());
    lines_ += Name(values_.back()) + " = " + op + "(" +
              (reads ? variable : Name(line.a) + ", " + Name(line.b)) + ")\n";
  }

  std::minstd_rand random_;
  const std::string indent_;
  std::vector<size_t> values_{0}, fetched_;
  std::vector<Line> program_;
  std::string lines_, text_;
};

void Check(keel::Context& context, const Program& program, const std::string& device, const char* level) {
  keel::Module module = keel::Module::parse(context, program.text());
  keel::Plan plan = keel::Session(module, device, {{"level", level}}).prepare();
  std::vector<uint32_t> variables(kVariables);
  bool yes = true;
  keel::Array flag = keel::Array::of<bool>(context, {}, std::span(&yes, 1));
  auto is = [&](const keel::Array& there, uint32_t wanted, const std::string& name) {
    const keel::Array got = there.to(context, "");
    EXPECT_EQ(std::vector<int32_t>(got.values<int32_t>().begin(), got.values<int32_t>().end()),
              std::vector<int32_t>(40, static_cast<int32_t>(wanted)))
        << name << " on " << device << ", level " << level << "\n"
        << program.text();
  };
  for (int32_t run = 1; run < 4; run++) {
    keel::Array x = keel::Array::of<int32_t>(context, kShape, std::vector<int32_t>(40, run * 7));
    std::vector<keel::Array> results = plan.run(std::vector{x, flag});
    std::vector<uint32_t> wanted = program.Run(static_cast<uint32_t>(run) * 7, &variables);
    for (size_t i = 0; i < results.size(); i++) is(results[i], wanted[i], "result " + std::to_string(i));
    for (size_t i = 0; i < variables.size(); i++) {
      const std::string name = "w" + std::to_string(i);
      is(keel::Variable(module, name).read(), variables[i], name);
    }
  }
}

class Effects : public testing::TestWithParam<bool> {};  // within a branch

TEST_P(Effects, AreThoseOfPlainNumbers) {
  keel::Context context;
  context.scan_plugins();
  for (unsigned seed = 1; seed <= 60 && !HasFailure(); seed++)
    for (const char* level : {"0", "2"})
      for (const std::string& device : context.devices())
        Check(context, Program(seed, GetParam()), device, level);
}
INSTANTIATE_TEST_SUITE_P(Around, Effects, testing::Bool());

}  // namespace
