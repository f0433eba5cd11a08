// launch.cc: the reference plugin's impls as queued work: a launch copies its call, and computes on the real
// memory when it runs.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <utility>

#include "device.h"

namespace hostile {
namespace {

const keel_plugin& Reference() {
  static const keel_plugin* const table = [] {
    void* library = dlopen(KEEL_HOSTILE_REFERENCE, RTLD_NOW | RTLD_LOCAL);
    if (!library) return static_cast<const keel_plugin*>(nullptr);
    return reinterpret_cast<const keel_plugin* (*)(void)>(dlsym(library, "keel_plugin_v0"))();
  }();
  static const keel_plugin none{};
  return table ? *table : none;
}

const keel_impl* Find(const char* op) {
  const keel_plugin& r = Reference();
  for (uint32_t i = 0; i < r.n_impls; i++) {
    auto* impl = reinterpret_cast<const keel_impl*>(reinterpret_cast<const char*>(r.impls) +
                                                    uint64_t{i} * r.impl_stride);
    if (!std::strcmp(impl->op, op)) return impl;
  }
  return nullptr;
}

// The reference impl's prepared state; queued work keeps it alive.
struct Inner {
  keel_launch launch{};
  const keel_host* host = nullptr;
  keel_memory* packed = nullptr;  // a matmul's second operand, if it is a constant: in memory of the launch
  uint64_t address = 0;
  Inner() { control().states++; }
  Inner(const Inner&) = delete;
  Inner& operator=(const Inner&) = delete;
  ~Inner() {
    if (launch.release) launch.release(nullptr, launch.state);
    if (packed) host->memory_free(packed);
    control().states--;
  }
};
using State = std::shared_ptr<const Inner>;

thread_local std::string said;  // by the reference's impl

struct View {  // an operand, with dims of its own
  keel_tensor tensor;
  int64_t dims[KEEL_MAX_RANK];
  uint64_t bytes;
  bool there;
};

View Keep(const keel_tensor* t) {
  View v{};
  if (!t) return v;
  v.there = true;
  v.tensor = *t;
  v.bytes = t->dtype.bits / 8;
  for (int32_t d = 0; d < t->ndim; d++) {
    v.dims[d] = t->shape[d];
    v.bytes *= static_cast<uint64_t>(t->shape[d]);
  }
  return v;
}

struct Work {
  keel_dev device;
  State state;
  std::string op;
  keel_call call;
  uint64_t fault, scratch;
  std::vector<View> in, out;
  uint64_t token = 0;           // in the parameters, if there are any
  std::vector<uint16_t> slots;  // of a recorded launch

  std::string Run() {
    std::string why;
    std::vector<keel_tensor*> operands;
    for (std::vector<View>* side : {&in, &out})
      for (View& v : *side) {
        operands.push_back(nullptr);
        if (!v.there) continue;
        v.tensor.shape = v.dims;
        v.tensor.data = device->Reach(reinterpret_cast<uint64_t>(keel_ptr(&v.tensor)), v.bytes, &why);
        v.tensor.byte_offset = 0;
        v.tensor.device = {1, 0};
        if (!v.tensor.data) return op + " " + why;
        operands.back() = &v.tensor;
      }
    said.clear();
    keel_host host = *device->host;
    host.fail = [](keel_rc code, const char* text) {
      said = text;
      return code;
    };
    keel_env env{sizeof(keel_env), 1, &host, nullptr, nullptr, nullptr, 0};
    call.in = operands.data();
    call.out = operands.data() + in.size();
    call.env = &env;
    call.state = state->launch.state;
    if (call.params) {
      char* params = device->Reach(call.param_address, sizeof token, &why);
      if (!params || std::memcmp(params, &token, sizeof token)) return op + ": its parameters changed " + why;
    }
    call.scratch =
        state->launch.scratch_bytes ? device->Reach(scratch, state->launch.scratch_bytes, &why) : nullptr;
    keel_rc rc = state->launch.run(&call);
    if (rc == KEEL_OK) return "";
    if (rc != KEEL_RANGE) return op + " failed on the device with code " + std::to_string(rc);
    return SetFault(rc);
  }

