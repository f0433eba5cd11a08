// The parts for device plugins, by the include folder of keel::abi alone.
#include <keel/plugin/body.h>
#include <keel/plugin/disk_cache.h>
#include <keel/plugin/hazards.h>
#include <keel/plugin/scalar_ops.h>
#include <keel/plugin/strides.h>

int main() { return keel::plugin::find_scalar_op("add") ? 0 : 1; }
