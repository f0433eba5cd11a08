// misuse_modules_test.cc: invalid graphs, texts, files and plugin tables are refused with an error that names
// them.
#include "misuse.h"

namespace {

using namespace misuse;

class MisusedModules : public Misuse {};

TEST_F(MisusedModules, ParametersOfAGraph) {
  keel_value v;
  auto expect = [&](const std::string& name, std::vector<keel_dim> dims, const char* words) {
    ExpectInvalid(keel_graph_param(graph_, name.c_str(), KEEL_F32, dims.data(),
                                   static_cast<int32_t>(dims.size()), &v, &error_),
                  words);
  };
  expect("p", {-1}, "a dim must be from 0 to 1099511627776");
  expect("p", {INT64_MIN, INT64_MIN}, "'p' has ");
  expect("p", {KEEL_DIM_HANDLES - 5}, "'p' has a dim that is a handle of another module");
  expect("p", std::vector<keel_dim>(100, 1), "'ndim' is 100; at least 0 and at most 8");
  expect(std::string(4999, 'a'), {}, "has 4999 bytes; the limit is 1024");
  expect("\xff\xfe", {}, "is not UTF-8");
}

TEST_F(MisusedModules, NodesAndValuesOfAGraph) {
  keel_value x = 0, out[5] = {};
  Ok(keel_graph_param(graph_, "p", KEEL_F32, nullptr, 0, &x, &error_));
  ExpectInvalid(keel_graph_node(graph_, nullptr, "neg", 0, nullptr, nullptr, 0, &x, 1, out, 5, &error_),
                "1 results here, but 'out' has room for 5");
  const char* none = "of graph \"main\"";
  ExpectError(keel_graph_result(graph_, "z", 12345, &error_), KEEL_NOT_FOUND, none);
  ExpectError(keel_graph_value_at(graph_, 999, nullptr, nullptr, nullptr, nullptr, nullptr, &error_),
              KEEL_NOT_FOUND, none);
  keel_text* name = nullptr;
  ExpectError(keel_graph_value_at(graph_, 55, &name, nullptr, nullptr, nullptr, nullptr, &error_),
              KEEL_NOT_FOUND, none);
  ExpectError(keel_graph_node_at(graph_, 55, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &error_),
              KEEL_NOT_FOUND, "graph 'main' has 2 nodes; node 55 does not exist");
  Ok(keel_graph_value_at(graph_, x, nullptr, nullptr, nullptr, nullptr, nullptr, &error_));
}

TEST_F(MisusedModules, SizesRulesAndEntriesAsText) {
  keel_dim dim;
  ExpectInvalid(keel_module_dim(other_, "1/0", &dim, &error_),
                "'1/0': expected an operator or the end at column 2");
  ExpectInvalid(keel_module_dim(other_, "b+++", &dim, &error_), "at column 3");
  std::string nested(200'000, '(');
  ExpectError(keel_module_dim(other_, nested.c_str(), &dim, &error_), KEEL_OOM, "200000 bytes is too long");
  ExpectInvalid(keel_graph_rule(graph_, "garbage ++", &error_), "rule \"garbage ++\": expected");
  ExpectInvalid(keel_module_entry(other_, "a\nb\"", graph_, &error_), "the control byte 10");
  ExpectInvalid(keel_module_entry(module_, "other", graph_, &error_), "the graph belongs to another module");
}

TEST_F(MisusedModules, TextsAndBytesThatAreNoModule) {
  keel_module* m = nullptr;
  std::string nested(200'000, '(');
  ExpectInvalid(keel_module_parse(context_, nested.data(), nested.size(), &m, &error_),
                "expected 'keel', got '('");
  ExpectInvalid(keel_module_parse(context_, "", 0, &m, &error_), "got the end of the text");
  ExpectInvalid(keel_module_load_bytes(context_, "", 0, nullptr, nullptr, &m, &error_), "it is empty");
  ExpectInvalid(keel_module_load_bytes(context_, "abc", 3, nullptr, nullptr, &m, &error_),
                "this is not a Keel file");
}

TEST_F(MisusedModules, CasesEntriesAndLinks) {
  ExpectInvalid(keel_module_add_case(module_, "c", nullptr, nullptr, 0, nullptr, 0, 0, 0, &error_),
                "case 'c': inputs: 0 given, but graph 'main' has 1");
  Ok(keel_module_add_case(module_, "c", nullptr, &array_, 1, &array_, 1, 0, 0, &error_));
  keel_array *in[2] = {}, *expected[2] = {};
  ExpectInvalid(keel_module_case(module_, 0, in, 2, expected, 1, &error_),
                "keel_module_case: 'n_in' is 2, but the case has 1 inputs");
  ExpectInvalid(keel_module_case(module_, 0, in, 1, expected, 2, &error_),
                "keel_module_case: 'n_expected' is 2, but the case has 1 expected results");
  EXPECT_EQ(in[0], nullptr) << "a call that failed gave an array";
  Ok(keel_module_case(module_, 0, in, 1, expected, 1, &error_));
  keel_array_free(in[0]);
  keel_array_free(expected[0]);
  ExpectInvalid(keel_module_link(module_, module_, nullptr, nullptr, &error_),
                "cannot be linked into itself");
  ExpectError(keel_module_optimize(module_, "zz", "reference", nullptr, 0, nullptr, &error_), KEEL_NOT_FOUND,
              "no entry 'zz'; it has 'main'");
  ExpectError(keel_module_optimize(module_, nullptr, "zz", nullptr, 0, nullptr, &error_), KEEL_NOT_FOUND,
              "no device \"zz\"");
}

TEST_F(MisusedModules, AModuleMayReplaceTheFileThatItIsMappedFrom) {
  Ok(keel_module_save(module_, file_.c_str(), &error_));
  for (int again = 0; again < 2; again++) {
    keel_module* m = nullptr;
    Ok(keel_module_load(context_, file_.c_str(), &m, &error_));
    Ok(keel_module_save(m, file_.c_str(), &error_));
    keel_module_free(m);
  }
  ExpectError(keel_module_save(module_, "", &error_), KEEL_NOT_FOUND, "cannot save to ''");
  ExpectError(keel_module_save(module_, folder_.c_str(), &error_), KEEL_PRECONDITION,
              "is not a regular file");
}

keel_rc RunNothing(const keel_call*) { return KEEL_OK; }

TEST_F(MisusedModules, RowsAndOpsOfAPlugin) {
  keel_impl impl = {};
  keel_plugin p = {};
  p.struct_size = sizeof p;
  p.draft = KEEL_ABI_DRAFT;
  p.name = "table";
  auto expect = [&](const char* words) { ExpectInvalid(keel_plugin_add(context_, &p, &error_), words); };
  p.ops = "op garbage (((";
  expect("table:1:1: expected 'opset'");
  p.ops = nullptr;
  keel_device device = {};
  device.struct_size = sizeof device;
  device.flags = KEEL_DEVICE_HOST_MEMORY;
  p.device = &device;
  p.impls = &impl, p.n_impls = 1, p.impl_stride = sizeof impl;
  expect("impl 0 names no op");
  impl.op = "add", impl.ver_min = impl.ver_max = 1;
  expect("impl 0 (\"add\") has neither run nor prepare");
  impl.run = RunNothing, impl.types = "garbage===";
  expect("garbage");
}

}  // namespace
