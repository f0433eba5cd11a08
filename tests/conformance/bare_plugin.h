// bare_plugin.h: calls the impls of a plugin directly, without libkeel, on buffers between guard pages.
// Plugin loads a library; keel_node is a node of the test (the type is opaque to plugins); Buffer is memory
// with unreadable neighbours; Run acts like the core: start there.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "abi/keel_plugin.h"

struct BareTensor {
  keel_dt dtype = KEEL_F32;
  std::vector<int64_t> dims;
  int64_t Count() const {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    return n;
  }
  int64_t Size() const { return (dtype >> 8 & 255) / 8; }
  int64_t Bytes() const { return Count() * Size(); }
};

// A node, or the body of a call, which sets `nodes` and the numbers of its values.
struct keel_node {
  std::string op;
  std::vector<BareTensor> in, out;
  std::map<std::string, keel_attr> attrs;
  std::vector<const void*> data;  // of constant operands
  std::vector<keel_node> nodes;
  std::vector<std::vector<uint32_t>> node_in;
  std::vector<uint32_t> node_out, results;
  uint32_t n_values = 0;
  std::vector<keel_body_node> body;  // built from the above on request
};

namespace bare {

inline std::string& Failure() {
  thread_local std::string text;
  return text;
}

inline keel_tensor View(const BareTensor& t, const void* data) {
  keel_tensor v = {};
  v.data = const_cast<void*>(data);
  v.device.type = 1;
  v.ndim = static_cast<int32_t>(t.dims.size());
  v.dtype.code = static_cast<uint8_t>(t.dtype & 255);
  v.dtype.bits = static_cast<uint8_t>(t.dtype >> 8 & 255);
  v.dtype.lanes = 1;
  v.shape = const_cast<int64_t*>(t.dims.data());
  return v;
}

inline keel_rc ReadBody(const keel_node* node, keel_body* out) {
  keel_node* n = const_cast<keel_node*>(node);
  if (n->op != "call") return KEEL_NOT_FOUND;
  n->body.clear();
  for (size_t i = 0; i < n->nodes.size(); i++)
    n->body.push_back({&n->nodes[i], n->node_in[i].data(), static_cast<uint32_t>(n->node_in[i].size()), 1,
                       n->node_out[i], 0});
  *out = {sizeof(keel_body), static_cast<uint32_t>(n->body.size()),
          n->n_values,       static_cast<uint32_t>(n->results.size()),
          n->body.data(),    n->results.data()};
  return KEEL_OK;
}

inline const keel_host& Host() {
  static const keel_host host = [] {
    keel_host h = {};
    h.struct_size = sizeof(h);
    h.fail = [](keel_rc code, const char* text) -> keel_rc {
      Failure() = text;
      return code;
    };
    h.log = [](int32_t, const char*) {};
    h.node_op = [](const keel_node* n) { return n->op.c_str(); };
    h.node_name = [](const keel_node* n) { return n->op.c_str(); };
    h.node_arity = [](const keel_node* n, uint32_t* in, uint32_t* out) {
      *in = static_cast<uint32_t>(n->in.size());
      *out = static_cast<uint32_t>(n->out.size());
    };
    h.node_in = [](const keel_node* n, uint32_t i, keel_tensor* out) -> keel_rc {
      if (i >= n->in.size()) return KEEL_NOT_FOUND;
      *out = View(n->in[i], i < n->data.size() ? n->data[i] : nullptr);
      return KEEL_OK;
    };
    h.node_out = [](const keel_node* n, uint32_t i, keel_tensor* out) -> keel_rc {
      *out = View(n->out.at(i), nullptr);
      return KEEL_OK;
    };
    h.node_attr = [](const keel_node* n, const char* name, keel_attr* out) -> keel_rc {
      // The catalogue's defaults of attributes that the tests here leave out.
      static const std::map<std::string, keel_attr> defaults = {
          {"cast.saturate", {KEEL_ATTR_BOOL, 0, 1, 0, nullptr}},
          {"cast.round", {KEEL_ATTR_STR, 7, 0, 0, "nearest"}}};
      auto it = n->attrs.find(name);
      if (it == n->attrs.end() && (it = defaults.find(n->op + "." + name)) == defaults.end())
        return KEEL_NOT_FOUND;
      *out = it->second;
      return KEEL_OK;
    };
    h.node_body = ReadBody;
    return h;
  }();
  return host;
}

class Plugin {
 public:
  explicit Plugin(const std::string& name) {
    void* library = dlopen((std::string(KEEL_TEST_PLUGINS) + "/keel-" + name + ".so").c_str(), RTLD_NOW);
    if (library == nullptr) ADD_FAILURE() << dlerror();
    auto entry = reinterpret_cast<const keel_plugin* (*)()>(dlsym(library, "keel_plugin_v0"));
    table_ = entry();
  }
  // The first impl, highest priority first, that accepts the node; null: there is none.
  const keel_impl* Find(const keel_node& node) const {
    const keel_impl* best = nullptr;
    for (uint32_t i = 0; i < table_->n_impls; i++) {
      const keel_impl& row = table_->impls[i];
      if (node.op != row.op || (best != nullptr && row.priority <= best->priority)) continue;
      if (row.types != nullptr && !Takes(row, node)) continue;
      if (row.match == nullptr || row.match(nullptr, &Host(), &node)) best = &row;
    }
    return best;
  }

