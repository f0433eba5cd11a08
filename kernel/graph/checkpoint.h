// checkpoint.h: variables in a file of their own: a module that holds nothing else, with a checksum of each
// value in its metadata (abi/FILE.md).
#pragma once

#include <memory>
#include <span>
#include <string>

#include "kernel/graph/graph.h"

namespace keel {

struct NamedVariable {
  std::string name;
  std::shared_ptr<Variable> storage;
};
// Atomic as SaveFile is; each value is that of one moment.
absl::Status SaveCheckpoint(std::span<const NamedVariable> variables, const std::string& path,
                            std::shared_ptr<Catalogue> catalogue);
// All or none: every variable must be in the file, with its type and its checksum. Others are left out.
absl::Status LoadCheckpoint(std::span<const NamedVariable> variables, const std::string& path,
                            std::shared_ptr<Catalogue> catalogue);

}  // namespace keel
