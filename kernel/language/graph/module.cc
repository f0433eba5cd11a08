// module.cc: the contents of a module: constants, variables, graphs, entries, test cases, metadata.

#include <algorithm>
#include <cstring>

#include "kernel/base/free_name.h"
#include "kernel/language/graph/graph.h"
#include "kernel/language/graph/module_index.h"
#include "kernel/language/graph/names.h"
#include "kernel/language/graph/types.h"

namespace keel {
namespace {

constexpr size_t kMaxGraphs = 65536, kMaxEntries = 65536, kMaxMetadata = 65536, kMaxMetadataBytes = 16 << 20;

absl::Status AlreadyExists(std::string_view what, std::string_view name) {
  return Error(absl::StatusCode::kAlreadyExists, "the module already has ", what, " '", name, "'");
}

absl::Status CheckConstant(const Constant& c, const DimTable& dims) {
  std::string what = c.name.empty() ? "an unnamed constant" : absl::StrCat("constant '", c.name, "'");
  if (!c.name.empty()) RETURN_IF_ERROR(CheckName("a constant", c.name));
  RETURN_IF_ERROR(CheckType(what, c.type, dims));
  for (Dim d : c.type.dims)
    if (IsSymbolic(d))
      return Invalid(what, " has type ", Print(c.type, dims), ": a constant's dims are numbers");
  ASSIGN_OR_RETURN(uint64_t bytes, BytesOf(what, c.type));
  if (bytes != c.bytes)
    return Invalid(what, " of type ", Print(c.type, dims), " takes ", bytes, " bytes but has ", c.bytes);
  if (bytes > 0 && !c.data) return Invalid(what, " has no data");
  if (reinterpret_cast<uintptr_t>(c.data) % SizeOf(c.type.dtype) != 0)
    return Invalid(what, " is not aligned to the ", SizeOf(c.type.dtype), " bytes of ", Name(c.type.dtype));
  return absl::OkStatus();
}

// "; it has 'a', 'b'": the first names of a list.
template <typename T>
std::string NamesOf(const std::vector<T>& list) {
  std::string names;
  for (size_t i = 0; i < list.size() && i < 20; i++)
    absl::StrAppend(&names, i ? "', '" : "; it has '", list[i].name);
  return names.empty() ? "; it has none" : names + "'";
}

std::pair<uint8_t, uint64_t> ScalarKey(const Constant& c) {
  uint64_t bits = 0;
  std::memcpy(&bits, c.data, c.bytes);
  return {static_cast<uint8_t>(c.type.dtype), bits};
}

using Types = std::vector<const TensorType*>;

absl::StatusOr<Types> TypesOf(const Module& m, std::string_view what, const std::vector<uint32_t>& numbers) {
  Types types;
  for (uint32_t number : numbers) {
    if (number >= m.constants.size())
      return Invalid(what, " ", types.size(), " is constant ", number, ", which does not exist");
    types.push_back(&m.constants[number].type);
  }
  return types;
}

Types TypesOf(const std::vector<Constant>& constants) {
  Types types;
  for (const Constant& c : constants) types.push_back(&c.type);
  return types;
}

// Compares the types of a case's constants with the types of the entry's values.
absl::Status CheckFit(const Module& m, std::string_view what, const Types& types, const Graph& g,
                      const std::vector<ValueId>& values) {
  if (types.size() != values.size())
    return Invalid(what, ": ", types.size(), " given, but graph '", g.name, "' has ", values.size());
  for (size_t i = 0; i < types.size(); i++) {
    const TensorType &got = *types[i], &want = g.values[values[i]].type;
    bool fits = got.dtype == want.dtype && got.dims.size() == want.dims.size();
    for (size_t d = 0; fits && d < got.dims.size(); d++)
      fits = IsSymbolic(want.dims[d]) || got.dims[d] == want.dims[d];
    if (!fits)
      return Invalid(what, " ", i, " ('", g.ValueName(values[i]), "') is ", Print(got, m.dims), "; expected ",
                     Print(want, m.dims));
  }
  return absl::OkStatus();
}

std::string Inputs(const Case& c) { return absl::StrCat("case '", c.name, "': inputs"); }
std::string Expected(const Case& c) { return absl::StrCat("case '", c.name, "': expected results"); }

// Checks everything except that the constants exist; fills in the entry's name.
absl::Status CheckCase(const Module& m, const Types& inputs, const Types& expected, Case* c) {
  RETURN_IF_ERROR(CheckName("a case", c->name));
  for (const Case& other : m.cases)
    if (other.name == c->name) return AlreadyExists("a case", c->name);
  if (m.cases.size() >= 4096) return Exhausted("the module has 4096 cases, the limit");
  ASSIGN_OR_RETURN(const Entry* entry, m.FindEntry(c->entry));
  c->entry = entry->name;
  const Graph& g = *m.graphs[entry->graph];
  RETURN_IF_ERROR(CheckFit(m, Inputs(*c), inputs, g, g.params));
  RETURN_IF_ERROR(CheckFit(m, Expected(*c), expected, g, g.results));
  if (c->rtol >= 0 && c->atol >= 0) return absl::OkStatus();
  return Invalid("case '", c->name, "': tolerances must not be negative or NaN");
}

absl::Status AddAll(Module& m, std::vector<Constant> constants, std::vector<uint32_t>* numbers) {
  numbers->clear();
  for (Constant& c : constants) {
    ASSIGN_OR_RETURN(uint32_t number, m.AddConstant(std::move(c)));
    numbers->push_back(number);
  }
  return absl::OkStatus();
}

}  // namespace

Module::Module(std::shared_ptr<Catalogue> ops)
    : catalogue(std::move(ops)), index(std::make_unique<ModuleIndex>()) {
  index->graph_types = [this](int64_t graph) { return BodyTypes(graph); };
  index->var_types = [this](int64_t variable) { return VariableType(variable); };
}
Module::~Module() = default;

absl::StatusOr<uint32_t> Module::AddConstant(Constant c, bool unshared) {
  RETURN_IF_ERROR(CheckConstant(c, dims));
  auto number = static_cast<uint32_t>(constants.size());
  if (number >= 4 * kMaxNodes) return Exhausted("the module has ", 4 * kMaxNodes, " constants, the limit");
  if (c.name.empty() && c.type.dims.empty() && !unshared) {
    auto [it, added] = index->scalars.emplace(ScalarKey(c), number);
    if (!added) return it->second;
  } else if (c.name.empty()) {
    do c.name = absl::StrCat("c", index->fresh++);
    while (index->constants.contains(c.name));
  }
  if (!c.name.empty() && !index->constants.emplace(c.name, number).second)
    return AlreadyExists("a constant", c.name);
  constants.push_back(std::move(c));
  return number;
}

void Module::DropConstants(size_t first) noexcept {
  for (; constants.size() > first; constants.pop_back()) {
    const Constant& c = constants.back();
    if (c.name.empty())
      index->scalars.erase(ScalarKey(c));
    else
      index->constants.erase(c.name);
  }
}

absl::StatusOr<uint32_t> Module::FindConstant(std::string_view name) const {
  auto it = index->constants.find(name);
  if (it == index->constants.end()) return NotFound("the module has no constant '", name, "'");
  return it->second;
}

absl::StatusOr<uint32_t> Module::AddVariable(std::string_view name, std::shared_ptr<Variable> storage) {
  RETURN_IF_ERROR(CheckName("a variable", name));
  auto number = static_cast<uint32_t>(variables.size());
  if (number >= kMaxVariables) return Exhausted("the module has ", kMaxVariables, " variables, the limit");
  auto [it, added] = index->variables.emplace(std::string(name), number);
  if (!added && variables[it->second].storage == storage) return it->second;
  if (!added) return AlreadyExists("a variable", name);
  std::span<const int64_t> shape = storage->shape();
  variables.push_back(
      {std::string(name), {storage->dtype(), Dims(shape.begin(), shape.end())}, std::move(storage)});
  return number;
}

absl::StatusOr<uint32_t> Module::FindVariable(std::string_view name) const {
  auto it = index->variables.find(name);
  if (it != index->variables.end()) return it->second;
  return NotFound("the module has no variable '", name, "'", NamesOf(variables));
}

absl::StatusOr<TensorType> Module::VariableType(int64_t number) const {
  if (number >= 0 && static_cast<size_t>(number) < variables.size())
    return variables[static_cast<size_t>(number)].type;
  return Annotate(NotFound("it names variable ", number, ", but the module has ", variables.size()),
                  kErrorHint, "add the variable to the module before nodes that use it");
}

absl::StatusOr<Graph*> Module::AddGraph(std::string_view name) {
  RETURN_IF_ERROR(CheckName("a graph", name));
  if (graphs.size() >= kMaxGraphs) return Exhausted("the module has ", kMaxGraphs, " graphs, the limit");
  if (!index->graphs.emplace(std::string(name), graphs.size()).second) return AlreadyExists("a graph", name);
  graphs.push_back(std::make_unique<Graph>());
  graphs.back()->module = this;
  graphs.back()->name = std::string(name);
  return graphs.back().get();
}

absl::StatusOr<Graph*> Module::AddFreshGraph(std::string_view name, std::string_view between) {
  return AddGraph(FreeName(
      name, [&](const std::string& n) { return index->graphs.contains(n); }, between));
}

absl::StatusOr<uint32_t> Module::GraphNumber(std::string_view name) const {
  auto it = index->graphs.find(name);
  if (it == index->graphs.end()) return NotFound("the module has no graph '", name, "'");
  return it->second;
}

absl::StatusOr<Graph*> Module::FindGraph(std::string_view name) const {
  ASSIGN_OR_RETURN(uint32_t number, GraphNumber(name));
  return graphs[number].get();
}

absl::Status Module::AddEntry(std::string_view name, const Graph* graph) {
  RETURN_IF_ERROR(CheckName("an entry", name));
  auto it = index->graphs.find(graph->name);
  if (graph->module != this || it == index->graphs.end())
    return Invalid("entry '", name, "' names graph '", graph->name, "' of another module");
  if (entries.size() >= kMaxEntries) return Exhausted("the module has ", kMaxEntries, " entries, the limit");
  if (!index->entries.emplace(std::string(name), entries.size()).second)
    return AlreadyExists("an entry", name);
  entries.push_back({std::string(name), it->second});
  return absl::OkStatus();
}

absl::StatusOr<const Entry*> Module::FindEntry(std::string_view name) const {
  if (name.empty() && entries.size() == 1) return entries.data();
  if (name.empty())
    return NotFound("the module does not have exactly one entry, so the entry must be named",
                    NamesOf(entries));
  auto it = index->entries.find(name);
  if (it == index->entries.end()) return NotFound("the module has no entry '", name, "'", NamesOf(entries));
  return &entries[it->second];
}

namespace {

// 1 + the index of the name, which is added if new; 0: the list is full.
uint32_t FindOrAdd(std::vector<std::string>& names, std::string_view name, size_t most) {
  auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end() && names.size() >= most) return 0;
  if (it == names.end()) it = names.emplace(it, name);
  return static_cast<uint32_t>(it - names.begin()) + 1;
}

}  // namespace

