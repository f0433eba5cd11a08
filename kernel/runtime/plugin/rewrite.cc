// rewrite.cc: the host members for passes; kernel/runtime/pass implements them.
#include "kernel/runtime/plugin/host.h"

namespace keel {
namespace {

using Edit = keel_edit;

// The error of a member called outside a pass, or in a pass that ran out of memory.
keel_rc OnlyForPasses(const Edit* e, const char* member) {
  if (!e->graphs) return HostFail(Exhausted("this pass ran out of memory"));
  return HostFail(Error(absl::StatusCode::kFailedPrecondition, member, ": only a pass may call this"));
}

const char* DeviceName(Edit* e) { return e->rewriter ? e->rewriter->DeviceName().c_str() : ""; }

uint32_t Return(std::span<const uint32_t> list, const uint32_t** out) {
  *out = list.data();
  return static_cast<uint32_t>(list.size());
}

uint32_t Nodes(Edit* e, const uint32_t** nodes) {
  return Return(e->rewriter ? e->rewriter->Nodes() : std::span<const uint32_t>(), nodes);
}

const keel_node* NodeOf(Edit* e, uint32_t node) {
  return e->rewriter ? e->rewriter->ViewNode(node) : nullptr;
}

keel_rc Operands(Edit* e, uint32_t node, const keel_value** in, uint32_t* n_in, const keel_value** out,
                 uint32_t* n_out) {
  if (!e->rewriter) return OnlyForPasses(e, "edit_operands");
  const Node* found = e->rewriter->Find(node);
  if (!found) return HostFail(NotFound("node ", node, " does not exist or was removed"));
  if (in) *in = found->in.data();
  if (n_in) *n_in = static_cast<uint32_t>(found->in.size());
  if (out) *out = found->out.data();
  if (n_out) *n_out = static_cast<uint32_t>(found->out.size());
  return KEEL_OK;
}

uint32_t Producer(Edit* e, keel_value v) { return e->rewriter ? e->rewriter->Producer(v) : KEEL_NO_VALUE; }

uint32_t Users(Edit* e, keel_value v, const uint32_t** nodes) {
  if (!nodes) return e->rewriter ? e->rewriter->Uses(v) : 0;
  return Return(e->rewriter ? e->rewriter->Users(v) : std::span<const uint32_t>(), nodes);
}

int32_t Fetched(Edit* e, keel_value v) { return e->rewriter && e->rewriter->Fetched(v); }

keel_rc Before(Edit* e, uint32_t node) {
  return e->rewriter ? HostFail(e->rewriter->Before(node)) : OnlyForPasses(e, "edit_before");
}

keel_rc Replace(Edit* e, keel_value old_value, keel_value new_value) {
  return e->rewriter ? HostFail(e->rewriter->Replace(old_value, new_value))
                     : OnlyForPasses(e, "edit_replace");
}

keel_rc Outline(Edit* e, const uint32_t* nodes, uint32_t n, const char* name, uint32_t* call) {
  if (!e->rewriter) return OnlyForPasses(e, "edit_outline");
  absl::StatusOr<NodeId> made = e->rewriter->Outline({nodes, n}, name ? name : "");
  if (!made.ok()) return HostFail(made.status());
  if (call) *call = *made;
  return KEEL_OK;
}

keel_rc Inline(Edit* e, uint32_t node) {
  return e->rewriter ? HostFail(e->rewriter->Inline(node)) : OnlyForPasses(e, "edit_inline");
}

int32_t Supported(Edit* e, uint32_t node) { return e->rewriter && e->rewriter->Supported(node); }

keel_rc Eval(Edit* e, uint32_t node) {
  return e->rewriter ? HostFail(e->rewriter->Eval(node)) : OnlyForPasses(e, "edit_eval");
}

uint64_t Hash(Edit* e, uint32_t node) { return e->rewriter ? e->rewriter->Hash(node) : 0; }

int32_t Same(Edit* e, uint32_t one, uint32_t other) { return e->rewriter && e->rewriter->Same(one, other); }

keel_rc Splice(Edit* e, uint32_t node, int64_t graph, const keel_value* in, uint32_t n_in) {
  return e->rewriter ? HostFail(e->rewriter->Splice(node, graph, {in, n_in}))
                     : OnlyForPasses(e, "edit_splice");
}

uint32_t EffectsAt(Edit* e, uint32_t node) { return e->rewriter ? e->rewriter->EffectsAt(node) : 0; }

keel_rc OpenBody(Edit* e, int64_t graph, keel_edit** body, const keel_value** params,
                 const keel_value** results) {
  if (!e->rewriter) return OnlyForPasses(e, "edit_body");
  absl::StatusOr<Rewriter*> found = e->rewriter->Body(graph);
  if (!found.ok()) return HostFail(found.status());
  *body = (*found)->edit();
  if (params) *params = (*body)->graph->params.data();
  if (results) *results = (*body)->graph->results.data();
  return KEEL_OK;
}

keel_rc Derive(Edit* e, int64_t graph, const keel_value* params, const keel_value* types, uint32_t n_params,
               const keel_value* results, uint32_t n_results, int64_t* out) {
  if (!e->rewriter) return OnlyForPasses(e, "edit_graph");
  absl::StatusOr<uint32_t> made = e->rewriter->Derive(graph, {params, n_params}, types, {results, n_results});
  if (!made.ok()) return HostFail(made.status());
  *out = *made;
  return KEEL_OK;
}

}  // namespace

void DisableEdit(keel_edit* edit) noexcept { edit->rewriter = nullptr; }

void FillRewriteMembers(keel_host* t) {
  t->edit_device = Guarded<DeviceName, nullptr>;
  t->edit_nodes = Guarded<Nodes, 0>;
  t->edit_node = Guarded<NodeOf, nullptr>;
  t->edit_operands = Guarded<Operands>;
  t->edit_producer = Guarded<Producer, KEEL_NO_VALUE>;
  t->edit_users = Guarded<Users, 0>;
  t->edit_fetched = Guarded<Fetched, 0>;
  t->edit_before = Guarded<Before>;
  t->edit_replace = Guarded<Replace>;
  t->edit_outline = Guarded<Outline>;
  t->edit_inline = Guarded<Inline>;
  t->edit_supported = Guarded<Supported, 0>;
  t->edit_eval = Guarded<Eval>;
  t->edit_hash = Guarded<Hash, 0>;
  t->edit_same = Guarded<Same, 0>;
  t->edit_splice = Guarded<Splice>;
  t->edit_effects = Guarded<EffectsAt, 0>;
  t->edit_body = Guarded<OpenBody>;
  t->edit_graph = Guarded<Derive>;
}

}  // namespace keel
