// region.cc: the impl of `call` that runs a region as a program of oneDNN primitives: match, prepare and run.
#include "plugins/cpu/regions/region.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "plugins/cpu/matmul/chain.h"
#include "plugins/cpu/matmul/choice.h"
#include "plugins/cpu/matmul/matmul.h"
#include "plugins/cpu/regions/invalid.h"
#include "plugins/cpu/regions/quantised.h"

namespace keel_cpu {
namespace {

// The mutable state of one run: oneDNN memory objects and views of the operands. A program keeps idle ones
// for reuse.
class Execution {
 public:
  explicit Execution(Program& program, const Body& body) : program_(program), bases_(program.buffers.size()) {
    size_t n_args = 0;
    for (const Step& s : program.steps) n_args += s.args.size();
    args_.reserve(n_args);
    memories_.reserve(n_args);
    for (const Step& s : program.steps)
      for (const Arg& a : s.args) {
        memories_.emplace_back(a.layout, Engine(), nullptr);
        args_.push_back({a.id, memories_.back().get()});
        buffers_.push_back(a.buffer);
        offsets_.push_back(a.offset);
      }
    for (const Step& s : program.steps)
      if (s.own != nullptr) AddCall(*s.own, body);
  }

  // Sets *invalid if a NaN may have been lost; the results are then worthless.
  keel_rc Run(const keel_call* call, char* arena, bool* invalid) {
    for (size_t b = 0; b < bases_.size(); b++) bases_[b] = Base(program_.buffers[b], call, arena);
    for (size_t i = 0; i < memories_.size(); i++) {
      void* base = static_cast<char*>(bases_[static_cast<size_t>(buffers_[i])]) + offsets_[i];
      if (memories_[i].get_data_handle() != base) memories_[i].set_data_handle(base);
    }
    std::optional<InvalidWatch> watch;
    if (program_.loses_nan) watch.emplace();
    size_t arg = 0, own = 0;
    for (size_t i = 0; i < program_.steps.size(); i++) {
      const Step& s = program_.steps[i];
      if (Cancelled(call)) return KEEL_CANCELLED;
      const bool ours = s.own != nullptr && !s.own->launch->reports_nan_loss;
      if (watch && ours && (*invalid = watch->Raised())) return KEEL_OK;
      if (s.own != nullptr) {
        const keel_rc rc = RunOwn(*s.own, calls_[own++], call);
        if (rc != KEEL_OK) return rc;
        if (watch && ours) watch->Clear();  // the plugin's loops may raise the flag without cause
        continue;
      }
      if (s.concurrent > 1) {
        arg += RunConcurrent(&s, arg);
        i += static_cast<size_t>(s.concurrent - 1);
        continue;
      }
      const GangScope scope(s.gang);
      Check(Execute(s, arg));
      arg += s.args.size();
    }
    if (watch) *invalid = watch->Raised();
    return KEEL_OK;
  }

 private:
  dnnl_status_t Execute(const Step& s, size_t arg) {
    return dnnl_primitive_execute(s.run.get(), Stream().get(), static_cast<int>(s.args.size()),
                                  args_.data() + arg);
  }
  static void Check(dnnl_status_t status) {
    dnnl::error::wrap_c_api(status, "a oneDNN primitive of a region failed");
  }
  // Runs the concurrent steps from `first` on; returns the number of their arguments.
  size_t RunConcurrent(const Step* first, size_t arg) {
    std::atomic<dnnl_status_t> worst = dnnl_success;
    RunParts(first->concurrent, [&](int number) {
      size_t at = arg;
      for (int i = 0; i < number; i++) at += first[i].args.size();
      dnnl_status_t status = dnnl_out_of_memory;
      try {
        status = Execute(first[number], at);
      } catch (...) {  // no stream for this thread
      }
      if (status != dnnl_success) worst = status;
    });
    Check(worst);
    size_t n = 0;
    for (int i = 0; i < first->concurrent; i++) n += first[i].args.size();
    return n;
  }

  struct OwnCall {
    std::vector<keel_tensor> views;
    std::vector<const keel_tensor*> in;
    std::vector<keel_tensor*> out;
    keel_call call{};
  };

  static void* Base(const Buffer& b, const keel_call* call, char* arena) {
    switch (b.kind) {
      case Buffer::kIn:
        return call->in[b.index] != nullptr ? keel_ptr(call->in[b.index]) : nullptr;
      case Buffer::kOut:
        return keel_ptr(call->out[b.index]);
      case Buffer::kConstant:
        return const_cast<void*>(b.data);
      default:
        return arena + b.offset;
    }
  }

