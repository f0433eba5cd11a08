// trace_sizes.cc: queries of a program on symbolic sizes during a trace. An answer that is valid for all
// sizes is returned directly. Otherwise the call being traced determines the answer, which becomes a guard:
// the trace serves only calls with the same answer.
#include "kernel/program/trace/trace.h"

namespace keel {
namespace {

absl::StatusOr<std::vector<int64_t>> OfCall(const SizeQueries* queries, const std::string& expression) {
  if (queries && queries->call_sizes) return queries->call_sizes();
  return Annotate(Error(absl::StatusCode::kFailedPrecondition, "the size ", expression,
                        " is symbolic and has no value during the trace"),
                  kErrorHint, "use keel::dim(size), a tensor with the size at run time");
}

}  // namespace

absl::Status Trace::CheckBeforeRun(Dim size) {
  for (const Trace* trace = this; trace; trace = trace->parent_.get())
    if (trace->graph_->Makes(size))
      return Annotate(Error(absl::StatusCode::kFailedPrecondition, "the size ", module_->dims.Print(size),
                            " is known in a run only, not during the trace"),
                      kErrorHint, "use keel::dim(size), a tensor with the size at run time");
  return absl::OkStatus();
}

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
  RETURN_IF_ERROR(CheckBeforeRun(dim));
  SizeQueries* queries = Program().size_queries_.get();
  std::string text = module_->dims.Print(dim);
  ASSIGN_OR_RETURN(std::vector<int64_t> symbols, OfCall(queries, text));
  module_->dims.Symbols(dim, &queries->numbers);
  if (queries->number.empty()) queries->number = std::move(text);
  return module_->dims.Evaluate(dim, symbols);
}

// Rules have no !=: a != b is recorded as a < b or a > b.
absl::StatusOr<bool> Trace::SizeRuleHolds(std::string_view text) {
  std::lock_guard lock(*mutex_);
  DimTable& dims = module_->dims;
  ASSIGN_OR_RETURN(std::vector<DimRule> rules, ParseRule(text, dims));
  for (DimRule rule : rules) {
    std::optional<bool> decided = DecidedForAll(rule, dims);
    if (decided && !*decided) return false;
    if (decided) continue;
    for (Dim side : {rule.a, rule.b}) RETURN_IF_ERROR(CheckBeforeRun(side));
    Trace& program = Program();
    ASSIGN_OR_RETURN(std::vector<int64_t> symbols,
                     OfCall(program.size_queries_.get(), PrintRule(rule, dims)));
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
  size_queries_->guards.push_back(rule);
  return graph_->AddRule(text);
}

}  // namespace keel
