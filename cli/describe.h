// describe.h: manual pages and completion, made of the declared flags, so that a new subcommand or flag
// appears there by itself.
#ifndef KEEL_CLI_DESCRIBE_H
#define KEEL_CLI_DESCRIBE_H
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cli {

// The manual page in roff of keel(1), or of keel-COMMAND(1) where the command is a subcommand of the app.
std::string man_page(const CLI::App& app, const std::string& command);

// Completions of the last word, a line each: the candidate, a tab, its description. None: the shell completes
// file names.
std::string completions(const CLI::App& app, const std::vector<std::string>& words);

// The text for `keel [COMMAND] --man` and for `keel --complete WORD...` (called by the files in completion/),
// or nothing.
std::optional<std::string> described(const CLI::App& app, const std::string& command, int argc, char** argv);

}  // namespace cli
#endif
