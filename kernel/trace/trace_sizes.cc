// trace_sizes.cc: what a program asks of its sizes while it is traced. What holds for all of them is
// answered; else the call that the trace is written for answers, and the trace serves the calls with the same
// answer.
#include "kernel/trace/trace.h"

namespace keel {
namespace {

absl::StatusOr<std::vector<int64_t>> OfCall(const SizesAsked* asked, const std::string& expression) {
  if (asked && asked->of_call) return asked->of_call();
  return Annotate(Error(absl::StatusCode::kFailedPrecondition, "the size ", expression,
                        " of a trace is no number while it is traced"),
                  kErrorHint, "keel::dim(size) is a tensor that has it when the graph runs");
}

}  // namespace

Trace& Trace::Program() {
  Trace* program = this;
  while (program->parent_) program = program->parent_.get();
  return *program;
}

absl::StatusOr<std::string> Trace::SizeText(std::string_view expression) {
  std::lock_guard lock(*mutex_);
  ASSIGN_OR_RETURN(Dim dim, module_->dims.Parse(expression, true));
  return module_->dims.Print(dim);
}

absl::StatusOr<int64_t> Trace::SizeNumber(std::string_view expression) {
  std::lock_guard lock(*mutex_);
  ASSIGN_OR_RETURN(Dim dim, module_->dims.Parse(expression, true));
  if (!IsSymbolic(dim)) return dim;
  SizesAsked* asked = Program().asked_.get();
  std::string text = module_->dims.Print(dim);
  ASSIGN_OR_RETURN(std::vector<int64_t> symbols, OfCall(asked, text));
  module_->dims.Symbols(dim, &asked->numbers);
  if (asked->number.empty()) asked->number = std::move(text);
  return module_->dims.Evaluate(dim, symbols);
}

// a != b is written down as a < b or a > b: rules know no other.
absl::StatusOr<bool> Trace::SizeRuleHolds(std::string_view text) {
  std::lock_guard lock(*mutex_);
  DimTable& dims = module_->dims;
  ASSIGN_OR_RETURN(std::vector<DimRule> rules, ParseRule(text, dims));
  for (DimRule rule : rules) {
    std::optional<bool> decided = DecidedForAll(rule, dims);
    if (decided && !*decided) return false;
    if (decided) continue;
    Trace& program = Program();
    ASSIGN_OR_RETURN(std::vector<int64_t> symbols, OfCall(program.asked_.get(), PrintRule(rule, dims)));
    ASSIGN_OR_RETURN(bool holds, keel::Holds(rule, dims, symbols));
    if (!holds) {
      DimRule less{rule.a, rule.b, false};
      ASSIGN_OR_RETURN(bool below, keel::Holds(less, dims, symbols));
      rule = below ? less : DimRule{rule.b, rule.a, false};
      ASSIGN_OR_RETURN(rule.a, dims.Add(rule.a, 1));
    }
    RETURN_IF_ERROR(program.Guard(rule));
    if (!holds) return false;
  }
  return true;
}

absl::Status Trace::Guard(const DimRule& rule) {
  std::string text = PrintRule(rule, module_->dims);
  if (std::ranges::count(graph_->rules, text)) return absl::OkStatus();
  asked_->guards.push_back(rule);
  return graph_->AddRule(text);
}

}  // namespace keel
