// digits.cc: trains two networks on handwritten digits and saves them, with their training steps, in one
// file.
//
//   digits DIGITS.csv OUT.keel [EPOCHS]    DIGITS.csv: see images.h; the format of scikit-learn's data
//
// A step (forward, gradient, update of the variables) is one traced function, so it runs as one graph. A
// fifth of the images is held out for the test; an accuracy below 97 % is a failure (exit code 1). OUT.keel
// has for "mlp" and "conv" the entries NAME (images u8[n, 64] -> logits f32[n, 10]), train_NAME (images,
// digits -> loss), score_NAME (images, digits -> accuracy) and reset_NAME (key: reinitialises the variables),
// the variables, and test vectors. `keel verify`, `keel demo` and any other program can continue without this
// source.
#include <iostream>

#include "images.h"
#include "nets.h"

namespace digits {
namespace {

constexpr int64_t kBatch = 64;
constexpr const char* kSigned = "images: u8[n, 64], digits: i32[n]";

/// The operations on a network, each as a traced function.
template <class Net, class Optimizer>
class Model {
 public:
  Model(std::string name, Net net, Optimizer optimizer)
      : name_(std::move(name)), net_(std::move(net)), optimizer_(std::move(optimizer)) {}
  const std::string& name() const { return name_; }

  auto predict() const {
    return keel::function(name_, [net = net_](const Tensor& images) { return net(images); },
                          {.results = {"logits"}, .signature = "images: u8[n, 64]"});
  }
  auto score() const {
    auto code = [net = net_](const Tensor& images, const Tensor& digits) {
      Tensor found = keel::cast(keel::arg_max(net(images), {.axis = 1}), KEEL_I32);
      return keel::reduce_mean(keel::cast(keel::equal(found, digits), KEEL_F32));
    };
    return keel::function("score_" + name_, code, {.results = {"right"}, .signature = kSigned});
  }
  auto step() const {
    auto code = [net = net_, optimizer = optimizer_](const Tensor& images, const Tensor& digits) {
      keel::Tape tape;
      Tensor loss = keel::reduce_mean(keel::cross_entropy(net(images), digits));
      optimizer.step(tape.gradient(loss, net.parameters()));
      return loss;
    };
    return keel::function("train_" + name_, code, {.results = {"loss"}, .signature = kSigned});
  }
  auto reset() const {
    auto code = [net = net_, optimizer = optimizer_](const Tensor& key) {
      Tensor next = key;
      for (const Variable& p : net.parameters()) {
        p.assign(initial(p.shape(), next));
        next = next + 1;
      }
      for (const Variable& s : optimizer.state()) s.assign(zeros(s.shape(), key));
      return next;
    };
    return keel::function("reset_" + name_, code, {.results = {"next"}, .signature = "key: u64[]"});
  }

 private:
  std::string name_;
  Net net_;
  Optimizer optimizer_;
};

template <class M>
double train(const M& model, const Images& images, const Images& test, int epochs) {
  auto step = model.step();
  auto score = model.score();
  model.reset()(key_of(1));
  std::mt19937 random(1);
  double right = 0;
  for (int epoch = 1; epoch <= epochs; epoch++) {
    std::vector<size_t> order = shuffled(images.size(), random);
    double loss = 0;
    const int64_t steps = images.size() / kBatch;
    for (int64_t s = 0; s < steps; s++) {
      Images batch = images.pick({order.begin() + s * kBatch, order.begin() + (s + 1) * kBatch});
      loss += step(batch.inputs(), batch.targets()).template item<double>();
    }
    if (epoch % 5 != 0 && epoch != epochs) continue;
    right = score(test.inputs(), test.targets()).template item<double>();
    std::cout << model.name() << " epoch " << epoch << ": loss " << loss / static_cast<double>(steps)
              << ", test " << 100 * right << " % right" << std::endl;
  }
  return right;
}

/// The functions of a model as entries of `file`, with test vectors for the deterministic ones without
/// effects.
template <class M>
void add(keel::Module& file, const M& model, const Images& few) {
  Tensor x = few.inputs(), y = few.targets(), key = key_of(1);
  auto predict = model.predict();
  auto score = model.score();
  file.link(predict.concrete(x), "", model.name());
  file.link(score.concrete(x, y), "", "score_" + model.name());
  file.link(model.step().concrete(x, y), "", "train_" + model.name());
  file.link(model.reset().concrete(key), "", "reset_" + model.name());
  file.add_case(model.name(), model.name(), {{x.array()}, {predict(x).array()}}, 1e-4, 1e-4);
  file.add_case("score_" + model.name(), "score_" + model.name(),
                {{x.array(), y.array()}, {score(x, y).array()}}, 1e-4, 1e-4);
}

int run(const std::string& data, const std::string& out, int epochs) {
  Images all = read_images(data);
  if (all.size() < 5 * kBatch)
    throw std::runtime_error(data + ": " + std::to_string(all.size()) + " images are too few");
  std::mt19937 random(2);
  std::vector<size_t> order = shuffled(all.size(), random);
  Images test = all.pick({order.begin(), order.begin() + all.size() / 5});
  Images images = all.pick({order.begin() + all.size() / 5, order.end()});

  Mlp mlp;
  ConvNet conv;
  Model one("mlp", mlp, Adam(mlp.parameters(), 0.003f));
  Model two("conv", conv, Sgd(conv.parameters(), 0.05f, 0.9f));
  const double worst = std::min(train(one, images, test, epochs), train(two, images, test, epochs));

  keel::Module file = keel::join({});
  Images few = all.pick({order.begin(), order.begin() + kBatch});  // from the test set
  add(file, one, few);
  add(file, two, few);
  file.save(out);
  std::cout << "wrote " << out << "\n";
  if (worst >= 0.97) return 0;
  std::cerr << "digits: " << 100 * worst << " % right, expected at least 97\n";
  return 1;
}

}  // namespace
}  // namespace digits

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) return std::cerr << "usage: digits DIGITS.csv OUT.keel [EPOCHS]\n", 2;
  try {
    return digits::run(argv[1], argv[2], argc > 3 ? std::stoi(argv[3]) : 20);
  } catch (const std::exception& e) {
    std::cerr << "digits: " << e.what() << "\n";
    return 1;
  }
}
