// flags.h: declaration of flags, and groups of flags that several subcommands share.
#ifndef KEEL_CLI_FLAGS_H
#define KEEL_CLI_FLAGS_H
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cli {

struct Args;

// Names are "-o,--output" for a flag, "file" for an argument; `to` holds the default and receives the value.
// `type` replaces TEXT in --help.
class Flags {
 public:
  explicit Flags(CLI::App& app) : app_(app) {}

  Flags& add(const char* names, bool& to, const char* about);
  Flags& add(const char* names, std::string& to, const char* about, const char* type = nullptr);
  Flags& add(const char* names, std::optional<std::string>& to, const char* about, const char* type);
  // A repeatable flag, or all remaining arguments.
  Flags& add(const char* names, std::vector<std::string>& to, const char* about, const char* type = nullptr);
  Flags& add(const char* names, std::optional<double>& to, const char* about);
  Flags& add(const char* names, int& to, const char* about, int low, int high);
  Flags& add(const char* names, uint32_t& to, const char* about, uint32_t low, uint32_t high,
             const char* type = nullptr);
  // The flag or argument declared last ...
  Flags& required();
  Flags& excludes(const char* flag);
  Flags& one_of(std::vector<std::string> values);

 private:
  CLI::App& app_;
  CLI::Option* last_ = nullptr;
};

using DeclareFlags = void (*)(Flags&, Args&);

void global_flags(Flags&, Args&);  // of every subcommand

void file_argument(Flags&, Args&);
void input_flags(Flags&, Args&);  // -i, --dim, --shape, --length, how inputs are converted
void output_flag(Flags&, Args&);
void device_flag(Flags&, Args&);  // -d, and cpu_flags
void cpu_flags(Flags&, Args&);    // --isa, --tune
void isa_flag(Flags&, Args&);
void placing_flags(Flags&, Args&);  // --place, --fallback
void entry_flag(Flags&, Args&);
void tolerance_flags(Flags&, Args&);
void pass_flags(Flags&, Args&);   // --level, --passes
void count_flags(Flags&, Args&);  // how many runs are measured
void time_limit_flag(Flags&, Args&);
void text_flag(Flags&, Args&);

}  // namespace cli
#endif
