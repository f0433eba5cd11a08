// checkpoint.h: files with variables only: a module without graphs, with a checksum per value in its metadata
// (abi/FILE.md).
#pragma once

#include <memory>
#include <span>
#include <string>

#include "kernel/language/graph/graph.h"

namespace keel {

struct NamedVariable {
  std::string name;
  std::shared_ptr<Variable> storage;
};
// Atomic, like SaveFile; each value is a consistent snapshot.
absl::Status SaveCheckpoint(std::span<const NamedVariable> variables, const std::string& path,
                            std::shared_ptr<Catalogue> catalogue);
// All or nothing: every variable must be in the file, with its type and checksum. Other variables of the file
// are ignored.
absl::Status LoadCheckpoint(std::span<const NamedVariable> variables, const std::string& path,
                            std::shared_ptr<Catalogue> catalogue);

}  // namespace keel
