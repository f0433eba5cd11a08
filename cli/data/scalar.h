// scalar.h: elements of every dtype as C++ values: short names for the SDK's types.
#ifndef KEEL_CLI_SCALAR_H
#define KEEL_CLI_SCALAR_H
#include <keel/scalar.hpp>

namespace cli {

using keel::Brain;
using keel::code_of;
using keel::Half;
using keel::is_floating;
using keel::visit;

}  // namespace cli
#endif
