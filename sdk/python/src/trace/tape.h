// tape.h: keel._keel.Tape, the record of ops for gradients.
#ifndef KEEL_PYTHON_TAPE_H
#define KEEL_PYTHON_TAPE_H
#include "values/array.h"

namespace keel_python {
void install_tape(nb::module_& m);
}
#endif
