// command.cc: the subcommands by name.
#include "cli/command.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace cli {
namespace {

std::vector<const Command*>& registered() {
  static std::vector<const Command*> commands;
  return commands;
}

}  // namespace

Command::Command(const char* n, const char* a, std::vector<DeclareFlags> f, int (*r)(const Args&))
    : name(n), about(a), flags(std::move(f)), run(r) {
  auto by_name = [](const Command* x, const Command* y) { return std::string_view(x->name) < y->name; };
  auto& all = registered();  // sorted, because the linker decides the order of initialisation
  all.insert(std::upper_bound(all.begin(), all.end(), this, by_name), this);
}

const std::vector<const Command*>& commands() { return registered(); }

}  // namespace cli
