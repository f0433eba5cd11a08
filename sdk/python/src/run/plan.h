// plan.h: the Python type keel.Plan.
#ifndef KEEL_PYTHON_PLAN_H
#define KEEL_PYTHON_PLAN_H
#include "keel/session.hpp"
#include "values/array.h"

namespace keel_python {

/// may_be_brief: the run time depends on the sizes of the inputs (see brief.h).
nb::object plan_object(keel::Plan plan, bool may_be_brief);

void install_plan(nb::module_& m);

}  // namespace keel_python
#endif