  void AddCall(const OwnStep& own, const Body& body) {
    OwnCall c;
    std::vector<uint32_t> values = own.in;
    values.insert(values.end(), own.out.begin(), own.out.end());
    c.views.reserve(values.size());
    for (uint32_t v : values) {
      c.views.emplace_back();
      if (v == kNone) continue;
      const BodyValue& value = body.values[v];
      keel_tensor& t = c.views.back();
      t.device = {1, 0};
      t.dtype = DtypeOf(value.dtype);
      t.ndim = static_cast<int32_t>(value.dims.size());
      t.shape = const_cast<int64_t*>(value.dims.data());
    }
    for (size_t i = 0; i < own.in.size(); i++) c.in.push_back(own.in[i] == kNone ? nullptr : &c.views[i]);
    for (size_t i = 0; i < own.out.size(); i++) c.out.push_back(&c.views[own.in.size() + i]);
    c.call.struct_size = KEEL_END(keel_call, env);
    c.call.n_in = static_cast<uint16_t>(c.in.size());
    c.call.n_out = static_cast<uint16_t>(c.out.size());
    c.call.state = own.launch->launch.state;
    calls_.push_back(std::move(c));
    keel_call& call = calls_.back().call;
    call.in = calls_.back().in.data();
    call.out = calls_.back().out.data();
    SetShapeFlags(&call);
  }

  keel_rc RunOwn(const OwnStep& own, OwnCall& c, const keel_call* outer) {
    for (size_t i = 0; i < own.buffers.size(); i++)
      if (own.buffers[i] >= 0) c.views[i].data = bases_[static_cast<size_t>(own.buffers[i])];
    c.call.env = outer->env;
    c.call.scratch = own.scratch >= 0 ? bases_[static_cast<size_t>(own.scratch)] : nullptr;
    if (c.call.count == 0 && c.call.n_out == 1) return KEEL_OK;
    return own.launch->run(&c.call);
  }

  // As libkeel does for its calls.
  static void SetShapeFlags(keel_call* call) {
    constexpr uint32_t kMaxFlat = 16;
    call->count = call->n_out > 0 ? keel_count(call->out[0]) : 0;
    if (call->n_out != 1 || call->n_in > kMaxFlat) return;
    uint32_t flags = KEEL_CALL_FLAT;
    for (uint32_t i = 0; i < call->n_in; i++) {
      const int64_t n = call->in[i] != nullptr ? keel_count(call->in[i]) : 1;
      if (n == 1 && call->count != 1) flags |= KEEL_CALL_ONE(i);
      if (n != 1 && n != call->count) return;
    }
    call->flags = flags;
  }

  Program& program_;
  std::vector<void*> bases_;  // by buffer
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> args_;
  std::vector<int> buffers_;  // of each memory
  std::vector<uint64_t> offsets_;
  std::vector<OwnCall> calls_;
};

// A program with its idle Executions. Beyond that many threads, each run creates its own.
struct Compiled {
  std::unique_ptr<Program> program;
  const Body* body;
  std::array<std::atomic<Execution*>, 8> idle{};

  Compiled(std::unique_ptr<Program> p, const Body* b) : program(std::move(p)), body(b) {}
  ~Compiled() {
    for (auto& place : idle) delete place.load();
  }
  std::unique_ptr<Execution> Borrow() {
    for (auto& place : idle)
      if (Execution* f = place.exchange(nullptr, std::memory_order_acquire))
        return std::unique_ptr<Execution>(f);
    return std::make_unique<Execution>(*program, *body);
  }
  void GiveBack(std::unique_ptr<Execution> f) {
    for (auto& place : idle) {
      Execution* none = nullptr;
      if (place.compare_exchange_strong(none, f.get(), std::memory_order_release)) {
        static_cast<void>(f.release());
        return;
      }
    }
  }
};

struct Region {
  Body body;
  std::vector<Group> groups;
  Constants constants;
  OwnLaunches own;
  uint64_t scratch = 0;
  using Programs = PerThreads<std::unique_ptr<Compiled>>;
  std::unique_ptr<Programs> programs, careful;  // careful: created after a fast program has lost a NaN
  keel::Mutex careful_mutex;
  keel::Mutex building;  // both kinds of programs share constants and launches

