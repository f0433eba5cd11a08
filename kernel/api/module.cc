// module.cc: modules (keel.h): files, text, import, test cases.
#include <cstring>

#include "kernel/api/handles.h"
#include "kernel/language/graph/constant.h"
#include "kernel/language/graph/signature.h"
#include "kernel/program/grad/gradient.h"
#include "kernel/runtime/pass/save_as.h"
#include "kernel/runtime/plugin/host.h"

using namespace keel;

namespace {

absl::Status Give(keel_context* c, absl::StatusOr<std::unique_ptr<Module>> made, keel_module** out) {
  RETURN_IF_ERROR(made.status());
  *out = HandleOf(c->state, *std::move(made));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ValueId>> AppendZeroedGradient(Graph& graph, ValueId y,
                                                          std::span<const ValueId> xs) {
  return Gradient(graph, {.ys = {&y, 1}, .seeds = {}, .xs = xs, .zeros = true});
}

// A copy of the bytes with the alignment of the file format.
std::shared_ptr<const void> CopyBytes(const void* bytes, uint64_t size) {
  std::shared_ptr<char> copy(NewBlock(size).release(), [](char* p) { std::free(p); });
  if (copy) std::memcpy(copy.get(), bytes, size);
  return copy;
}

// what: for the error of a symbolic array.
absl::StatusOr<ArrayRef> CopyToHost(std::string_view what, keel_array* array) {
  ASSIGN_OR_RETURN(ArrayRef there, InHostMemory(what, array));
  if (there.get() != array) return there;
  return CopyArray(array->view);
}

absl::Status CopyConstants(const std::string& stem, std::span<keel_array* const> arrays,
                           std::vector<Constant>* out) {
  for (size_t i = 0; i < arrays.size(); i++) {
    ASSIGN_OR_RETURN(ArrayRef copy, CopyToHost("a case's array", arrays[i]));
    out->push_back(ConstantOf(absl::StrCat(stem, i), std::move(copy)));
  }
  return absl::OkStatus();
}

constexpr uint64_t kOutlineBytes = 256;  // an outline omits longer constants

// Constants are hex digits in the text, which is in memory as a whole.
absl::Status CheckTextSize(const Module& module) {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
  uint64_t bytes = 0;
  for (const Constant& c : module.constants) bytes += c.bytes;
  if (bytes <= kMaxBytes) return absl::OkStatus();
  return Annotate(
      Exhausted("the module's constants have ", bytes, " bytes; the limit of the text form is ", kMaxBytes),
      kErrorHint, "save a file instead; `keel inspect` lists its content");
}

absl::Status CheckCount(const char* parameter, const char* what, size_t wanted, uint32_t got) {
  if (wanted == got) return absl::OkStatus();
  return Invalid("keel_module_case: '", parameter, "' is ", got, ", but the case has ", wanted, " ", what);
}

absl::StatusOr<std::vector<ArrayRef>> ArraysOf(const Module& module, const std::vector<uint32_t>& constants) {
  std::vector<ArrayRef> arrays;
  for (uint32_t c : constants) {
    ASSIGN_OR_RETURN(ArrayRef array, ArrayOf(module.constants[c]));
    arrays.push_back(std::move(array));
  }
  return arrays;
}

}  // namespace

keel_rc keel_module_load(keel_context* c, const char* path, keel_module** out, keel_error** err) {
  return Guard(err, "context path out", {c, path, out}, [&]() -> absl::Status {
    TimedBlock block("load", path);
    return Give(c, LoadFile(path, c->state->catalogue), out);
  });
}

keel_rc keel_module_load_bytes(keel_context* c, const void* bytes, uint64_t size, void (*release)(void*),
                               void* arg, keel_module** out, keel_error** err) {
  return Guard(err, "context bytes{size} out", {c, bytes, size, out}, [&]() -> absl::Status {
    auto taken = std::make_shared<CallerObject>(arg);
    std::shared_ptr<const void> owner(taken, bytes);
    if (!release) owner = CopyBytes(bytes, size);
    if (!owner) return Exhausted("no memory for ", size, " bytes");
    RETURN_IF_ERROR(
        Give(c, LoadBytes(static_cast<const uint8_t*>(owner.get()), size, owner, c->state->catalogue), out));
    taken->release = release;
    return absl::OkStatus();
  });
}

keel_rc keel_module_parse(keel_context* c, const char* text, uint64_t size, keel_module** out,
                          keel_error** err) {
  return Guard(err, "context text{size} out", {c, text, size, out}, [&]() -> absl::Status {
    TimedBlock block("parse", "text");
    return Give(c, ParseText({text, size}, c->state->catalogue), out);
  });
}

keel_rc keel_module_import(keel_context* c, const char* path, const keel_kv* options, uint32_t n_options,
                           const char* const* fixed_names, keel_array* const* fixed, uint32_t n_fixed,
                           keel_module** out, keel_error** err) {
  return Guard(
      err, "context path options[n_options] fixed_names[n_fixed]* fixed[n_fixed]* out",
      {c, path, options, n_options, fixed_names, n_fixed, fixed, n_fixed, out}, [&]() -> absl::Status {
        std::vector<ArrayRef> rows;
        std::vector<keel_tensor> values;
        for (uint32_t i = 0; i < n_fixed; i++) {
          ASSIGN_OR_RETURN(ArrayRef copy,
                           CopyToHost(absl::StrCat("the value of \"", fixed_names[i], "\""), fixed[i]));
          values.push_back(copy->view);
          rows.push_back(std::move(copy));
        }
        TimedBlock block("import", path);
        return Give(c,
                    ImportFile(c->state->registry, AppendZeroedGradient, path, {options, n_options},
                               {fixed_names, n_fixed}, values),
                    out);
      });
}

keel_rc keel_module_save(keel_module* m, const char* path, keel_error** err) {
  return GuardModule(m, err, "module path", {m, path},
                     [&](Module& module) { return SaveAs(m->state->context->registry, module, path); });
}

keel_rc keel_module_report(keel_module* m, const char* what, keel_text** out, keel_error** err) {
  return GuardModule(m, err, "module what out", {m, what, out}, [&](Module& module) -> absl::Status {
    const std::string_view wanted = what;
    if (wanted == "text") {
      RETURN_IF_ERROR(CheckTextSize(module));
      for (const ModuleVariable& v : module.variables) RETURN_IF_ERROR(v.storage->ReadOnHost().status());
      return Give(PrintText(module, UINT64_MAX), out);
    }
    if (wanted == "outline") return Give(PrintText(module, kOutlineBytes), out);
    if (wanted == "info") return Give(ModuleInfo(module), out);
    if (wanted == "signatures") return Give(PrintSignatures(module), out);
    return UnknownChoice("keel_module_report", "what", wanted, "text, outline, info, signatures");
  });
}

keel_rc keel_module_metadata(keel_module* m, const char* key, const char* value, keel_error** err) {
  return GuardModule(m, err, "module key value", {m, key, value},
                     [&](Module& module) { return module.SetMetadata(key, value); });
}

keel_rc keel_module_add_case(keel_module* m, const char* name, const char* entry, keel_array* const* in,
                             uint32_t n_in, keel_array* const* expected, uint32_t n_expected, double rtol,
                             double atol, keel_error** err) {
  return GuardModule(
      m, err, "module name in[n_in]* expected[n_expected]*", {m, name, in, n_in, expected, n_expected},
      [&](Module& module) -> absl::Status {
        std::vector<Constant> inputs, results;
        RETURN_IF_ERROR(CopyConstants(absl::StrCat("case.", name, ".in"), {in, n_in}, &inputs));
        RETURN_IF_ERROR(CopyConstants(absl::StrCat("case.", name, ".out"), {expected, n_expected}, &results));
        return module.AddCase({name, entry ? entry : "", {}, {}, rtol, atol}, std::move(inputs),
                              std::move(results));
      });
}

keel_rc keel_module_case(keel_module* m, uint32_t index, keel_array** in, uint32_t n_in,
                         keel_array** expected, uint32_t n_expected, keel_error** err) {
  return GuardModule(
      m, err, "module in[n_in] expected[n_expected]", {m, in, n_in, expected, n_expected},
      [&](Module& module) -> absl::Status {
        if (index >= module.cases.size())
          return NotFound("keel_module_case: 'index' is ", index, ", but there are ", module.cases.size(),
                          " cases");
        const Case& found = module.cases[index];
        RETURN_IF_ERROR(CheckCount("n_in", "inputs", found.inputs.size(), n_in));
        RETURN_IF_ERROR(CheckCount("n_expected", "expected results", found.expected.size(), n_expected));
        ASSIGN_OR_RETURN(std::vector<ArrayRef> inputs, ArraysOf(module, found.inputs));
        ASSIGN_OR_RETURN(std::vector<ArrayRef> results, ArraysOf(module, found.expected));
        for (uint32_t i = 0; i < n_in; i++) in[i] = inputs[i].Detach();
        for (uint32_t i = 0; i < n_expected; i++) expected[i] = results[i].Detach();
        return absl::OkStatus();
      });
}

void keel_module_free(keel_module* m) { delete m; }