  // The only report is the index that the reference impl reports.
  std::string SetFault(keel_rc rc) {
    std::string why;
    long long index = 0, bound = 0;
    char* word = device->Reach(fault, 16, &why);
    if (!word) return op + ": its fault word " + why;
    uint32_t old;
    std::memcpy(&old, word, sizeof old);
    uint32_t made = call.fault | static_cast<uint32_t>(rc);
    if (old != 0) return "";
    std::memcpy(word, &made, sizeof made);
    if (std::sscanf(said.c_str(), "index %lld is not in [0, %lld)", &index, &bound) != 2) return "";
    auto entries = static_cast<uint32_t>(bound);
    std::memcpy(word + 4, &entries, sizeof entries);
    std::memcpy(word + 8, &index, sizeof index);
    return "";
  }
};

keel_rc EncodeWork(keel_queue q, const std::shared_ptr<Work>& work) {
  Command command{Command::kWork, nullptr};
  command.work = [work] { return work->Run(); };
  command.number = work->call.number;
  command.depends = work->call.depends;
  return Encode(q, std::move(command));
}

keel_rc Remember(const std::shared_ptr<Work>& work, const uint16_t* slots, keel_recording recording);

keel_rc Run(const keel_call* c) {
  keel_queue q = c->env->queue;
  HOSTILE_FAIL(c->env->host, "run");
  if (!c->fault || !c->env->fault) control().Violation("a launch without a fault word");
  auto work = std::make_shared<Work>();
  work->device = q->device;
  work->state = *static_cast<const State*>(c->state);
  work->op = "a launch";
  work->call = *c;
  work->fault = c->env->fault;
  work->scratch = reinterpret_cast<uint64_t>(c->scratch);
  for (int i = 0; i < c->n_in; i++) work->in.push_back(Keep(c->in[i]));
  for (int i = 0; i < c->n_out; i++) work->out.push_back(Keep(c->out[i]));
  if (work->state->packed) work->in[1].tensor.data = reinterpret_cast<void*>(work->state->address);
  if (c->params) {
    static std::atomic<uint64_t> tokens{1};
    work->token = tokens++;
    if (c->param_address % 16) control().Violation("parameters that are not aligned");
    std::memcpy(c->params, &work->token, sizeof work->token);
  }
  if ((q->recording != nullptr) != (c->slots != nullptr)) control().Violation("slots outside a recording");
  return q->recording ? Remember(work, c->slots, q->recording) : EncodeWork(q, work);
}

void Release(keel_dev, void* state) { delete static_cast<State*>(state); }

keel_rc Prepare(keel_dev, const keel_host* host, const keel_node* node, keel_launch* launch) {
  HOSTILE_FAIL(host, "prepare");
  const keel_impl* impl = Find(host->node_op(node));
  auto inner = std::make_shared<Inner>();
  inner->launch.struct_size = sizeof inner->launch;
  if (impl->prepare) {
    if (keel_rc rc = impl->prepare(nullptr, host, node, &inner->launch)) return rc;
  }
  if (!inner->launch.run) inner->launch.run = impl->run;
  inner->host = host;
  keel_tensor b;
  if (!std::strcmp(host->node_op(node), "matmul") && !host->node_in(node, 1, &b) && b.data)
    if (keel_rc rc = host->memory_new(node, b.data, Keep(&b).bytes, &inner->packed, &inner->address))
      return rc;
  launch->scratch_bytes = inner->launch.scratch_bytes;
  launch->param_bytes = control().params;
  launch->state = new State(std::move(inner));
  launch->release = kSpared<Release>;
  launch->run = kSpared<Run>;
  return KEEL_OK;
}

}  // namespace
}  // namespace hostile

struct keel_recording_s {
  std::vector<uint64_t> table;
  std::vector<std::shared_ptr<hostile::Work>> launches;
};

namespace hostile {

namespace {

keel_rc Remember(const std::shared_ptr<Work>& work, const uint16_t* slots, keel_recording recording) {
  work->slots.assign(slots, slots + work->in.size() + work->out.size() + 2);
  recording->launches.push_back(work);
  return KEEL_OK;
}

// The addresses of a recorded launch with another table.
void Move(Work* work, const std::vector<uint64_t>& from, const uint64_t* to) {
  auto by = [&](size_t i) {
    const uint16_t slot = work->slots[i];
    return slot == KEEL_NO_SLOT ? 0 : to[slot] - from.at(slot);
  };
  size_t i = 0;
  for (std::vector<View>* side : {&work->in, &work->out})
    for (View& v : *side) {
      if (v.there) v.tensor.data = reinterpret_cast<void*>(reinterpret_cast<uint64_t>(v.tensor.data) + by(i));
      i++;
    }
  work->scratch += by(i);
  work->fault += by(i + 1);
}

}  // namespace

keel_rc RecordBegin(keel_queue q, const uint64_t* table, uint32_t n) {
  HOSTILE_FAIL(q->device->host, "record_begin");
  if (!control().records) return q->device->host->fail(KEEL_UNIMPLEMENTED, "no recordings");
  if (q->recording) control().Violation("a recording within a recording");
  q->recording = new keel_recording_s{{table, table + n}, {}};
  control().recordings++;
  return KEEL_OK;
}

keel_rc RecordEnd(keel_queue q, keel_recording* out) {
  keel_recording made = std::exchange(q->recording, nullptr);
  keel_rc rc = KEEL_OK;
  const bool fails = control().Fails("record_end", &rc);
  if (!made) control().Violation("record_end without record_begin");
  if (!made || fails || !out) RecordingFree(q->device, made);
  if (fails) return q->device->host->fail(rc, "injected failure of record_end");
  if (out) *out = made;
  return KEEL_OK;
}

keel_rc Replay(keel_queue q, keel_recording recording, const uint64_t* table, uint32_t n) {
  HOSTILE_FAIL(q->device->host, "replay");
  if (n != recording->table.size()) control().Violation("a table of another size");
  control().replays++;
  for (const std::shared_ptr<Work>& recorded : recording->launches) {
    auto work = std::make_shared<Work>(*recorded);
    Move(work.get(), recording->table, table);
    if (keel_rc rc = EncodeWork(q, work)) return rc;
  }
  return KEEL_OK;
}

void RecordingFree(keel_dev, keel_recording recording) {
  if (!recording) return;
  delete recording;
  control().recordings--;
}

const std::vector<keel_impl>& Impls() {
  static const std::vector<keel_impl> all = [] {
    std::vector<keel_impl> made;
    const keel_plugin& r = Reference();
    for (uint32_t i = 0; i < r.n_impls; i++) {
      keel_impl impl = *reinterpret_cast<const keel_impl*>(reinterpret_cast<const char*>(r.impls) +
                                                           uint64_t{i} * r.impl_stride);
      if (std::strstr(KEEL_HOSTILE_LACKS, (" " + std::string(impl.op) + " ").c_str())) continue;
      impl.name = KEEL_HOSTILE_NAME;
      impl.prepare = kSpared<Prepare>;
      impl.run = nullptr;
      made.push_back(impl);
    }
    return made;
  }();
  return all;
}

}  // namespace hostile
