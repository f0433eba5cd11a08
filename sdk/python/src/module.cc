// module.cc: the extension keel._keel: one install_*() per file. keel/__init__.py is the public interface.
#include "base/line.h"
#include "ops/op.h"
#include "ops/tensor_type.h"
#include "run/context.h"
#include "run/plan.h"
#include "run/session.h"
#include "run/timeline.h"
#include "trace/control.h"
#include "trace/custom.h"
#include "trace/function.h"
#include "trace/graph.h"
#include "trace/structure.h"
#include "trace/tape.h"
#include "values/dim.h"
#include "values/dtype.h"
#include "values/variable.h"

NB_MODULE(_keel, m) {
  using namespace keel_python;
  nb::set_leak_warnings(false);  // the dtypes are never freed
  install_interrupt();
  install_errors(m);
  install_line();
  install_tensor_type(m);
  install_dtype(m);
  install_dim(m);
  install_context(m);
  nb::module_ ops = m.def_submodule("ops", "A function for each op of the catalogue.");
  install_ops(ops);
  install_einsum(m);
  install_variable(m);
  install_structure(m);
  install_session(m);
  install_plan(m);
  install_graph(m);
  install_function(m);
  install_control(m);
  install_tape(m);
  install_custom(m);
  install_timeline(m);
}
