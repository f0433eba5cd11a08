// mutex.cc: constructs the first Mutex when libkeel is loaded, which registers the atfork handlers. "Prepare"
// handlers run in reverse order of registration, so the locks of programs and plugins loaded later, which may
// be held during calls into libkeel, are taken before the kernel's.
#include "kernel/base/mutex.h"

namespace keel {
namespace {

[[maybe_unused]] const Mutex first;

}  // namespace
}  // namespace keel