  std::unique_ptr<Programs> Make(Builder::Kind kind) {
    return std::make_unique<Programs>([this, kind] {
      std::lock_guard lock(building);
      return std::make_unique<Compiled>(Builder(body, groups, &constants, &own, kind).Run(), &body);
    });
  }
  Programs& Careful() {
    std::lock_guard lock(careful_mutex);
    if (careful == nullptr) careful = Make(Builder::kCareful);
    return *careful;
  }
};

keel_rc RunRegion(const keel_call* call) {
  Region& r = *State<std::unique_ptr<Region>>(call);
  const Team team(call);
  const auto run = [&](Region::Programs& programs, bool* invalid) {
    Compiled& c = *programs.For(team.Size());
    Scratch scratch(call, r.scratch, c.program->arena);
    std::unique_ptr<Execution> frame = c.Borrow();
    const keel_rc rc = frame->Run(call, static_cast<char*>(scratch.Take(c.program->arena)), invalid);
    c.GiveBack(std::move(frame));
    return rc;
  };
  bool invalid = false;
  const keel_rc rc = run(*r.programs, &invalid);
  return rc == KEEL_OK && invalid ? run(r.Careful(), &invalid) : rc;
}

keel_rc KeepRegion(std::unique_ptr<Region> r, keel_launch* launch) {
  r->groups = MakeGroups(r->body);
  r->programs = r->Make(Builder::kFast);
  r->body.open = false;
  const Program& first = *r->programs->First()->program;
  r->scratch = first.arena;
  if (!first.ways.empty()) Explain(launch, first.ways.c_str());
  const uint64_t bytes = r->scratch;
  return Keep(launch, std::move(r), Guard<RunRegion>, bytes);
}

keel_rc PrepareRegion(const Node& node, keel_launch* launch) {
  if (IsChain(node)) return PrepareChain(node, launch);  // now that the sizes are known
  auto r = std::make_unique<Region>();
  if (!ReadBody(node, &r->body)) Throw(KEEL_INTERNAL, "the CPU device cannot read the body of a call");
  return KeepRegion(std::move(r), launch);
}

bool FitsRegion(const Body& body, uint32_t n) {
  const BodyNode& node = body.nodes[n];
  std::vector<PostOp> post;
  if (node.op == "reshape" || node.op == "identity" || FindImpl(node) != nullptr) return true;
  if (IsChannelSum(body, node)) return true;
  if (node.in.empty() || node.out.empty()) return false;
  return body.values[node.out[0]].dtype == KEEL_F32 && PostOpsOf(body, n, node.in[0], &post) &&
         post.size() == 1;
}

// A product for the plugin's own loops: alone it takes a quarter of the time of a region around it, and with
// the ops after it, it is a chain (matmul/chain.h).
bool IsSmallProduct(const Body& body, const BodyNode& n) {
  const auto known = [&](uint32_t v) {
    return std::ranges::all_of(body.values[v].dims, [](int64_t d) { return d >= 0; });
  };
  return n.op == "matmul" && std::ranges::all_of(n.in, known) &&
         !PrefersOneDnn(ReadMatmul(n.node), body.values[n.in[1]].data != nullptr);
}

// A region has at least one contraction for oneDNN, and only nodes that oneDNN or an impl of the plugin
// supports.
int32_t MatchRegion(keel_dev, const keel_host* host, const keel_node* node) {
  try {
    Body body;
    if (!ReadBody({host, node}, &body)) return 0;
    const bool product = IsQuantisedProduct(body);
    bool contraction = product;
    int products = 0, small = 0;
    for (uint32_t i = 0; i < body.nodes.size(); i++) {
      const BodyNode& n = body.nodes[i];
      if (n.op == "call" || (n.op == "matmul_integer" && !product) || !FitsRegion(body, i)) return 0;
      const bool anchor = n.op == "conv_integer" || ((IsContraction(n.op) || IsConvGrad(n.op)) &&
                                                     body.values[n.out[0]].dtype == KEEL_F32);
      const bool is_small = anchor && IsSmallProduct(body, n);
      products += n.op == "matmul", small += is_small;
      contraction |= anchor && !is_small;
    }
    const bool is_mixed = products > 1 && small > 0;  // layers, which are faster one by one
    return contraction && !is_mixed ? 1 : 0;
  } catch (...) {
    return 0;  // declined; whichever impl runs the nodes reports their errors
  }
}

constexpr keel_impl kImpls[] = {
    {"call", 1, 1, nullptr, "oneDNN region", 2, KEEL_IMPL_THREAD_BITS, MatchRegion, Prepare<PrepareRegion>,
     nullptr},
};

}  // namespace

keel_rc PrepareSingleOp(const Node& node, keel_launch* launch) {
  auto r = std::make_unique<Region>();
  BodyOf(node, &r->body);
  return KeepRegion(std::move(r), launch);
}

Impls RegionImpls() { return kImpls; }

}  // namespace keel_cpu
