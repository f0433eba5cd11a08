// module.cc: the extension keel._keel: one install_*() per file. keel/__init__.py is the public interface.
#include "context.h"
#include "control.h"
#include "custom.h"
#include "dim.h"
#include "dtype.h"
#include "function.h"
#include "graph.h"
#include "line.h"
#include "op.h"
#include "plan.h"
#include "session.h"
#include "structure.h"
#include "tape.h"
#include "timeline.h"
#include "variable.h"

NB_MODULE(_keel, m) {
  using namespace keel_python;
  nb::set_leak_warnings(false);  // the dtypes are never freed
  install_interrupt();
  install_errors(m);
  install_line();
  install_array(m);
  install_dtype(m);
  install_dim(m);
  install_context(m);
  nb::module_ ops = m.def_submodule("ops", "A function for each op of the catalogue.");
  install_ops(ops);
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
