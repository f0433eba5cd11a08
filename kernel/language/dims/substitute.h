// substitute.h: a dim of one table as a dim of another.
#pragma once

#include "absl/functional/function_ref.h"
#include "kernel/language/dims/dim_table.h"

namespace keel {

// `dim` of the table `of`, with by(name), a dim of `to`, in the place of each symbol.
absl::StatusOr<Dim> Substitute(Dim dim, const DimTable& of, DimTable& to,
                               absl::FunctionRef<absl::StatusOr<Dim>(std::string_view name)> by);

}  // namespace keel
