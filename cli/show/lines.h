// lines.h: the differences between the graphs of two texts. Used by optimize and bisect.
#ifndef KEEL_CLI_LINES_H
#define KEEL_CLI_LINES_H
#include <string>

namespace cli {

// A structural diff: statements are equal if they apply the same op to values of the same names or, for
// unnamed values, of the same ops; position and numbering do not count. Lines that only `before` has start
// with "-", lines that only `after` has with "+", in their order, with the replacement of a name next to the
// old line; " @name" precedes the lines of another graph.
std::string changed_lines(const std::string& before, const std::string& after);

}  // namespace cli
#endif
