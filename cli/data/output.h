// output.h: output files: the format by extension, protection of inputs, stdout as "-".
#ifndef KEEL_CLI_OUTPUT_H
#define KEEL_CLI_OUTPUT_H
#include <string>
#include <string_view>

#include "cli/data/load.h"

namespace cli {

enum class Form { kKeel, kText, kDot, kSvg };

// The form that a model is written in, by --text and by the name. A name whose extension belongs to another
// format is a usage error that lists what is possible.
Form model_form(const Args& args, const std::string& path);
// The form of a drawing; `wanted` as --dot or --svg say, if they do.
Form drawing_form(const Args& args, const std::string& path);
// A name for text; one for a trace.
void refuse_other_than_text(const std::string& path);
void refuse_other_than_json(const std::string& path);
const char* form_name(Form form);  // "Keel file"

// Refuses a name that is a file which the command reads: the model, a checkpoint, an input's array.
void refuse_overwrite(const Args& args, const std::string& path);

void save_model(const Args& args, const std::string& path, const Model& model);
// To a file, or to stdout if the name is "-".
void write_output(const std::string& path, std::string_view bytes);

}  // namespace cli
#endif
