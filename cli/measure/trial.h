// trial.h: work that may crash, in a child process.
#ifndef KEEL_CLI_TRIAL_H
#define KEEL_CLI_TRIAL_H
#include <functional>
#include <string>

namespace cli {

// How a child process that runs `work` ends before it has returned: "crashes: Segmentation fault", "does not
// return within 30 s", "exits with code 3"; "" if the work returns or throws. To be called before other
// threads exist.
std::string trial(const std::function<void()>& work);

}  // namespace cli
#endif