 private:
  // A row's types may only be "T=a|b", where T is the type of operand 0.
  static bool Takes(const keel_impl& row, const keel_node& node) {
    const keel_dt dt = node.in[0].dtype;
    const std::string name = std::string(1, "iuf"[dt & 3]) + std::to_string(dt >> 8 & 255);
    const std::string types = std::string(row.types).substr(2) + "|";
    return ("|" + types).find("|" + name + "|") != std::string::npos;
  }
  const keel_plugin* table_ = nullptr;
};

// Memory that ends (or starts) at an inaccessible page.
class Buffer {
 public:
  Buffer(int64_t bytes, bool at_end) : pages_((static_cast<size_t>(bytes) + kPage - 1) / kPage) {
    base_ = static_cast<char*>(
        mmap(nullptr, (pages_ + 2) * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (pages_ > 0) mprotect(base_ + kPage, pages_ * kPage, PROT_READ | PROT_WRITE);
    data_ = base_ + kPage + (at_end ? pages_ * kPage - static_cast<size_t>(bytes) : 0);
  }
  Buffer(const Buffer&) = delete;
  ~Buffer() { munmap(base_, (pages_ + 2) * kPage); }
  void Freeze() {  // from here on, writing is an error as well
    if (pages_ > 0) mprotect(base_ + kPage, pages_ * kPage, PROT_READ);
  }
  char* data() const { return data_; }

 private:
  static constexpr size_t kPage = 4096;
  size_t pages_;
  char* base_;
  char* data_;
};

using Buffers = std::vector<std::unique_ptr<Buffer>>;

struct Options {
  uint32_t threads = 1;
  bool at_end = true;
};

// Sets the flags like the core: see KEEL_CALL_FLAT.
inline void SetFlags(keel_call* c) {
  c->count = keel_count(c->out[0]);
  uint32_t flags = KEEL_CALL_FLAT;
  bool flat = c->n_out == 1 && c->n_in <= 16;
  for (uint32_t i = 0; i < c->n_in && flat; i++) {
    const int64_t n = c->in[i] ? keel_count(c->in[i]) : 1;
    if (n == 1 && c->count != 1) flags |= KEEL_CALL_ONE(i);
    flat = n == 1 || n == c->count;
  }
  c->flags = flat ? flags : 0;
}

// A prepared launch with bound operands and results.
class Bound {
 public:
  Bound(const Plugin& plugin, const keel_node& node, const std::vector<const void*>& in,
        const std::vector<void*>& out, uint32_t threads)
      : node_(node) {
    impl_ = plugin.Find(node_);
    if (impl_ == nullptr) return;
    env_ = {sizeof(keel_env), threads, &Host(), nullptr, nullptr, &cancelled, 0};
    launch_.struct_size = sizeof(launch_);
    keel_node asked = node_;
    if (impl_->flags & KEEL_IMPL_ANY_DIMS) Forget(&asked);
    rc = impl_->prepare ? impl_->prepare(nullptr, &Host(), &asked, &launch_) : KEEL_OK;
    if (launch_.run == nullptr) launch_.run = impl_->run;
    for (size_t i = 0; i < in.size(); i++) views_.push_back(View(node_.in[i], in[i]));
    for (size_t i = 0; i < out.size(); i++) views_.push_back(View(node_.out[i], out[i]));
    for (size_t i = 0; i < in.size(); i++) in_.push_back(in[i] || views_[i].ndim ? &views_[i] : nullptr);
    for (size_t i = 0; i < out.size(); i++) out_.push_back(&views_[in.size() + i]);
    scratch_ = std::make_unique<Buffer>(static_cast<int64_t>((launch_.scratch_bytes + 63) / 64 * 64), true);
    call_ = {sizeof(call_),
             0,
             static_cast<uint16_t>(in.size()),
             static_cast<uint16_t>(out.size()),
             0,
             0,
             in_.data(),
             out_.data(),
             launch_.state,
             scratch_->data(),
             &env_,
             launch_.scratch_bytes,
             0,
             0,
             nullptr,
             nullptr,
             0};
    SetFlags(&call_);
  }
  ~Bound() {
    if (launch_.release) launch_.release(nullptr, launch_.state);
  }
  bool Found() const { return impl_ != nullptr; }
  keel_rc Run() { return rc == KEEL_OK ? launch_.run(&call_) : rc; }

  int32_t cancelled = 0;
  keel_rc rc = KEEL_OK;

 private:
  // In prepare, impls must not read the dims if any dims are allowed.
  static void Forget(keel_node* n) {
    for (BareTensor& t : n->in) t.dims.assign(t.dims.size(), -1);
    for (BareTensor& t : n->out) t.dims.assign(t.dims.size(), -1);
    for (keel_node& inner : n->nodes) Forget(&inner);
  }
  keel_node node_;
  const keel_impl* impl_ = nullptr;
  keel_env env_ = {};
  keel_launch launch_ = {};
  std::vector<keel_tensor> views_;
  std::vector<const keel_tensor*> in_;
  std::vector<keel_tensor*> out_;
  std::unique_ptr<Buffer> scratch_;
  keel_call call_ = {};
};

// Runs a node once on guarded copies of its operands; returns its results. An operand with data "-" is
// omitted.
inline std::vector<std::string> Run(const Plugin& plugin, const keel_node& node,
                                    const std::vector<std::string>& operands, Options o = {},
                                    keel_rc* rc = nullptr) {
  Buffers buffers;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const std::string& bytes : operands) {
    buffers.push_back(std::make_unique<Buffer>(static_cast<int64_t>(bytes.size()), o.at_end));
    std::memcpy(buffers.back()->data(), bytes.data(), bytes.size());
    buffers.back()->Freeze();
    in.push_back(buffers.back()->data());
  }
  for (const BareTensor& t : node.out) {
    buffers.push_back(std::make_unique<Buffer>(t.Bytes(), o.at_end));
    std::memset(buffers.back()->data(), 0x5a, static_cast<size_t>(t.Bytes()));
    out.push_back(buffers.back()->data());
  }
  Bound bound(plugin, node, in, out, o.threads);
  if (!bound.Found()) {
    ADD_FAILURE() << "no impl of " << node.op;
    return {};
  }
  const keel_rc got = bound.Run();
  if (rc != nullptr) *rc = got;
  if (rc == nullptr) {
    EXPECT_EQ(got, KEEL_OK) << node.op << ": " << Failure();
  }
  std::vector<std::string> results;
  for (size_t i = 0; i < out.size(); i++)
    results.emplace_back(static_cast<const char*>(out[i]), static_cast<size_t>(node.out[i].Bytes()));
  return results;
}

}  // namespace bare
