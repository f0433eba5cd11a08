// demo.cc: `keel demo`: runs the shipped file (two small networks that classify handwritten digits, written
// by sdk/examples/digits) on every device found, and retrains one of them briefly. Needs neither the network
// nor the source of the program that wrote the file.
#include <fmt/core.h>

#include <filesystem>

#include "cli/command.h"
#include "cli/commands/verify.h"
#include "cli/data/load.h"
#include "cli/exit.h"
#include "cli/show/print.h"

namespace cli {
namespace {

constexpr const char* kShipped = "share/keel/digits.keel";  // relative to the parent folder of the command
constexpr int kSteps = 60, kShown = 20;

std::string shipped_file() {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::filesystem::path file = self.parent_path().parent_path() / kShipped;
  if (error || !std::filesystem::exists(file, error))
    throw Fail(kBadFile, "the demo's file " + file.string() + " does not exist",
               "reinstall the command, or verify another file: keel verify FILE");
  return file.string();
}

keel::Plan plan_of(const Model& model, const std::string& device, const Args& args,
                   const std::string& entry) {
  return keel::Session(model.module, device, session_options(args, entry)).prepare();
}
float number(const keel::Array& array) { return array.values<float>()[0]; }

// The test case of that name has the images and the digits.
keel::Case images_of(const Model& model, const std::string& name) {
  for (uint32_t i = 0; i < model.cases.size(); i++)
    if (model.cases[i].name == name) return model.module.get_case(i, 2, 1);
  throw Fail(kBadFile, "no test case \"" + name + "\" in the demo's file");
}

struct Trained {
  std::string device;
  std::vector<float> losses;
  float before = 0, after = 0;  // fraction of correct digits
};

// Starts from random weights drawn by the key, so earlier training has no effect.
Trained train(const Model& model, const std::string& device, const Args& args, const keel::Array& key,
              const keel::Case& images) {
  keel::Plan reset = plan_of(model, device, args, "reset_mlp"),
             step = plan_of(model, device, args, "train_mlp"),
             score = plan_of(model, device, args, "score_mlp");
  reset.run(std::vector{key});
  Trained out{device, {}, number(score.run(images.in)[0])};
  for (int i = 0; i < kSteps; i++) out.losses.push_back(number(step.run(images.in)[0]));
  out.after = number(score.run(images.in)[0]);
  return out;
}

void print(const Trained& t, int64_t images) {
  fmt::print("retraining the first network on {}, from random weights:", t.device);
  for (size_t i = 0; i < t.losses.size(); i += kShown) fmt::print(" loss {:.3f},", t.losses[i]);
  fmt::print(" {:.3f} after {} steps; {:.0f} of {} images correct, {:.0f} before\n", t.losses.back(),
             t.losses.size(), t.after * static_cast<float>(images), images,
             t.before * static_cast<float>(images));
}

int demo_command(const Args& args) {
  const std::string file = shipped_file();
  keel::Context context = open_context(args);
  const std::vector<std::string> devices = devices_named(context, args.device.empty() ? "all" : args.device);
  Model model = open_model(context, file, args);
  if (!args.json) fmt::print("{}: two networks that read handwritten digits\n", file);
  Verified verified = verify_cases(context, model, devices, args);
  const keel::Case images = images_of(model, "score_mlp");
  const keel::Array key = keel::Array::of<uint64_t>(context, {}, std::vector<uint64_t>{7});
  Json json = Json::array();
  for (const std::string& device : devices) {
    Trained t = train(model, device, args, key, images);
    verified.ok = verified.ok && t.after > t.before;
    json.push_back({{"device", device}, {"losses", t.losses}, {"before", t.before}, {"after", t.after}});
    if (!args.json) print(t, images.in[0].shape()[0]);
  }
  if (args.json)
    print_json(
        {{"schema", "keel.demo/1"}, {"ok", verified.ok}, {"cases", verified.cases}, {"training", json}});
  return verified.ok ? kOk : kCheckFailed;
}

const Command kDemo("demo", "Run and train two small networks that come with Keel, on every device",
                    {device_flag}, demo_command);

}  // namespace
}  // namespace cli
