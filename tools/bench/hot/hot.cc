// hot.cc: latency of warm calls through the C ABI, on one thread: eager ops, short plans, `power` (100
// matrix products of 10x10 i32). Usage: hot [--json] [--device cpu] [PART OF A NAME]. See ../README.md.
#include <array>
#include <cstring>
#include <keel/keel.hpp>
#include <random>

#include "harness.h"
#include "programs.h"
#include "stop.h"

namespace {

using hot::Call;
using hot::Figure;
using hot::Filled;
using hot::Measure;

struct Bench {
  keel_context* context;
  const char* device;
  std::string wanted;
  std::vector<Figure> figures;

  template <class Body>
  void Add(const char* name, double limit, double work, Body body) {
    if (std::string(name).find(wanted) != std::string::npos)
      figures.push_back(Measure(name, limit, work, body));
  }
};

void Apply(keel_op* op, keel_array* a, keel_array* b, keel_array** out) {
  keel_array* in[] = {a, b};
  if (keel_apply(op, in, 2, out, 1, nullptr) != KEEL_OK) std::abort();
}

// Cycles through copies of one matrix at different page offsets. If a result and the next operand have equal
// low address bits (4K aliasing), a call takes 25 % longer; otherwise the addresses would depend on the
// build.
template <typename T>
class Spread {
 public:
  template <typename Make>
  explicit Spread(const Make& make) {
    for (T& copy : copies_) copy = make();
  }
  const T& Next() { return copies_[turn_++ % copies_.size()]; }
  const std::array<T, 8>& All() const { return copies_; }

 private:
  std::array<T, 8> copies_;
  size_t turn_ = 0;
};

void Eager(Bench& b) {
  keel_op* add = hot::Bind(b.context, b.device, "add");
  keel_op* matmul = hot::Bind(b.context, b.device, "matmul");
  keel_array* scalar = Filled(b.context, KEEL_F32, {}, 1.5f);
  keel_array* thousand = Filled(b.context, KEEL_F32, {1000}, 1.5f);
  Spread<keel_array*> matrices([&] { return Filled(b.context, KEEL_I32, {10, 10}, 1); });
  auto once = [](keel_op* op, keel_array* x) {
    return [=] {
      keel_array* y;
      Apply(op, x, x, &y);
      keel_array_free(y);
    };
  };
  b.Add("eager add, f32 scalars", 30, 1, once(add, scalar));
  b.Add("eager add, 1000 f32", 60, 1, once(add, thousand));
  b.Add("eager matmul, 10x10 i32", 60, 1, [&] { once(matmul, matrices.Next())(); });
  keel_array* y = Filled(b.context, KEEL_F32, {}, 1.0f);
  b.Add("eager add, dependent chain", 30, 1, [&] {
    keel_array* z;
    Apply(add, y, scalar, &z);
    keel_array_free(y);
    y = z;
  });
  b.Add("array of 4 KB made and released", 0, 1, [&] {
    keel_array* z;
    int64_t shape[] = {1000};
    keel_array_new(b.context, KEEL_F32, shape, 1, &z, nullptr);
    keel_array_free(z);
  });
  for (keel_array* a : {scalar, thousand, y}) keel_array_free(a);
  for (keel_array* a : matrices.All()) keel_array_free(a);
  keel_op_free(add);
  keel_op_free(matmul);
}

// Three ops with six kinds of operands in random order; `keep` results stay alive.
struct Mixed {
  std::vector<keel_op*> ops;
  std::vector<keel_array*> operands, kept;
  std::vector<uint32_t> order;
  size_t at = 0, place = 0;

