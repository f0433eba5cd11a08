// sums.cc: the products of a step, and with few rows the products of the next steps' entries.
#include <algorithm>

#include "plugins/cpu/recurrent/step.h"

namespace keel_cpu {
namespace {

class Adder {
 public:
  Adder(const NetStep& step, const NetSum& sum, const Area& a) : s_(step), net_(step.net), sum_(sum), a_(a) {}

  void Run(const char* panel, float* to) const {
    const char* ahead = panel;
    if (!sum_.ahead.empty()) MakeAhead(panel);
    for (const NetPart& part : sum_.ahead) panel += a_.panels * part.panel_bytes;
    IsPaired(s_.group) ? MultiplyPaired(ahead, panel, to) : AddParts(panel, to);
  }

 private:
  // ---- products with entries of several steps

  int64_t StepsOf(int64_t group) const { return std::min(net_.ahead, net_.steps - group * net_.ahead); }
  // The entries of a group of steps, which are in order in memory.
  const float* Entries(const NetPart& part, int64_t group) const {
    const int64_t first = group * net_.ahead, count = StepsOf(group);
    const StepSource& s = part.left;
    return reinterpret_cast<const float*>(In<char>(s_.call, static_cast<int>(s.number)) + s.first +
                                          s.entry * (net_.reverse ? net_.steps - first - count : first));
  }
  float* Made(int64_t group) const {
    return reinterpret_cast<float*>(s_.scratch + sum_.made[group & 1]) + net_.ahead * net_.rows * a_.unit;
  }
  const float* MadeNow() const {
    const int64_t at = net_.reverse ? StepsOf(s_.group) - 1 - s_.in_group : s_.in_group;
    return Made(s_.group) + (at * net_.rows + a_.row) * a_.units;
  }
  // Whether the products with the next group's entries are made meanwhile.
  bool IsPaired(int64_t group) const {
    return net_.pair.run != nullptr && a_.is_full && sum_.ahead.size() == 1 && sum_.parts.size() == 1 &&
           (group + 2) * net_.ahead <= net_.steps;
  }
  // The products with the group's entries, if no step before made them.
  void MakeAhead(const char* panel) const {
    if (a_.row > 0 || s_.in_group > 0 || (s_.group > 0 && IsPaired(s_.group - 1))) return;
    for (const NetPart& part : sum_.ahead) {
      const Matrix left = {Entries(part, s_.group), part.depth, 1};
      const bool first = &part == sum_.ahead.data();
      panel = Multiply(part, left, StepsOf(s_.group) * net_.rows, panel,
                       first && net_.rows == 1 ? Begin() : Start{}, !first, Made(s_.group));
    }
  }
  // The panels of a part, in the step's direction, and, a share of one for each, the panels of the next
  // group's entries.
  void MultiplyPaired(const char* ahead, const char* panels, float* to) const {
    const NetPart &one = sum_.parts[0], &many = sum_.ahead[0];
    const int64_t columns = net_.op->panel;
    const float *left = static_cast<const float*>(Rows(one).data), *begun = MadeNow(),
                *entries = Entries(many, s_.group + 1), *start = static_cast<const float*>(Begin().data);
    int64_t share = a_.share, other = a_.other;
    for (int64_t i = 0; i < a_.panels; i++) {
      const int64_t p = s_.IsBackward() ? a_.panels - 1 - i : i;
      const int64_t begin = std::min(share * many.share, many.depth);
      float* made = Made(s_.group + 1) + other * columns;
      const auto* panel = reinterpret_cast<const float*>(panels + p * one.panel_bytes);
      const auto* weights = reinterpret_cast<const float*>(ahead + other * many.panel_bytes);
      const float* first = share > 0 ? made : start == nullptr ? nullptr : start + other * columns;
      net_.pair.run({left, one.depth, panel, begun + p * columns, to + p * columns},
                    {entries + begin, many.depth, std::min(many.share, many.depth - begin),
                     weights + begin * columns, first, share > 0 ? a_.units : 0, made, a_.units});
      if (++share == net_.ahead) share = 0, other++;
    }
  }

