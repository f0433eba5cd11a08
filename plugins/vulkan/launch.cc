// launch.cc: encoding of launches, eager and recorded.
#include "launch.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <set>
#include <string>

#include "recording.h"
#include "sdk/plugin/guard.h"

namespace vulkan {
namespace {

uint32_t Addresses(uint32_t n_in, uint32_t n_out) { return n_in + n_out + 2; }

uint64_t AddressOf(const keel_tensor* t) { return t ? reinterpret_cast<uint64_t>(keel_ptr(t)) : 0; }

// In the order of keel_call.slots.
void WriteAddresses(const keel_call* call, uint64_t* out) {
  for (uint32_t i = 0; i < call->n_in; i++) *out++ = AddressOf(call->in[i]);
  static const uint64_t astray = settings().plant == "write" ? uint64_t{1} << 40 : 0;
  for (uint32_t i = 0; i < call->n_out; i++) *out++ = AddressOf(call->out[i]) + astray;
  *out++ = reinterpret_cast<uint64_t>(call->scratch);
  *out++ = call->env->fault;
  *out = call->fault | KEEL_RANGE;
}

void Relocate(keel_recording r, const keel_call* call, const uint64_t* addresses) {
  for (uint32_t i = 0; i < Addresses(call->n_in, call->n_out); i++) {
    const uint16_t slot = call->slots[i];
    if (slot == KEEL_NO_SLOT || !addresses[i]) continue;
    r->relocations.push_back({call->param_address + 8 * i, addresses[i] - r->table[slot], slot, 0});
  }
}

// KEEL_VULKAN_PLANT=prepare or run: the first one throws, for the test of sdk/plugin/guard.h.
void ThrowIfPlanted(const char* where) {
  static const std::string planted = settings().plant;
  static std::atomic<bool> thrown = false;
  if (!planted.empty() && planted == where && !thrown.exchange(true)) throw std::bad_alloc();
}

keel_rc Run(const keel_call* call) {
  ThrowIfPlanted("run");
  const Work& work = *static_cast<const Work*>(call->state);
  if (!work.fails.empty()) return call->env->queue->device->host->fail(KEEL_RANGE, work.fails.c_str());
  if (!work.groups.x) return KEEL_OK;
  if (work.copies && keel_ptr(call->in[0]) == keel_ptr(call->out[0])) return KEEL_OK;
  keel_queue q = call->env->queue;
  VkCommandBuffer commands;
  if (keel_rc rc = q->ForLaunch(call, work.op, &commands)) return rc;
  auto* addresses = static_cast<uint64_t*>(call->params);
  WriteAddresses(call, addresses);
  std::memcpy(addresses + Addresses(call->n_in, call->n_out) + 1, work.all_numbers.data(),
              work.all_numbers.size());
  if (q->recording && call->slots) Relocate(q->recording, call, addresses);
  DispatchAt(q->device, commands, work, call->param_address);
  for (const Dispatch& each : work.more) {
    GlobalBarrier(commands);
    DispatchAt(q->device, commands, each, call->param_address);
  }
  return KEEL_OK;
}

// A name that stays valid; there are as many as ops.
const char* Kept(const char* op) {
  static std::mutex mutex;
  static auto* const all = new std::set<std::string>;  // lost devices are described at exit, too
  std::lock_guard lock(mutex);
  return all->emplace(op).first->c_str();
}

void Release(keel_dev, void* state) { delete static_cast<Work*>(state); }

}  // namespace

void DispatchAt(keel_dev d, VkCommandBuffer commands, const Dispatch& dispatch, uint64_t params) {
  const uint64_t push[] = {params, dispatch.step, dispatch.numbers};
  static_assert(sizeof push == kPushBytes);
  const Groups& groups = dispatch.groups;
  vk().CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch.pipeline);
  vk().CmdPushConstants(commands, d->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, push);
  vk().CmdDispatch(commands, groups.x, groups.y, groups.z);
}

keel_rc Finish(const keel_host* host, const keel_node* node, const Work& work, keel_launch* launch) {
  ThrowIfPlanted("prepare");
  uint32_t n_in = 0, n_out = 0;
  host->node_arity(node, &n_in, &n_out);
  auto* state = new Work(work);
  state->op = Kept(host->node_op(node));
  launch->state = state;
  launch->release = Release;
  launch->run = keel::plugin::Guarded<Run>;
  launch->scratch_bytes = work.scratch_bytes;
  launch->param_bytes = 8 * (Addresses(n_in, n_out) + 1) + work.all_numbers.size();
  return KEEL_OK;
}

}  // namespace vulkan
