// scenarios.cc: each scenario is a list of calls in a lambda; Try stops it at the first error.
#include "tests/faults/scenarios.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "tests/faults/calls.h"
#include "tests/faults/inject.h"

namespace keel::test {
namespace {

const char kModel[] = R"(keel 1
const w: f32[2, 3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]

fn @main(x: f32[b, 2]) -> y: f32[b, 3], s: f32[b, 3] {
  h = matmul(x, w) : f32[b, 3]
  y = relu(h) : f32[b, 3]
  s = softmax(h){axis=-1} : f32[b, 3]
  return y, s
}

entry main = @main (x) -> (y, s)
)";

std::string& Folder() {
  static std::string folder;
  return folder;
}
std::string& File(const char* name) {
  static std::string model, onnx, saved, pair, pair_model, pair_data, absent;
  std::string& s = !std::strcmp(name, "model")        ? model
                   : !std::strcmp(name, "onnx")       ? onnx
                   : !std::strcmp(name, "saved")      ? saved
                   : !std::strcmp(name, "pair")       ? pair
                   : !std::strcmp(name, "pair model") ? pair_model
                   : !std::strcmp(name, "pair data")  ? pair_data
                                                      : absent;
  return s;
}

// A protobuf field of bytes; all lengths here are below 128.
std::string Field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string Field(int number, int value) {
  return std::string{static_cast<char>(number << 3), static_cast<char>(value)};
}
std::string OnnxValue(const std::string& name) {  // f32[2]
  std::string shape = Field(1, Field(1, 2));
  return Field(1, name) + Field(2, Field(1, Field(1, 1) + Field(2, shape)));
}
std::string OnnxModel() {  // y = x + x
  std::string node = Field(1, "x") + Field(1, "x") + Field(2, "y") + Field(4, "Add");
  std::string graph = Field(1, node) + Field(2, "g") + Field(11, OnnxValue("x")) + Field(12, OnnxValue("y"));
  return Field(1, 8) + Field(7, graph) + Field(8, Field(1, "") + Field(2, 13));
}

constexpr float kX[] = {1, 1, 2, -1};
constexpr float kY[] = {5, 7, 9, 0, 0, 0};

void RunModule(Calls& c, keel_context* context, keel_module* module, const char* device) {
  OwnSession session;
  OwnPlan plan;
  OwnArray x;
  if (!c.Try(keel_session_new, module, device, nullptr, 0u, &session)) return;
  if (!c.Try(keel_plan_new, session, kNone, 0u, kNone, 0u, kNone, 0u, &plan)) return;
  if (!MakeArray(c, context, {kX, 4}, &x)) return;
  for (int i = 0; i < 2; i++) {
    keel_array *in[] = {x}, *out[2] = {};
    if (!c.Try(keel_plan_run, plan, in, 1u, out, 2u)) return;
    c.outcome.right = c.outcome.right && Equals(out[0], kY, 6);
    keel_array_free(out[0]);
    keel_array_free(out[1]);
  }
}

template <const char* const* device>
Outcome LoadAndRun(keel_context* context) {
  Calls c;
  OwnModule module;
  if (c.Try(keel_module_load, context, File("model").c_str(), &module))
    RunModule(c, context, module, *device);
  return c.outcome;
}
constexpr const char* kReference = "reference";
constexpr const char* kCpu = "cpu";

Outcome ParseAndPrint(keel_context* context) {
  Calls c;
  OwnModule module;
  OwnText text, info;
  if (c.Try(keel_module_parse, context, kModel, uint64_t{sizeof kModel - 1}, &module) &&
      c.Try(keel_module_report, module, "text", &text) && c.Try(keel_module_report, module, "info", &info)) {
    uint64_t sizes[2] = {};
    keel_text_data(text, &sizes[0]), keel_text_data(info, &sizes[1]);
    c.outcome.right = sizes[0] > 100 && sizes[1] > 100;
  }
  return c.outcome;
}

Outcome BuildByHand(keel_context* context) {
  Calls c;
  OwnModule module;
  keel_graph* graph = nullptr;
  keel_dim b = 0;
  if (!c.Try(keel_module_new, context, &module)) return c.outcome;
  if (!c.Try(keel_module_dim, module, "2*b+1", &b)) return c.outcome;
  if (!c.Try(keel_graph_new, module, "main", nullptr, &graph)) return c.outcome;
  keel_value x = 0, y = 0;
  keel_dim dims[] = {b, 2};
  if (!c.Try(keel_graph_param, graph, "x", KEEL_F32, dims, 2, &x)) return c.outcome;
  keel_value in[] = {x, x};
  if (!c.Try(keel_graph_node, graph, "y", "add", 0u, nullptr, nullptr, 0u, in, 2u, &y, 1u)) return c.outcome;
  if (!c.Try(keel_graph_result, graph, "y", y)) return c.outcome;
  c.Try(keel_module_entry, module, "main", graph);
  return c.outcome;
}

Outcome Differentiate(keel_context* context) {
  Calls c;
  OwnModule module;
  keel_graph *graph = nullptr, *grad = nullptr;
  keel_value ys[2] = {}, w = 0, dw = KEEL_NO_VALUE;
  if (c.Try(keel_module_parse, context, kModel, uint64_t{sizeof kModel - 1}, &module) &&
      c.Try(keel_module_graph, module, nullptr, &graph) &&
      c.Try(keel_graph_new, nullptr, "grad", graph, &grad) &&
      c.Try(keel_graph_find, graph, "y", &ys[0], nullptr) &&
      c.Try(keel_graph_find, graph, "s", &ys[1], nullptr) &&
      c.Try(keel_graph_find, graph, "w", &w, nullptr) &&
      c.Try(keel_graph_gradient, grad, ys, 2u, nullptr, &w, 1u, 0u, &dw))
    c.outcome.right = dw != KEEL_NO_VALUE;
  return c.outcome;
}

Outcome Save(keel_context* context) {
  Calls c;
  OwnModule module;
  if (c.Try(keel_module_parse, context, kModel, uint64_t{sizeof kModel - 1}, &module))
    c.Try(keel_module_save, module, File("saved").c_str());
  return c.outcome;
}

int FilesIn(const char* folder) {
  Spare(1);
  int n = 0;
  if (DIR* all = opendir(folder)) {
    while (const dirent* each = readdir(all)) n += each->d_name[0] != '.';
    closedir(all);
  }
  Spare(-1);
  return n;
}

std::string& WeightsText() {
  static std::string text;
  return text;
}

// The model and its weights, which go to a second file, are both written or none is.
Outcome SavePair(keel_context* context) {
  Calls c;
  OwnModule module;
  unlink(File("pair model").c_str());
  unlink(File("pair data").c_str());
  const std::string& text = WeightsText();
  if (c.Try(keel_module_parse, context, text.c_str(), uint64_t{text.size()}, &module))
    c.Try(keel_module_save, module, File("pair model").c_str());
  const int n = FilesIn(File("pair").c_str());
  if (n == 2 || (n == 0 && c.outcome.rc != KEEL_OK)) return c.outcome;
  c.outcome.rc = KEEL_OK, c.outcome.right = false;  // no error excuses this
  return c.outcome;
}

Outcome Import(keel_context* context) {
  Calls c;
  OwnModule module;
  c.Try(keel_module_import, context, File("onnx").c_str(), nullptr, 0u, nullptr, nullptr, 0u, &module);
  return c.outcome;
}

Outcome Eager(keel_context* context) {
  Calls c;
  OwnArray x, y;
  OwnOp op;
  if (!MakeArray(c, context, {kX, 4}, &x) ||
      !c.Try(keel_op_new, context, "cpu", "add", 0u, nullptr, nullptr, 0u, &op))
    return c.outcome;
  keel_array* in[] = {x, x};
  if (!c.Try(keel_apply, op, in, 2u, &y, 1u)) return c.outcome;
  constexpr float kTwice[] = {2, 2, 4, -2};
  c.outcome.right = Equals(y, kTwice, 4);
  return c.outcome;
}

Outcome Reports(keel_context* context) {
  Calls c;
  for (const char* what : {"plugins", "devices", "ops:cpu"}) {
    OwnText text;
    if (!c.Try(keel_context_report, context, what, &text)) break;
  }
  return c.outcome;
}

Outcome Errors(keel_context* context) {  // failing while failing
  Calls c;
  OwnModule module;
  if (c.Try(keel_module_load, context, File("absent").c_str(), &module)) c.outcome.right = false;
  if (c.outcome.rc == KEEL_NOT_FOUND) c.outcome.rc = KEEL_OK;
  return c.outcome;
}

bool LoadPlugins(Calls& c, keel_context* context) {
  for (const char* path : {KEEL_TEST_PLUGINS "/keel-reference.so", KEEL_TEST_PLUGINS "/keel-cpu.so",
                           KEEL_TEST_PLUGINS "/keel-onnx.so", KEEL_TEST_PLUGINS "/keel-passes.so"})
    if (!c.Try(keel_plugin_load, context, path)) return false;
  return true;
}

Outcome FromNothing(keel_context*) {
  Calls c;
  OwnContext context;
  OwnModule module;
  if (c.Try(keel_context_new, nullptr, 0u, &context) && LoadPlugins(c, context) &&
      c.Try(keel_module_load, context, File("model").c_str(), &module))
    RunModule(c, context, module, "reference");
  return c.outcome;
}

// Runs passes on the module for a device that accepts calls, then runs it.
Outcome Optimize(keel_context* context) {
  Calls c;
  OwnModule module;
  OwnText report;
  if (c.Try(keel_module_load, context, File("model").c_str(), &module) &&
      c.Try(keel_module_optimize, module, nullptr, "cpu", nullptr, 0u, &report)) {
    c.outcome.right = std::strstr(keel_text_data(report, nullptr), "\"epilogue\"") != nullptr;
    RunModule(c, context, module, "cpu");
  }
  return c.outcome;
}

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

const std::vector<Scenario>& Scenarios() {
  static const std::vector<Scenario> all = {{"LoadAndRunReference", LoadAndRun<&kReference>},
                                            {"LoadAndRunCpu", LoadAndRun<&kCpu>},
                                            {"ParseAndPrint", ParseAndPrint},
                                            {"BuildByHand", BuildByHand},
                                            {"Differentiate", Differentiate},
                                            {"Save", Save},
                                            {"SavePair", SavePair},
                                            {"Import", Import},
                                            {"Eager", Eager},
                                            {"Reports", Reports},
                                            {"Errors", Errors},
                                            {"FromNothing", FromNothing},
                                            {"Optimize", Optimize},
                                            {"Dlpack", Dlpack},
                                            {"Device", OnDevice},
                                            {"Placed", PlacedOnDevices}};
  return all;
}

keel_context* NewContext() {
  Calls c;
  keel_context* context = nullptr;
  bool ok = c.Try(keel_context_new, nullptr, 0u, &context) && LoadPlugins(c, context);
  return ok ? context : nullptr;
}

bool Works(keel_context* context) {
  Outcome run = LoadAndRun<&kCpu>(context);
  return run.rc == KEEL_OK && run.right;
}

void MakeFiles() {
  std::string name = "/tmp/keel_faults_XXXXXX";
  if (!mkdtemp(name.data())) std::abort();
  Folder() = name;
  File("model") = name + "/model.keel";
  File("onnx") = name + "/model.onnx";
  File("saved") = name + "/saved.keel";
  File("absent") = name + "/absent.keel";
  File("pair") = name + "/pair";
  File("pair model") = name + "/pair/w.onnx";
  File("pair data") = name + "/pair/w.onnx.data";
  if (mkdir(File("pair").c_str(), 0700) != 0) std::abort();
  setenv("KEEL_ONNX_FILE_BYTES", "0", 1);
  std::string weights = "1.0";
  for (int i = 1; i < 300; i++) weights += ", 1.0";
  WeightsText() = "keel 1\nconst w: f32[300] = [" + weights +
                  "]\nfn @f(x: f32[300]) {\n  y = add(x, w)\n  return y\n}\nentry f = @f (x) -> (y)\n";
  Write(File("onnx"), OnnxModel());
  OwnContext context(NewContext());
  Calls c;
  OwnModule module;
  if (!c.Try(keel_module_parse, context, kModel, uint64_t{sizeof kModel - 1}, &module) ||
      !c.Try(keel_module_save, module, File("model").c_str()))
    std::fprintf(stderr, "%s\n", c.outcome.message), std::abort();
}

}  // namespace keel::test