absl::StatusOr<uint32_t> Module::DeviceScope(std::string_view name) {
  constexpr size_t kMaxDevices = 256;
  if (name.empty()) return 0;
  RETURN_IF_ERROR(CheckName("a device scope", name));
  uint32_t number = FindOrAdd(devices, name, kMaxDevices);
  if (!number) return Exhausted("the module has ", kMaxDevices, " device scopes, the limit");
  return number;
}

uint32_t Module::Source(std::string_view file, uint32_t line) {
  constexpr size_t kMax = (size_t{1} << (32 - Origin::kLineBits)) - 1;
  if (line >> Origin::kLineBits || !CheckName("a file", file).ok()) return 0;
  uint32_t number = FindOrAdd(files, file, kMax);
  return number ? number << Origin::kLineBits | line : 0;
}

std::pair<std::string_view, uint32_t> Module::SourceOf(const Origin& origin) const {
  if (!origin.source) return {};
  constexpr uint32_t kLine = (uint32_t{1} << Origin::kLineBits) - 1;
  return {files[(origin.source >> Origin::kLineBits) - 1], origin.source & kLine};
}

std::string Module::SourceText(const Origin& origin) const {
  auto [file, line] = SourceOf(origin);
  return line ? absl::StrCat(file, ":", line) : "";
}

