// graph.h: keel.Graph, a graph built by a program from tensors and run with a session.
#ifndef KEEL_PYTHON_GRAPH_H
#define KEEL_PYTHON_GRAPH_H
#include "keel/graph.hpp"
#include "values/array.h"

namespace keel_python {
void install_graph(nb::module_& m);
}
#endif
