// verify.h: running the test cases that a file carries.
#ifndef KEEL_CLI_VERIFY_H
#define KEEL_CLI_VERIFY_H
#include "cli/data/load.h"

namespace cli {

// "all", or as pick_device().
std::vector<std::string> devices_named(const keel::Context& context, const std::string& name);

struct Verified {
  bool ok = true;
  Json cases = Json::array();
};
// Every case on every device; prints a line for each unless --json.
Verified verify_cases(const keel::Context& context, const Model& model,
                      const std::vector<std::string>& devices, const Args& args);

}  // namespace cli
#endif