  Mixed(const Bench& b, size_t keep) {
    for (const char* name : {"add", "mul", "maximum"}) ops.push_back(hot::Bind(b.context, b.device, name));
    for (int64_t n : {1, 4, 8}) operands.push_back(Filled(b.context, KEEL_F32, {n}, 1.5f));
    operands.push_back(Filled(b.context, KEEL_F32, {}, 1.5f));
    operands.push_back(Filled(b.context, KEEL_I32, {}, 3));
    operands.push_back(Filled(b.context, KEEL_F64, {2, 2}, 0.5));
    kept.assign(keep, nullptr);
    std::mt19937 random(7);
    for (int i = 0; i < 4096; i++)
      order.push_back(random() % static_cast<uint32_t>(ops.size() * operands.size()));
  }
  void Step() {
    uint32_t pick = order[at++ & 4095];
    keel_array* x = operands[pick / ops.size()];
    keel_array*& y = kept[place];
    place = place + 1 == kept.size() ? 0 : place + 1;
    keel_array_free(y);
    Apply(ops[pick % ops.size()], x, x, &y);
  }
  ~Mixed() {
    for (keel_array* a : operands) keel_array_free(a);
    for (keel_array* a : kept) keel_array_free(a);
    for (keel_op* op : ops) keel_op_free(op);
  }
};

void MixedCalls(Bench& b) {
  Mixed short_lived(b, 1), long_lived(b, 16384);
  b.Add("mixed: 3 ops x 6 kinds of operands", 0, 1, [&] { short_lived.Step(); });
  for (int i = 0; i < 20000; i++) long_lived.Step();
  b.Add("mixed, 16384 results kept alive", 0, 1, [&] { long_lived.Step(); });
}

// One call after touching that many bytes of unrelated data; the timer overhead is subtracted.
void Evicted(Bench& b) {
  keel_op* add = hot::Bind(b.context, b.device, "add");
  keel_array* x = Filled(b.context, KEEL_F32, {}, 1.5f);
  for (size_t kib : {512, 4096, 32768}) {
    std::string name = "one scalar add after " + std::to_string(kib) + " KiB of other data";
    if (name.find(b.wanted) == std::string::npos) continue;
    std::vector<char> other(kib << 10);
    std::vector<double> timer, ns;
    for (int i = 0; i < 201; i++) {
      for (size_t k = 0; k < other.size(); k += 64) other[k]++;
      double start = hot::Now(), middle = hot::Now();
      keel_array* y;
      Apply(add, x, x, &y);
      double end = hot::Now();
      keel_array_free(y);
      timer.push_back(middle - start);
      ns.push_back(end - middle);
    }
    Figure cost = hot::Summarise("", 0, timer);
    for (double& n : ns) n -= cost.median;
    b.figures.push_back(hot::Summarise(name, 0, ns));
  }
  keel_array_free(x);
  keel_op_free(add);
}

std::string Text(const std::string& signature, const std::string& body, const std::string& result) {
  return "keel 1 opset core 1\n\nfn @main(" + signature + " {\n" + body + "  return " + result + "\n}\n";
}

std::string Body(int pairs) {  // a = a * b + b
  std::string body, last = "a";
  for (int i = 0; i < pairs; i++) {
    std::string m = "m" + std::to_string(i), s = "s" + std::to_string(i);
    body += "  " + m + " = mul(" + last + ", b)\n  " + s + " = add(" + m + ", b)\n";
    last = s;
  }
  return body;
}

std::string Chain(int pairs) {
  return Text("a: f32[], b: f32[]) -> f32[]", Body(pairs), "s" + std::to_string(pairs - 1));
}

std::string Power(int products) {
  std::string body, last = "x";
  for (int i = 0; i < products; i++) {
    std::string next = "p" + std::to_string(i);
    body += "  " + next + " = matmul(" + last + ", x)\n";
    last = next;
  }
  return Text("x: i32[10, 10]) -> i32[10, 10]", body, last);
}

void Plans(Bench& b) {
  const keel_kv one[] = {{"threads", "1"}};
  auto run = [&](const char* name, double limit, double work, const std::string& text,
                 std::vector<keel_array*> in) {
    hot::Prepared p(b.context, b.device, text, {one[0]});
    b.Add(name, limit, work, [&] {
      keel_array* y;
      if (keel_plan_run(p.plan, in.data(), static_cast<uint32_t>(in.size()), &y, 1, nullptr) != KEEL_OK)
        std::abort();
      keel_array_free(y);
    });
    for (keel_array* a : in) keel_array_free(a);
  };
  auto scalar = [&](float v) { return Filled(b.context, KEEL_F32, {}, v); };
  run("plan of 1 node", 50, 1, Text("a: f32[], b: f32[]) -> f32[]", "  y = add(a, b)\n", "y"),
      {scalar(1), scalar(2)});
  run("plan of 1 node, symbolic size", 0, 1,
      Text("a: f32[n], b: f32[n]) -> f32[n]", "  y = add(a, b)\n", "y"),
      {Filled(b.context, KEEL_F32, {4}, 1.0f), Filled(b.context, KEEL_F32, {4}, 1.0f)});
  run("plan of 200 scalar nodes, a node", 10, 200, Chain(100), {scalar(0.5), scalar(0.5)});
  const std::string loop = R"(  i, y = while(0, 0.0, x, n){carry=2}
    test(i, a, x, n) { t = less(i, n)
      yield t }
    body(i, a, x, n) { j = i + 1
      b = a * 0.5
      c = b + x
      yield j, c }
)";
  run("while of 1,000 iterations over scalars", 8000, 1, Text("x: f32[], n: i32[]) -> f32[]", loop, "y"),
      {scalar(1), Filled(b.context, KEEL_I32, {}, 1000)});
  run("power, 100 matmuls as a graph", 5000, 1, Power(100), {Filled(b.context, KEEL_I32, {10, 10}, 1)});
}

