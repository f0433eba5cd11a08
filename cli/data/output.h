// output.h: output files: the format by extension, protection of inputs, stdout as "-".
#ifndef KEEL_CLI_OUTPUT_H
#define KEEL_CLI_OUTPUT_H
#include <string>
#include <string_view>

#include "cli/data/load.h"

namespace cli {

enum class Form { kKeel, kText, kDot, kSvg, kOnnx };

// The format of a model, by --text and the file name. An extension of another format is a usage error that
// lists the valid ones.
Form model_form(const Args& args, const std::string& path);
// The format of a drawing; `wanted`: from --dot or --svg, if given.
Form drawing_form(const Args& args, const std::string& path);
// Checks the name of a text file; of a trace.
void refuse_other_than_text(const std::string& path);
void refuse_other_than_json(const std::string& path);
const char* form_name(Form form);  // "Keel file"

// Refuses to overwrite a file that the command reads: the model, a checkpoint, an input array.
void refuse_overwrite(const Args& args, const std::string& path);

// ONNX takes one entry: that of --entry, or the only one.
void save_model(const keel::Context& context, const Args& args, const std::string& path, const Model& model);
// To a file, or to stdout if the name is "-".
void write_output(const std::string& path, std::string_view bytes);

}  // namespace cli
#endif
