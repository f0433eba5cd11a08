// mutex.cc: the first lock, made when libkeel is loaded. fork() asks those last that came first: so it has
// the locks of whoever uses libkeel, who may hold them in calls, before it takes the kernel's.
#include "kernel/base/mutex.h"

namespace keel {
namespace {

[[maybe_unused]] const Mutex first;

}  // namespace
}  // namespace keel
