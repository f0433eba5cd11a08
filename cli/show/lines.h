// lines.h: how the graphs of one text differ from those of another. Used by optimize and bisect.
#ifndef KEEL_CLI_LINES_H
#define KEEL_CLI_LINES_H
#include <string>

namespace cli {

// By structure: a statement is the same wherever it stands and whatever number an unnamed value has, if it
// does the same with values of the same names, or, where they have none, of the same ops. Those that only
// `before` has with "-", those that only `after` has with
// "+", each in its order, a new one for a name beside the old one; " @name" before those of another graph.
std::string changed_lines(const std::string& before, const std::string& after);

}  // namespace cli
#endif
