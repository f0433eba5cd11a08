// link.cc: entries of one module in another (keel.h): linked as an entry (linker.h), or written into a trace.
#include <algorithm>

#include "kernel/api/handles.h"
#include "kernel/base/free_name.h"
#include "kernel/language/graph/names.h"
#include "kernel/language/graph/signature.h"
#include "kernel/program/trace/linker.h"

using namespace keel;

namespace {

absl::Status LinkCases(Linker& linker, Module& to, const Module& from, const std::string& entry,
                       const std::string& as) {
  for (const Case& c : from.cases) {
    if (c.entry != entry) continue;
    Case made = c;
    made.entry = as;
    made.name = FreeName(c.name, [&](const std::string& n) {
      return std::ranges::any_of(to.cases, [&](const Case& other) { return other.name == n; });
    });
    for (auto* side : {&made.inputs, &made.expected})
      for (uint32_t& number : *side) {
        ASSIGN_OR_RETURN(number, linker.ConstantFor(number, nullptr));
      }
    RETURN_IF_ERROR(to.AddCase(std::move(made)));
  }
  return absl::OkStatus();
}

absl::Status Link(Module& to, const Module& from, const char* entry, const char* as) {
  ASSIGN_OR_RETURN(const Entry* found, from.FindEntry(entry ? entry : ""));
  std::string name = as ? as : found->name;
  RETURN_IF_ERROR(CheckName("an entry", name));
  if (to.FindEntry(name).ok())
    return Error(absl::StatusCode::kAlreadyExists, "the module already has an entry '", name, "'");
  Linker linker(to, from, {[&](Dim d) -> absl::StatusOr<Dim> {
                  return IsSymbolic(d) ? to.dims.Parse(from.dims.Print(d)) : absl::StatusOr<Dim>(d);
                }});
  ASSIGN_OR_RETURN(int64_t graph, linker.GraphFor(found->graph));
  RETURN_IF_ERROR(to.AddEntry(name, to.graphs[static_cast<size_t>(graph)].get()));
  for (const auto& [key, value] : from.metadata)
    if (key == SignatureKey(found->name)) RETURN_IF_ERROR(to.SetMetadata(SignatureKey(name), value));
  return LinkCases(linker, to, from, found->name, name);
}

}  // namespace

keel_rc keel_module_link(keel_module* m, keel_module* from, const char* entry, const char* as,
                         keel_error** err) {
  return Guard(err, "module from", {m, from}, [&]() -> absl::Status {
    if (m->state == from->state) return Invalid("a module cannot be linked into itself");
    std::scoped_lock lock(m->state->mutex, from->state->mutex);
    Module& to = *m->state->module;
    size_t graphs = to.graphs.size(), entries = to.entries.size();
    absl::Status linked = Link(to, *from->state->module, entry, as);
    if (!linked.ok() && to.entries.size() == entries && to.graphs.size() > graphs) DropUnused(&to, graphs);
    return linked;
  });
}

keel_rc keel_trace_entry(keel_trace* within, keel_tape* tape, keel_module* m, const char* entry,
                         keel_array* const* in, uint32_t n, keel_array** out, uint32_t room, uint32_t* n_out,
                         keel_error** err) {
  return Guard(err, "within module in[n]* out[room] n_out", {within, m, in, n, out, room, n_out},
               [&, caller = __func__]() -> absl::Status {
                 if (!within->tracing.trace)
                   return Annotate(Error(absl::StatusCode::kFailedPrecondition, caller,
                                         "() requires a program that is being traced"),
                                   kErrorHint, "use a session to run an entry on arrays with elements");
                 std::lock_guard lock(m->state->mutex);
                 const Module& from = *m->state->module;
                 ASSIGN_OR_RETURN(const Entry* found, from.FindEntry(entry ? entry : ""));
                 const Graph& graph = *from.graphs[found->graph];
                 if (graph.results.size() > room)
                   return NoRoom(absl::StrCat("entry \"", found->name, "\""), graph.results.size(), room);
                 EntryRequest wanted{from, graph, found->name, {in, n}, TapeOf(tape, within)};
                 return Give(TraceOf(within)->WriteEntry(wanted), out, room, n_out);
               });
}
