// output.cc: see output.h.
#include "cli/data/output.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "cli/data/bytes.h"
#include "cli/exit.h"
#include "cli/show/drawing.h"

namespace cli {
namespace {

struct Extension {
  std::string_view text;
  Form form;
};
constexpr Extension kExtensions[] = {{".keel", Form::kKeel}, {".txt", Form::kText}, {".keelt", Form::kText},
                                     {".dot", Form::kDot},   {".gv", Form::kDot},   {".svg", Form::kSvg},
                                     {".onnx", Form::kOnnx}};

// ".onnx" of "a/b.onnx"; "" if there is none, as in "model", "model-1.0" and ".hidden".
std::string extension_of(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 == name.size()) return "";
  if (!std::isalpha(static_cast<unsigned char>(name[dot + 1]))) return "";
  std::string extension = name.substr(dot);
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

[[noreturn]] void refuse(const std::string& path, const std::string& what, const std::string& hint) {
  throw Fail(kUsage, fmt::format("{}: cannot write {}", path, what), hint);
}

// The format by extension; nullopt without an extension.
std::optional<Form> form_of(const std::string& path, const std::string& hint) {
  std::string extension = extension_of(path);
  if (extension.empty()) return std::nullopt;
  for (const Extension& e : kExtensions)
    if (e.text == extension) return e.form;
  refuse(path, fmt::format("{} files", extension), hint);
}

bool same_file(const std::string& a, const std::string& b) {
  struct stat x, y;
  return stat(a.c_str(), &x) == 0 && stat(b.c_str(), &y) == 0 && S_ISREG(x.st_mode) && x.st_dev == y.st_dev &&
         x.st_ino == y.st_ino;
}

// A Keel file is written to a temporary file and renamed, so stdout needs a temporary file, too.
std::string keel_bytes(const Model& model) {
  std::string folder = (std::filesystem::temp_directory_path() / "keel-XXXXXX").string();
  if (!mkdtemp(folder.data())) throw Fail(kBadFile, "cannot create a folder for a temporary file: " + folder);
  struct Remove {
    const std::string& folder;
    ~Remove() {
      std::error_code ignored;
      std::filesystem::remove_all(folder, ignored);
    }
  } remove{folder};
  model.module.save(folder + "/model.keel");
  return read_file(folder + "/model.keel");
}

void save_onnx(const keel::Context& context, const Args& args, const std::string& path, const Model& model) {
  const Entry& entry = pick_entry(model, args.entry);
  if (model.entries.size() == 1) return model.module.save(path);
  keel::Module alone(context);
  alone.link(model.module, entry.name, entry.name);
  alone.save(path);
}

}  // namespace

Form model_form(const Args& args, const std::string& path) {
  std::optional<Form> form =
      form_of(path, "models are .keel files, text (.txt, .keelt), ONNX (.onnx) or drawings (.dot, .svg)");
  if (args.text && form && *form != Form::kText)
    refuse(path, "text under that name", "text files end in .txt or .keelt");
  return args.text ? Form::kText : form.value_or(Form::kKeel);
}

Form drawing_form(const Args& args, const std::string& path) {
  constexpr const char* kHint =
      "drawings end in .dot or .svg; Graphviz writes other formats: keel graph FILE | dot -Tpng -o FILE.png";
  std::optional<Form> form = form_of(path, kHint);
  if (form == Form::kText && !args.svg) form = Form::kDot;
  if (form && *form != Form::kDot && *form != Form::kSvg) refuse(path, "a drawing under that name", kHint);
  if (!args.svg && !args.dot) return form.value_or(Form::kDot);
  const Form flag = args.svg ? Form::kSvg : Form::kDot;
  if (form && *form != flag)
    refuse(path, args.svg ? "--svg under that name" : "--dot under that name",
           "omit the flag, or change the name");
  return flag;
}

void refuse_other_than_text(const std::string& path) {
  constexpr const char* kHint =
      "text files end in .txt or .keelt; keel convert writes Keel files, keel graph drawings";
  if (form_of(path, kHint).value_or(Form::kText) != Form::kText) refuse(path, "text under that name", kHint);
}

void refuse_other_than_json(const std::string& path) {
  std::string extension = extension_of(path);
  if (!extension.empty() && extension != ".json" && extension != ".trace")
    refuse(path, fmt::format("{} files", extension), "trace files end in .json");
}

const char* form_name(Form form) {
  constexpr const char* kNames[] = {"Keel file", "text", "drawing", "drawing", "ONNX model"};
  return kNames[static_cast<size_t>(form)];
}

void refuse_overwrite(const Args& args, const std::string& path) {
  std::vector<std::string> read{args.file, args.checkpoint};
  for (const std::string& in : args.inputs)
    if (size_t at = in.find('@'); at != std::string::npos) read.push_back(in.substr(at + 1));
  for (std::string& in : read) {
    if (!is_file(in)) in = in.substr(0, in.rfind(':'));  // @in.npz:x
    if (same_file(in, path))
      throw Fail(kUsage,
                 fmt::format("{}{} is read by this command: it would be overwritten", path,
                             in == path ? "" : " is " + in + ", which"),
                 "choose another name");
  }
}

void save_model(const keel::Context& context, const Args& args, const std::string& path, const Model& model) {
  refuse_overwrite(args, path);
  at(Stage::kFile, [&] {
    switch (model_form(args, path)) {
      case Form::kKeel:
        return path == "-" ? write_output(path, keel_bytes(model)) : model.module.save(path);
      case Form::kText:
        return write_output(path, model.module.text());
      case Form::kDot:
        return write_output(path, to_dot(read_graphs(model.module.outline())));
      case Form::kSvg:
        return write_output(path, to_svg(to_dot(read_graphs(model.module.outline()))));
      case Form::kOnnx:
        return save_onnx(context, args, path, model);
    }
  });
}

void write_output(const std::string& path, std::string_view bytes) {
  if (path != "-") return write_file(path, bytes);
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size())
    throw Fail(kBadFile, std::string("cannot write to stdout: ") + std::strerror(errno));
}

}  // namespace cli
