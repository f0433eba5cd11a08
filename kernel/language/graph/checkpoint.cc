#include "kernel/language/graph/checkpoint.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace keel {
namespace {

constexpr std::string_view kPrefix = "checksum/";

// 64-bit FNV-1a.
std::string Checksum(const keel_array& array) {
  uint64_t hash = 0xcbf29ce484222325u;
  auto p = reinterpret_cast<const uint8_t*>(array.data());
  for (uint64_t i = 0; i < array.bytes(); i++) hash = (hash ^ p[i]) * 0x100000001b3u;
  return absl::StrCat(absl::Hex(hash, absl::kZeroPad16));
}

const std::string* FindMetadata(const Module& m, std::string_view key) {
  for (const auto& [k, value] : m.metadata)
    if (k == key) return &value;
  return nullptr;
}

// A copy of one variable's value, independent of the file.
absl::StatusOr<ArrayRef> ReadValue(const Module& m, const NamedVariable& wanted) {
  ASSIGN_OR_RETURN(uint32_t number, m.FindVariable(wanted.name));
  const ModuleVariable& found = m.variables[number];
  std::span<const int64_t> shape = wanted.storage->shape();
  TensorType type{wanted.storage->dtype(), Dims(shape.begin(), shape.end())};
  if (found.type != type)
    return Invalid("variable '", wanted.name, "' is ", Print(type, m.dims), " but the file has ",
                   Print(found.type, m.dims));
  ASSIGN_OR_RETURN(ArrayRef copy, CopyArray(found.storage->Read()->view));
  const std::string* sum = FindMetadata(m, absl::StrCat(kPrefix, wanted.name));
  if (sum && *sum != Checksum(*copy.get()))
    return Invalid("the value of variable '", wanted.name,
                   "' does not match its checksum: the file is damaged");
  return copy;
}

}  // namespace

absl::Status SaveCheckpoint(std::span<const NamedVariable> variables, const std::string& path,
                            std::shared_ptr<Catalogue> catalogue) {
  Module m(std::move(catalogue));
  for (const NamedVariable& v : variables) {
    ASSIGN_OR_RETURN(ArrayRef value, v.storage->ReadOnHost());
    std::string sum = Checksum(*value.get());
    // A snapshot: the value with this checksum is the one written.
    RETURN_IF_ERROR(m.AddVariable(v.name, std::make_shared<Variable>(std::move(value))).status());
    RETURN_IF_ERROR(m.SetMetadata(absl::StrCat(kPrefix, v.name), sum));
  }
  return SaveFile(m, path);
}

absl::Status LoadCheckpoint(std::span<const NamedVariable> variables, const std::string& path,
                            std::shared_ptr<Catalogue> catalogue) {
  ASSIGN_OR_RETURN(std::unique_ptr<Module> m, LoadFile(path, std::move(catalogue)));
  std::vector<ArrayRef> values;
  for (const NamedVariable& v : variables) {
    absl::StatusOr<ArrayRef> value = ReadValue(*m, v);
    if (!value.ok())
      return Error(value.status().code(), "cannot load '", path, "': ", value.status().message());
    values.push_back(*std::move(value));
  }
  for (size_t i = 0; i < values.size(); i++)
    RETURN_IF_ERROR(variables[i].storage->Assign(std::move(values[i])));
  return absl::OkStatus();
}

}  // namespace keel
