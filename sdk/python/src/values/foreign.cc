// foreign.cc: arrays of other libraries through the buffer protocol; other protocols are in keel/foreign.py.
#include "values/foreign.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

namespace keel_python {

namespace {

keel_dt dtype_of_format(const Py_buffer& view) {
  const char* f = view.format ? view.format : "B";
  if (*f == '@' || *f == '=' || *f == '<') f++;
  char kind = f[0] && f[1]               ? '-'
              : std::strchr("bhilq", *f) ? 'i'
              : std::strchr("BHILQ", *f) ? 'u'
              : std::strchr("efd", *f)   ? 'f'
              : *f == '?'                ? 'b'
                                         : '-';
  for (const keel::DtypeRow& row : keel::kDtypes)
    if (row.kind == kind && row.size == view.itemsize) return row.code;
  return 0;
}

/// Memory of another library that a tensor shares.
struct Shared {
  Py_buffer view;
  Shared* next = nullptr;  // in the list of memory to release
};
std::atomic<Shared*> dropped{nullptr};

int release_dropped(void* = nullptr) {
  for (Shared* at = dropped.exchange(nullptr); at;) {
    std::unique_ptr<Shared> mine(std::exchange(at, at->next));
    PyBuffer_Release(&mine->view);
  }
  return 0;
}

bool is_python_ending() {
#if PY_VERSION_HEX >= 0x030d0000
  return !Py_IsInitialized() || Py_IsFinalizing();
#else
  return !Py_IsInitialized() || _Py_IsFinalizing();
#endif
}

// Runs on the thread that drops the last reference. It may hold a lock of libkeel that a thread with
// the GIL waits for, so it must not wait for the GIL: if the GIL is not free, Python's main thread releases
// the buffer later.
void release_buffer(void* arg) {
  if (is_python_ending()) return;
  auto* mine = static_cast<Shared*>(arg);
  mine->next = dropped.load();
  while (!dropped.compare_exchange_weak(mine->next, mine)) continue;
  if (PyGILState_Check())
    release_dropped();
  else
    Py_AddPendingCall(release_dropped, nullptr);  // if the queue is full, the next shared tensor releases it
}

keel::Tensor from_buffer(nb::handle value, bool copy) {
  release_dropped();
  auto shared = std::make_unique<Shared>();
  Py_buffer* view = &shared->view;
  if (PyObject_GetBuffer(value.ptr(), view, PyBUF_FULL_RO)) {
    PyErr_Clear();
    return {};
  }
  keel_dt dtype = dtype_of_format(*view);
  std::vector<int64_t> steps;
  bool even = true;
  for (int d = 0; d < view->ndim; d++) {
    even = even && view->strides[d] % view->itemsize == 0 && view->strides[d] >= 0;
    steps.push_back(view->strides[d] / view->itemsize);
  }
  keel_tensor t{view->buf, {1, 0}, view->ndim, keel::dtype_unpack(dtype), view->shape, steps.data(), 0};
  bool aligned = reinterpret_cast<uintptr_t>(view->buf) % static_cast<uintptr_t>(view->itemsize) == 0;
  if (!dtype || view->ndim > KEEL_MAX_RANK || !even || !aligned) {
    PyBuffer_Release(view);
    return {};
  }
  keel_array* out = nullptr;
  keel_context* context = keel::detail::here().context();
  keel_error* error = nullptr;
  keel_rc rc = copy ? keel_array_from_tensor(context, &t, nullptr, nullptr, &out, &error)
                    : keel_array_from_tensor(context, &t, release_buffer, shared.get(), &out, &error);
  if (copy || rc != KEEL_OK)
    PyBuffer_Release(view);
  else
    static_cast<void>(shared.release());
  if (rc != KEEL_OK) throw keel::Error::take(rc, error);
  return keel::Tensor(keel::Array(out));
}

keel::Array zeros(keel_dt dtype, std::span<const int64_t> shape) {
  keel_array* out = nullptr;
  keel::call(keel_array_new, keel::detail::here().context(), dtype, shape.data(),
             static_cast<int32_t>(shape.size()), &out);
  return keel::Array(out);
}

void release_array(void* arg) { keel_array_free(static_cast<keel_array*>(arg)); }

}  // namespace

keel::Tensor bits_as(const keel::Tensor& t, keel_dt dtype) {
  keel_tensor view = t.array().tensor();
  view.dtype = keel::dtype_unpack(dtype);
  keel_array *kept = keel_array_retain(t.get()), *out = nullptr;
  keel_error* error = nullptr;
  keel_rc rc =
      keel_array_from_tensor(keel::detail::here().context(), &view, release_array, kept, &out, &error);
  if (rc == KEEL_OK) return keel::Tensor(keel::Array(out));
  keel_array_free(kept);
  throw keel::Error::take(rc, error);
}

keel::Tensor unpacked(const keel::Tensor& t) {
  const keel::Array from = t.rows();
  const keel_dt dtype = from.dtype();
  keel::Array out = zeros(KEEL_U8, from.shape());
  auto* bytes = static_cast<uint8_t*>(out.data());
  for (int64_t i = 0; i < from.size(); i++) bytes[i] = keel::load_code(dtype, from.data(), i);
  return keel::Tensor(std::move(out));
}

keel::Tensor packed(const keel::Tensor& codes, keel_dt dtype) {
  const keel::Array from = codes.rows();
  keel::Array out = zeros(dtype, from.shape());
  const auto* bytes = static_cast<const uint8_t*>(from.data());
  for (int64_t i = 0; i < from.size(); i++) keel::store_code(dtype, out.data(), i, bytes[i]);
  return keel::Tensor(std::move(out));
}

keel::Tensor from_foreign(nb::handle value, bool copy) {
  PyObject* o = value.ptr();
  if (PyUnicode_Check(o) || PyBytes_Check(o) || PyType_Check(o)) return {};
  if (PyObject_CheckBuffer(o))
    if (keel::Tensor t = from_buffer(value, copy); !t.empty()) return t;
  bool dlpack = PyObject_HasAttrString(o, "__dlpack__");
  if (!dlpack && !PyObject_HasAttrString(o, "__array__")) return {};
  nb::object plain = call_python(nb::object(nb::module_::import_("keel.foreign").attr("plain")),
                                 value);  // or an object with a buffer
  if (!is_tensor(plain.ptr())) return from_buffer(plain, copy);
  keel::Tensor shared = tensor_of(plain.ptr());
  if (!copy || !shared.device().empty()) return shared;
  keel_tensor view = shared.array().tensor();
  keel_array* out = nullptr;
  keel::call(keel_array_from_tensor, keel::detail::here().context(), &view, nullptr, nullptr, &out);
  return keel::Tensor(keel::Array(out));
}

}  // namespace keel_python
