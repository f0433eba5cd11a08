// lines.h: which lines of a text are other ones in another. Used by optimize and bisect.
#ifndef KEEL_CLI_LINES_H
#define KEEL_CLI_LINES_H
#include <string>

namespace cli {

// Lines that only `before` has with "-", those that only `after` has with "+", in order.
std::string changed_lines(const std::string& before, const std::string& after);

}  // namespace cli
#endif