void Stops(Bench& b) {
  using Arrays = std::vector<keel_array*>;
  auto stop = [&](const char* name, const std::string& text, const auto& make) {
    if (std::string(name).find(b.wanted) == std::string::npos) return;
    std::vector<keel_array*> in = make();
    {
      hot::Prepared p(b.context, b.device, text);
      b.figures.push_back(hot::StopLatency(b.context, name, p.plan, in));
    }
    for (keel_array* a : in) keel_array_free(a);
  };
  stop("stop: 2,000 additions of 1M", Text("a: f32[n], b: f32[]) -> f32[n]", Body(1000), "s999"),
       [&]() -> Arrays {
         return {Filled(b.context, KEEL_F32, {1 << 20}, 1.0f), Filled(b.context, KEEL_F32, {}, 1.0f)};
       });
  stop("stop: one matmul of 2,000 i64", Text("x: i64[n, n]) -> i64[n, n]", "  y = matmul(x, x)\n", "y"),
       [&]() -> Arrays {
         return {Filled(b.context, KEEL_I64, {2000, 2000}, int64_t{1})};
       });
  stop("stop: one tanh of 200M", Text("x: f32[n]) -> f32[n]", "  y = tanh(x)\n", "y"),
       [&]() -> Arrays { return {Filled(b.context, KEEL_F32, {200000000}, 1.0f)}; });
  stop("stop: one oneDNN matmul of 3,000 f32",
       Text("x: f32[n, n]) -> f32[n, n]", "  y = matmul(x, x)\n", "y"), [&]() -> Arrays {
         return {Filled(b.context, KEEL_F32, {3000, 3000}, 1.0f)};
       });
  stop("stop: one oneDNN convolution of an image of 1,000",
       Text("x: f32[1, 32, 1000, 1000], w: f32[64, 32, 3, 3]) -> f32[1, 64, 998, 998]", "  y = conv(x, w)\n",
            "y"),
       [&]() -> Arrays {
         return {Filled(b.context, KEEL_F32, {1, 32, 1000, 1000}, 1.0f),
                 Filled(b.context, KEEL_F32, {64, 32, 3, 3}, 1.0f)};
       });
}

void PowerEager(Bench& b) {
  keel_op* matmul = hot::Bind(b.context, b.device, "matmul");
  Spread<keel_array*> xs([&] { return Filled(b.context, KEEL_I32, {10, 10}, 1); });
  b.Add("power, eager from C", 7000, 1, [&] {
    keel_array *last = keel_array_retain(xs.Next()), *next;
    for (int i = 0; i < 100; i++, last = next) {
      Apply(matmul, last, xs.Next(), &next);
      keel_array_free(last);
    }
    keel_array_free(last);
  });
  for (keel_array* x : xs.All()) keel_array_free(x);
  keel_op_free(matmul);

  keel::Context context;
  context.scan_plugins();
  keel::Op product(context, b.device, "matmul");
  const std::vector<int32_t> ones(100, 1);
  const std::vector<int64_t> shape = {10, 10};
  Spread<keel::Array> bases([&] { return keel::Array::of<int32_t>(context, shape, ones); });
  b.Add("power, eager from C++", 7000, 1, [&] {
    keel::Array last = bases.Next();
    for (int i = 0; i < 100; i++) last = product.one(last, bases.Next());
  });
}

