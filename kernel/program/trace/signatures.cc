// signatures.cc: readable signatures of a function's traces.
#include "kernel/language/graph/signature.h"
#include "kernel/program/trace/function.h"

namespace keel {
namespace {

// "2" of "i64 2".
std::string_view ValueOf(std::string_view described) { return described.substr(described.find(' ') + 1); }

}  // namespace

std::string HeadOf(std::string_view name, const Arguments& arguments) {
  struct Group {
    std::string stem, values;
    bool fixed = true, list = false;
  };
  std::vector<Group> groups;
  for (size_t i = 0; i < arguments.leaves.size(); i++) {
    std::string path = arguments.ParamName(i), stem = path.substr(0, path.find_first_of(".["));
    if (groups.empty() || groups.back().stem != stem) groups.push_back({stem, "", true, false});
    Group& group = groups.back();
    group.list |= stem != path;
    group.fixed &= arguments.leaves[i].kind != KEEL_LEAF_ARRAY;
    absl::StrAppend(&group.values, group.values.empty() ? "" : ", ", ValueOf(arguments.Describe(i)));
  }
  std::string out = absl::StrCat(name, "(");
  for (const Group& group : groups) {
    absl::StrAppend(&out, &group == groups.data() ? "" : ", ", group.stem);
    if (group.fixed) absl::StrAppend(&out, group.list ? "=[" : "=", group.values, group.list ? "]" : "");
  }
  return out + ")";
}

std::string Function::Signatures() const {
  std::lock_guard lock(mutex_);
  std::string out;
  for (const auto& concrete : all_)
    absl::StrAppend(&out, out.empty() ? "" : "\n", PrintSignature(*concrete->graph, concrete->head));
  return out;
}

}  // namespace keel
