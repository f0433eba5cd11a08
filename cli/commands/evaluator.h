// evaluator.h: statements of `keel eval`, run one by one as they are read.
//
// How to read it: split_statements() cuts a text; an Evaluator runs statements: assignments, print, and
// expressions of the text form (kernel/language/graph/README.md) plus nested list literals.
#ifndef KEEL_CLI_EVALUATOR_H
#define KEEL_CLI_EVALUATOR_H
#include <keel/keel.hpp>
#include <map>
#include <string>
#include <vector>

namespace cli {

struct Statement {
  std::string text;  // on one line
  int line = 0;      // of its first character, from 1
};
// Splits at line ends and ';' outside of brackets and texts; drops comments.
std::vector<Statement> split_statements(const std::string& text);

class Evaluator {
 public:
  Evaluator(const keel::Context& context, std::string device)
      : context_(context), device_(std::move(device)) {}
  // Returns the output of the statement without a line end; "" for an assignment. A Fail shows the position.
  std::optional<std::string> run(const Statement& statement);
  const std::map<std::string, keel::Tensor>& values() const { return values_; }

 private:
  struct List {  // a literal [...], where it stood
    size_t at, length;
    keel::Literal literal;
    std::string name;
  };
  struct Replaced {
    size_t at, length;
    std::string by;
  };
  static std::vector<Replaced> points_of(const Statement& s, size_t from, size_t to,
                                         const std::vector<List>& lists);
  std::string print(const Statement& s, size_t at);
  std::vector<keel::Tensor> evaluate(const Statement& s, size_t from, size_t to, size_t results);
  static std::vector<List> lists_of(const Statement& s, size_t from, size_t to);
  std::vector<keel::Tensor> settle(const std::string& body, const std::vector<List>& lists);
  std::vector<keel::Tensor> compute(const std::string& body, const std::vector<List>& lists,
                                    const std::vector<keel_dt>& dtypes);
  const keel::Context& context_;
  std::string device_;
  std::map<std::string, keel::Tensor> values_;
};

}  // namespace cli
#endif