  // ---- products of this step

  // The first values of the sums.
  Start Begin() const {
    if (sum_.starts.empty()) return {};
    return {reinterpret_cast<const float*>(s_.scratch + sum_.start) + a_.row * sum_.start_row + a_.unit,
            sum_.start_row};
  }
  Matrix Rows(const NetPart& part) const {
    const StepSource& s = part.left;
    if (s.kind == StepSource::kOutside) return {s_.Outside(s) + a_.row * s.row * s.size, s.row, 1};
    const KeptValue& v = net_.kept[s.number];
    const char* row = s_.RowOf(v, s.kind == StepSource::kBefore ? 1 - s_.now : s_.now, a_.row);
    return {part.is_joint ? row - v.front_depth * v.size : row, v.width, 1};
  }
  // Returns the end of the panels.
  const char* Multiply(const NetPart& part, const Matrix& left, int64_t rows, const char* panel,
                       const Start& start, bool adds, float* to) const {
    const MatmulOp& op = *net_.op;
    if (rows == 1 && !adds && part.depth <= op.part && a_.is_full) {
      op.multiply_row(left, panel, part.panel_bytes, a_.panels, part.depth, start.data, to);
      return panel + a_.panels * part.panel_bytes;
    }
    Start first = start;
    for (int64_t p = 0; p < a_.panels; p++, panel += part.panel_bytes) {
      const Next next = {panel + part.panel_bytes, part.panel_bytes};
      op.multiply(left, {panel, op.panel, next, first}, rows, a_.units, part.depth, p, adds, to);
      if (start.data != nullptr) first.data = static_cast<const float*>(first.data) + op.panel;
    }
    return panel;
  }
  void AddParts(const char* panel, float* to) const {
    const float* made = sum_.ahead.empty() ? nullptr : MadeNow();
    const bool begins = made != nullptr && (net_.rows == 1 || (sum_.parts.empty() && sum_.starts.empty()));
    const Start start = begins ? Start{made, a_.units} : Begin();
    if (sum_.parts.empty())
      CopyRows(static_cast<const char*>(start.data), start.row * kSize, reinterpret_cast<char*>(to),
               a_.units * kSize, a_.rows, a_.units * kSize);
    // A product reads first values for whole panels.
    const bool is_start = !begins || a_.is_full;
    for (const NetPart& part : sum_.parts) {
      const bool first = &part == sum_.parts.data();
      panel = Multiply(part, Rows(part), a_.rows, panel, first && is_start ? start : Start{}, !first, to);
    }
    if (made != nullptr && (!begins || (!is_start && !sum_.parts.empty())))
      for (int64_t i = 0; i < a_.rows * a_.units; i++) to[i] += made[i];
  }

  static constexpr int64_t kSize = sizeof(float);
  const NetStep& s_;
  const Net& net_;
  const NetSum& sum_;
  const Area& a_;
};

}  // namespace

void AddSums(const NetStep& step, const NetStage& stage, const Area& a, float* to) {
  const char* panel = step.net.weights.get() + stage.panels[static_cast<size_t>(a.block)];
  const auto count = static_cast<int64_t>(stage.sums.size());
  const bool backward = step.IsBackward();
  if (backward) panel += a.panels * stage.panel_bytes;
  for (int64_t i = 0; i < count; i++) {
    const int64_t number = backward ? count - 1 - i : i;
    const NetSum& sum = stage.sums[static_cast<size_t>(number)];
    const int64_t bytes = a.panels * sum.panel_bytes;
    if (backward) panel -= bytes;
    Adder(step, sum, a).Run(panel, to + number * kMostElements);
    if (!backward) panel += bytes;
  }
}

}  // namespace keel_cpu
