// exit.h: exit codes, failures of the command, and the exit code of each libkeel error.
#ifndef KEEL_CLI_EXIT_H
#define KEEL_CLI_EXIT_H
#include <exception>
#include <keel/session.hpp>
#include <string>

namespace cli {

enum Exit {
  kOk = 0,
  kCheckFailed = 1,  // compare, verify, --watch found something
  kUsage = 2,
  kBadFile = 3,
  kDevice = 4,  // a plugin or a device
  kTyped = 5,   // shape, dtype, op, value out of range
  kLimit = 6,   // memory, time
  kInternal = 70,
};

// A failure with its exit code. `where` names node, op or plugin; it may be empty.
struct Fail : std::exception {
  Fail(Exit exit_code, std::string text, std::string how_to_mend = "", std::string place = "")
      : code(exit_code), message(std::move(text)), hint(std::move(how_to_mend)), where(std::move(place)) {}
  const char* what() const noexcept override { return message.c_str(); }
  Exit code;
  std::string message, hint, where;
};

// The stage of a command. It determines the meaning of a libkeel error: KEEL_INVALID is a bad file while
// loading and a wrong shape while running.
enum class Stage { kFile, kDevice, kRun };
Fail to_fail(Stage stage, const keel::Error& error);
// A libkeel message with options replaced by flags, and without names of the C API.
std::string on_command_line(std::string text);

// Runs f; converts a keel::Error to the Fail of that stage.
template <class F>
auto at(Stage stage, F f) {
  try {
    return f();
  } catch (const keel::Error& error) {
    throw to_fail(stage, error);
  }
}

// Runs a command, reports exceptions on stderr (as JSON with --json), returns the exit code.
int guarded(const std::string& command, const bool& json, int (*body)(void*), void* arg);

// "did you mean" text for a name that is not among `known`; "" if none is close.
std::string closest(const std::string& name, const std::vector<std::string>& known);
// The same for the quoted names in a message.
std::string closest_quoted(const std::string& name, const std::string& message);
std::string join(const std::vector<std::string>& parts, const std::string& between);

}  // namespace cli
#endif
