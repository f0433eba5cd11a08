/* keel.h: for programs that run graphs, and for language bindings: all plain C functions of libkeel.
 *
 * Read keel_base.h (tensors, dtypes, status codes) and keel_handle.h (the rules of all functions) first, then
 * the families that you need. A whole program is share/doc/keel/sdk/examples/run.c. */
#ifndef KEEL_H
#define KEEL_H
#include "keel_base.h"
#include "keel_handle.h"

#include "keel_array.h"    /* arrays, and ops applied to them */
#include "keel_context.h"  /* contexts, plugins, devices, reports, the timeline */
#include "keel_control.h"  /* branches and loops */
#include "keel_function.h" /* programs that are traced on demand */
#include "keel_graph.h"    /* graphs by hand */
#include "keel_module.h"   /* modules: files of graphs */
#include "keel_session.h"  /* sessions and plans: graphs on a device */
#include "keel_tape.h"     /* gradients */
#include "keel_trace.h"    /* graphs that a program writes */
#include "keel_variable.h" /* state that outlives runs */
#endif
