// helpers.h: shared by the tests of graphs: the catalogue, parsing of valid text, sample files.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <initializer_list>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "kernel/language/graph/graph.h"
#include "tests/kernel/verify.h"

namespace keel::test {

inline std::string ReadWhole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// The core's ops and one plugin op.
inline std::shared_ptr<Catalogue> Ops() {
  static auto ops = [] {
    auto made = std::make_shared<Catalogue>();
    EXPECT_TRUE(made->AddText(ReadWhole(std::string(KEEL_TEST_DATA) + "/foreign.ops"), "foreign.ops").ok());
    return made;
  }();
  return ops;
}

inline std::unique_ptr<Module> Parse(std::string_view text) {
  auto module = ParseText(text, Ops());
  EXPECT_TRUE(module.ok()) << module.status() << "\n" << text;
  return module.ok() ? std::move(*module) : std::make_unique<Module>(Ops());
}

// Small modules that together use every field, attribute kind and dtype of the format.
inline const std::vector<std::string>& SampleNames() {
  static const std::vector<std::string> names = {"mlp",  "attrs",  "literals", "cases",  "dtypes",
                                                 "dims", "floats", "call",     "scopes", "control"};
  return names;
}
inline std::string SampleText(const std::string& name) {
  return ReadWhole(std::string(KEEL_TEST_DATA) + "/" + name + ".keelt");
}

inline TensorType F32(std::initializer_list<Dim> dims) {
  TensorType type;
  type.dtype = DType::kF32;
  for (Dim d : dims) type.dims.push_back(d);
  return type;
}

inline Attr BoolAttr(std::string name, bool v) {
  Attr a{std::move(name), {}};
  a.value.kind = KEEL_ATTR_BOOL;
  a.value.i = v;
  return a;
}
inline Attr ListAttr(std::string name, int32_t kind, std::vector<int64_t> list) {
  Attr a{std::move(name), {}};
  a.value.kind = kind;
  a.value.list = std::move(list);
  return a;
}

#define EXPECT_ERROR(status, part)                                   \
  do {                                                               \
    absl::Status got_ = (status);                                    \
    EXPECT_FALSE(got_.ok());                                         \
    EXPECT_NE(got_.message().find(part), std::string::npos) << got_; \
  } while (0)

}  // namespace keel::test
