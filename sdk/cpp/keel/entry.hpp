// entry.hpp: entries of modules as functions: saved programs are called, and trained further, without their
// source.
//
//   keel::Module module = keel::Module::load(keel::default_context(), "m.keel");
//   keel::Entry serve(module, "serve");                                 // of one result: a Tensor
//   keel::Entry<std::tuple<keel::Tensor, keel::Tensor>> split(module, "split");   // std::vector: any number
//   keel::Variable w(module, "w");
//   keel::Tape tape;
//   keel::Tensor loss = keel::reduce_sum(serve(x));                     // tapes record it
//   w.assign_sub(0.1 * tape.gradient(loss, w));                         // the variables are the module's
//
// How to read it: Entry is a keel::Function whose code (detail::EntryCode) adds the graph of the entry to the
// trace in progress.
#ifndef KEEL_ENTRY_HPP
#define KEEL_ENTRY_HPP
#include "function.hpp"
#include "session.hpp"

namespace keel {

namespace detail {

/// An entry in a module of its own, with shared variables: independent of the original module.
struct StandaloneEntry {
  StandaloneEntry(const Module& from, const std::string& entry) {
    keel_module* made = nullptr;
    call(keel_module_new, here().context(), &made);
    module = std::make_unique<Module>(Module::take(made));
    call(keel_module_link, made, from.get(), entry.empty() ? nullptr : entry.c_str(),
         static_cast<const char*>(nullptr));
    Graph graph = module->graph_of("");
    for (const auto& [param, value] : graph.ports(false)) {
      names.push_back(param);
      call(keel_graph_value_at, graph.get(), value, nullptr, nullptr, &dtypes.emplace_back(),
           static_cast<int64_t*>(nullptr), static_cast<int32_t*>(nullptr));
    }
    results = graph.ports(true).size();
    std::string info = module->info();
    name = member(std::string_view(info).substr(info.find("\"entries\":")), "name");
  }
  /// In a trace adds the nodes of the entry; eagerly runs it.
  std::vector<Array> run(const std::vector<Array>& in) const {
    if (this_trace) return write(in);
    if (tape_handle())
      throw Error(KEEL_PRECONDITION,
                  "entry \"" + name + "\" is a graph: tapes cannot record it under run_eagerly()",
                  "switch run_eagerly() off for the functions that call it");
    return Session(*module, here().device()).prepare().run(in);
  }
  std::vector<Array> write(const std::vector<Array>& in) const {
    std::vector<keel_array*> xs = raw(in), out(results);
    uint32_t n = 0;
    call(keel_trace_entry, this_trace, tape_handle(), module->get(), static_cast<const char*>(nullptr),
         xs.data(), static_cast<uint32_t>(xs.size()), out.data(), static_cast<uint32_t>(out.size()), &n);
    return take_arrays(out);
  }

  std::string name;
  std::vector<std::string> names;  // of the parameters; dtypes in the same order
  std::vector<keel_dt> dtypes;
  size_t results = 0;
  std::unique_ptr<Module> module;
};

template <class R>
struct EntryCode {
  std::shared_ptr<const StandaloneEntry> entry;
  template <std::same_as<Tensor>... A>
  R operator()(const A&... in) const {
    R made{};
    Replace put(entry->run({in.array()...}), wanted().tensors);
    each_leaf(made, put);
    return made;
  }
  static Count wanted() {
    R like{};
    Count count;
    each_leaf(like, count);
    return count;
  }
};

}  // namespace detail

/// R: a Tensor, or a structure of tensors with one for each result. Uses the context and device current at
/// its construction; any thread may call it. The entry checks the sizes of the arguments.
template <class R = Tensor>
class Entry {
 public:
  /// The entry of that name ("": the only one); keeps its own copy of the graph, so `module` may be freed.
  explicit Entry(const Module& module, const std::string& name = "")
      : entry_(std::make_shared<const detail::StandaloneEntry>(module, name)),
        function_(entry_->name, {entry_}, {.args = entry_->names}) {
    detail::Count wanted = detail::EntryCode<R>::wanted();
    if (wanted.vectors ? wanted.tensors <= entry_->results : wanted.tensors == entry_->results) return;
    throw Error(KEEL_INVALID,
                "entry \"" + entry_->name + "\" has " + std::to_string(entry_->results) +
                    " results, the type of this keel::Entry takes " + std::to_string(wanted.tensors),
                "keel::Entry<std::vector<keel::Tensor>> takes any number");
  }

  /// A tensor or variable for each parameter, in order; numbers take the parameter's dtype.
  template <std::convertible_to<Operand>... A>
  R operator()(const A&... args) const {
    if (sizeof...(args) != entry_->names.size()) refuse(sizeof...(args));
    size_t k = 0;
    [[maybe_unused]] auto tensor = [&](const Operand& v) {
      keel_dt dtype = entry_->dtypes[k++];
      return v.weak() ? Tensor(v.settle(detail::here().context(), dtype))
                      : Tensor(Array(keel_array_retain(v.get())));
    };
    return std::apply(function_, std::tuple{tensor(args)...});
  }
  /// The module of this entry alone, with shared variables: for keel::save().
  const Module& module() const { return *entry_->module; }

 private:
  [[noreturn]] void refuse(size_t got) const {
    std::string wanted;
    for (const std::string& name : entry_->names) wanted += (wanted.empty() ? "" : ", ") + name;
    throw Error(KEEL_INVALID, "entry \"" + entry_->name + "\" takes (" + wanted + "), got " +
                                  std::to_string(got) + " arguments");
  }
  std::shared_ptr<const detail::StandaloneEntry> entry_;
  Function<detail::EntryCode<R>> function_;
};

}  // namespace keel
#endif