// The same through the C++ SDK: the overhead of values, literals and bound attributes over the C call.
void Sdk(Bench& b) {
  keel::Scope on = keel::device(b.device);
  keel::Tensor x = 1.5f, y = 2.5f, v = keel::zeros({4});
  Spread<keel::Tensor> ms([] { return keel::zeros({10, 10}, KEEL_I32); });
  b.Add("C++: a + b, f32 scalars", 60, 1, [&] { keel::Tensor z = x + y; });
  b.Add("C++: a + 1.f, a weak literal", 0, 1, [&] { keel::Tensor z = x + 1.f; });
  b.Add("C++: matmul(a, a), 10x10 i32", 0, 1, [&] {
    const keel::Tensor& m = ms.Next();
    keel::Tensor z = keel::matmul(m, m);
  });
  b.Add("C++: matmul with an attribute", 0, 1, [&] {
    const keel::Tensor& m = ms.Next();
    keel::Tensor z = keel::matmul(m, m, {.ta = true});
  });
  b.Add("C++: reduce_mean with axes, keep", 0, 1,
        [&] { keel::Tensor z = keel::reduce_mean(v, {.axes = {0}, .keep = true}); });
  auto add = keel::function("add", [](const keel::Tensor& p, const keel::Tensor& q) { return p + q; });
  b.Add("C++: call of a function of one node", 0, 1, [&] { keel::Tensor z = add(x, y); });
  constexpr int kNodes = 10000;
  b.Add("trace: from C++, 10,000 nodes, a node", 1000, kNodes, [&] {
    auto chain = keel::function("chain", [](const keel::Tensor& p, const keel::Tensor& q) {
      keel::Tensor z = p;
      for (int i = 0; i < kNodes; i++) z = z + q;
      return z;
    });
    keel::Module traced = chain.concrete(x, y);
  });
}

void PrintText(const std::vector<Figure>& figures) {
  std::printf("%-46s %10s %21s %8s\n", "", "median ns", "10 % to 90 %", "limit");
  for (const Figure& f : figures) {
    std::printf("%-46s %10.1f %10.1f %10.1f", f.name.c_str(), f.median, f.low, f.high);
    if (f.limit > 0) std::printf(" %8.0f%s", f.limit, f.median > f.limit ? "  missed" : "");
    std::printf("\n");
  }
}

void PrintJson(const std::vector<Figure>& figures) {
  std::printf("{\"schema\": \"keel.hot/1\", \"unit\": \"ns\", \"figures\": [");
  const char* between = "";
  for (const Figure& f : figures) {
    std::printf("%s\n  {\"name\": \"%s\", \"median\": %.2f, \"p10\": %.2f, \"p90\": %.2f, \"limit\": %.0f}",
                between, f.name.c_str(), f.median, f.low, f.high, f.limit);
    between = ",";
  }
  std::printf("]}\n");
}

}  // namespace

int main(int argc, char** argv) {
  bool json = false;
  Bench b{nullptr, "cpu", "", {}};
  for (int i = 1; i < argc; i++) {
    if (!std::strcmp(argv[i], "--json"))
      json = true;
    else if (!std::strcmp(argv[i], "--device") && i + 1 < argc)
      b.device = argv[++i];
    else
      b.wanted = argv[i];
  }
  const keel_kv options[] = {{"threads", "1"}};
  Call(keel_context_new, static_cast<const keel_kv*>(options), 1u, &b.context);
  Call(keel_plugin_load, b.context, nullptr);
  Eager(b);
  MixedCalls(b);
  Evicted(b);
  Plans(b);
  PowerEager(b);
  hot::Programs(b.context, b.device, [&](const char* name, double limit, double work, const auto& body) {
    b.Add(name, limit, work, body);
  });
  Sdk(b);
  Stops(b);
  keel_context_free(b.context);
  json ? PrintJson(b.figures) : PrintText(b.figures);
}
