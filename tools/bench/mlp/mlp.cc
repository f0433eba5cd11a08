// mlp.cc: the MLP 784-128-128-128-10 from C++: a step of SGD, and the rounds of rows K8 and K9.
//   bench_mlp step graph|eager FILE   the Keel side of ../train.py. FILE: 128 rows, their labels, the
//   parameters.
//                                     Prints the loss after 10 steps; then, per number of steps read from
//                                     stdin, the seconds of one step
//   bench_mlp rounds [ROWS [ROUNDS]]  mlp_eager, mlp_pruned and mlp_returned; 60,000 rows, 100 rounds
// Options at the end: --threads N, --device NAME, --cpu-time (processor time).
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>

#include "net.h"

namespace mlp {
namespace {

struct Choice {
  std::vector<std::string> words;
  std::string threads, device = "cpu";
  bool cpu_time = false;
};

double Seconds(bool of_processor) {
  if (of_processor) return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class T>
Array Filled(const keel::Context& c, std::vector<int64_t> shape, const std::function<T(int64_t)>& value) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  std::vector<T> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; i++) values[static_cast<size_t>(i)] = value(i);
  return Array::of<T>(c, shape, values);
}

template <class T>
Array Read(const keel::Context& c, std::istream& file, std::vector<int64_t> shape) {
  return Filled<T>(c, std::move(shape), [&](int64_t) {
    T value{};
    file.read(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  });
}

int Steps(const keel::Context& context, const Choice& choice) {
  std::ifstream file(choice.words[2], std::ios::binary);
  Array x = Read<float>(context, file, {128, kWidths[0]}), labels = Read<int32_t>(context, file, {128}), loss;
  Arrays params;
  for (size_t k = 0; k < kLayers; k++) {
    params.push_back(Read<float>(context, file, {kWidths[k], kWidths[k + 1]}));
    params.push_back(Read<float>(context, file, {kWidths[k + 1]}));
  }
  if (!file) throw std::runtime_error(choice.words[2] + " is too short");
  Net net(context, choice.device, 0.05f);
  Traced graph(context, choice.device, "step", net, [](Net& n, const Arrays& in) {
    Array before;
    Arrays results = n.Step(in[0], in[1], std::span(in).subspan(2), &before);
    results.push_back(before);
    return results;
  });
  auto traced = [&] {
    Arrays in{x, labels};
    in.insert(in.end(), params.begin(), params.end());
    params = graph(in);
    loss = params.back();
    params.pop_back();
  };
  auto eager = [&] { params = net.Step(x, labels, params, &loss); };
  const std::function<void()> step =
      choice.words[1] == "graph" ? std::function<void()>(traced) : std::function<void()>(eager);
  for (int i = 0; i < 11; i++) step();
  std::printf("%.9g\n", static_cast<double>(loss.item<float>()));
  std::fflush(stdout);
  for (int n = 0; std::cin >> n;) {
    double start = Seconds(choice.cpu_time);
    for (int i = 0; i < n; i++) step();
    std::printf("%.9g\n", (Seconds(choice.cpu_time) - start) / n);
    std::fflush(stdout);
  }
  return 0;
}

std::string Needed(const std::string& report) {
  auto number = [&](const char* key) {
    size_t at = report.find(key);
    return at == std::string::npos ? std::string("?")
                                   : std::to_string(std::atoi(&report[at + std::strlen(key)]));
  };
  return number("\"needed_nodes\":") + " of " + number("\"nodes\":") + " compute nodes needed";
}

int Rounds(const keel::Context& context, const Choice& choice) {
  int64_t rows = choice.words.size() > 1 ? std::atoll(choice.words[1].c_str()) : 60000;
  int rounds = choice.words.size() > 2 ? std::atoi(choice.words[2].c_str()) : 100;
  auto wave = [](int64_t i) { return static_cast<float>(i * 7919 % 2003) / 1001.5f - 1.0f; };
  Arrays in{Filled<float>(context, {rows, kWidths[0]}, wave)};
  for (size_t k = 0; k < kLayers; k++) {
    in.push_back(
        Filled<float>(context, {kWidths[k], kWidths[k + 1]}, [&](int64_t i) { return wave(i) / 16; }));
    in.push_back(Filled<float>(context, {kWidths[k + 1]}, wave));
  }
  Net net(context, choice.device, 0);
  auto model = [](Net& n, const Arrays& a) { return n.Logits(a[0], std::span(a).subspan(1)); };
  Traced pruned(context, choice.device, "mlp_pruned", net, [&](Net& n, const Arrays& a) {
    model(n, a);
    return Arrays();
  });
  Traced returned(context, choice.device, "mlp_returned", net,
                  [&](Net& n, const Arrays& a) { return Arrays{model(n, a)}; });
  auto measure = [&](const char* name, const std::string& note, const std::function<void()>& once) {
    once();  // traces
    double start = Seconds(choice.cpu_time);
    for (int i = 0; i < rounds; i++) once();
    double took = Seconds(choice.cpu_time) - start;
    std::printf("%-13s %d rounds of %lld rows: %.4g s, %.4g ms a round; %s\n", name, rounds,
                static_cast<long long>(rows), took, 1e3 * took / rounds, note.c_str());
    return took;
  };
  double eager = measure("mlp_eager", "every op is computed at once", [&] { model(net, in); });
  measure("mlp_pruned",
          Needed(pruned.Report(in, choice.device)) + ": nothing is returned, so nothing is computed",
          [&] { pruned(in); });
  double graph = measure("mlp_returned", Needed(returned.Report(in, choice.device)), [&] { returned(in); });
  std::printf(
      "The honest comparison is mlp_returned with mlp_eager: %.2f times as fast. mlp_pruned shows that\n"
      "unused results are not computed; it does not measure speed.\n",
      eager / graph);
  return 0;
}

int Main(int argc, char** argv) {
  Choice choice;
  for (int i = 1; i < argc; i++) {
    std::string word = argv[i];
    if (word == "--cpu-time")
      choice.cpu_time = true;
    else if ((word == "--threads" || word == "--device") && i + 1 < argc)
      (word == "--threads" ? choice.threads : choice.device) = argv[++i];
    else
      choice.words.push_back(word);
  }
  keel::Context context(choice.threads.empty() ? keel::Options()
                                               : keel::Options{{"threads", choice.threads}});
  context.scan_plugins();
  if (choice.words.size() == 3 && choice.words[0] == "step") return Steps(context, choice);
  if (!choice.words.empty() && choice.words[0] == "rounds") return Rounds(context, choice);
  std::fprintf(stderr, "usage: bench_mlp step graph|eager FILE, or bench_mlp rounds [ROWS [ROUNDS]]\n");
  return 2;
}

}  // namespace
}  // namespace mlp

int main(int argc, char** argv) {
  try {
    return mlp::Main(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_mlp: %s\n", e.what());
    return 1;
  }
}
