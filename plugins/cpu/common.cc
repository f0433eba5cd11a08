// common.cc: see common.h.
#include "plugins/cpu/common.h"

namespace keel_cpu {

void Throw(keel_rc code, std::string text) { throw Error{code, std::move(text)}; }

keel_rc Report(const keel_host* host, std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return host->fail(e.code, e.text.c_str());
  } catch (const Reported& e) {
    return e.code;
  } catch (const std::bad_alloc&) {
    return host->fail(KEEL_OOM, "the CPU device ran out of memory");
  } catch (const std::exception& e) {
    return host->fail(KEEL_INTERNAL, e.what());
  } catch (...) {
    return host->fail(KEEL_INTERNAL, "an unknown exception in the CPU device");
  }
}

keel_tensor Node::In(uint32_t i) const {
  keel_tensor t{};
  if (host->node_in(node, i, &t) != KEEL_OK)
    Throw(KEEL_INTERNAL, "operand " + std::to_string(i) + " cannot be read");
  return t;
}

keel_tensor Node::Out(uint32_t i) const {
  keel_tensor t{};
  if (host->node_out(node, i, &t) != KEEL_OK)
    Throw(KEEL_INTERNAL, "result " + std::to_string(i) + " cannot be read");
  return t;
}

uint32_t Node::InCount() const {
  uint32_t n_in = 0, n_out = 0;
  host->node_arity(node, &n_in, &n_out);
  return n_in;
}

bool Node::Has(uint32_t i) const {
  keel_tensor t;
  return host->node_in(node, i, &t) == KEEL_OK;
}

keel_attr Node::Attr(const char* name) const {
  keel_attr a{};
  if (host->node_attr(node, name, &a) != KEEL_OK)
    Throw(KEEL_INTERNAL, std::string(host->node_op(node)) + ": attribute " + name + " cannot be read");
  return a;
}

std::string Node::Word(const char* name) const {
  const keel_attr a = Attr(name);
  return std::string(static_cast<const char*>(a.p), a.count);
}

Dims Node::List(const char* name) const {
  const keel_attr a = Attr(name);
  const int64_t* p = static_cast<const int64_t*>(a.p);
  return Dims(p, p + a.count);
}

int64_t Product(const int64_t* dims, int64_t n) {
  int64_t p = 1;
  for (int64_t i = 0; i < n; i++) p *= dims[i];
  return p;
}

}  // namespace keel_cpu