absl::Status Module::SetMetadata(std::string_view key, std::string_view value) {
  RETURN_IF_ERROR(CheckName("metadata", key));
  if (value.size() > kMaxMetadataBytes || !IsUtf8(value))
    return Invalid("metadata '", key, "' must be UTF-8 of at most ", kMaxMetadataBytes, " bytes, got ",
                   value.size());
  auto before = [](const auto& pair, std::string_view k) { return pair.first < k; };
  auto it = std::lower_bound(metadata.begin(), metadata.end(), key, before);
  if (it != metadata.end() && it->first == key) {
    it->second = std::string(value);
  } else {
    if (metadata.size() >= kMaxMetadata)
      return Exhausted("the module has ", kMaxMetadata, " metadata keys, the limit");
    metadata.emplace(it, std::string(key), std::string(value));
  }
  return absl::OkStatus();
}

absl::Status Module::AddCase(Case c) {
  ASSIGN_OR_RETURN(Types inputs, TypesOf(*this, Inputs(c), c.inputs));
  ASSIGN_OR_RETURN(Types expected, TypesOf(*this, Expected(c), c.expected));
  RETURN_IF_ERROR(CheckCase(*this, inputs, expected, &c));
  cases.push_back(std::move(c));
  return absl::OkStatus();
}

absl::Status Module::AddCase(Case c, std::vector<Constant> inputs, std::vector<Constant> expected) {
  RETURN_IF_ERROR(CheckCase(*this, TypesOf(inputs), TypesOf(expected), &c));
  RETURN_IF_ERROR(AddAll(*this, std::move(inputs), &c.inputs));
  RETURN_IF_ERROR(AddAll(*this, std::move(expected), &c.expected));
  cases.push_back(std::move(c));
  return absl::OkStatus();
}

}  // namespace keel
