// build.cc: from groups and single nodes to steps; buffers.cc has their buffers.
#include <algorithm>

#include "plugins/cpu/regions/relu_pool_grad.h"
#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {

// Blocked layouts are as fast in the forward pass, but not in gradients; measured with AVX-512 only.
// A single gradient has plain operands and results: a reorder to oneDNN's choice takes a third of the time.
bool Builder::IsTraining(const Body& body) {
  const auto grad = [](const BodyNode& n) { return IsConvGrad(n.op); };
  return SimdLevel() == 2 && body.nodes.size() > 1 && std::any_of(body.nodes.begin(), body.nodes.end(), grad);
}

void Builder::Emit(dnnl::primitive run, std::vector<Arg> args) {
  std::erase_if(args, [](const Arg& a) { return a.buffer < 0; });
  for (const Arg& a : args) Use(a.buffer);
  const GangNeeds gang = GangNeedsOf(run);
  program_->steps.push_back({std::move(run), std::move(args), nullptr, gang});
}

void Builder::EmitConcurrent(const std::function<void()>& emit) {
  const int threads = keel_threads_get(), first = static_cast<int>(program_->steps.size());
  SetThreads(1);
  try {
    emit();
  } catch (...) {
    SetThreads(threads);
    throw;
  }
  SetThreads(threads);
  const int end = static_cast<int>(program_->steps.size());
  if (end == first) return;
  program_->steps[static_cast<size_t>(first)].concurrent = end - first;
  for (Buffer& b : program_->buffers) {  // their live ranges overlap, so no two share memory
    if (b.first > first) b.first = first;
    if (b.last >= first) b.last = end - 1;
  }
}

const OwnLaunch* Builder::Launch(const BodyNode& node) {
  if (const auto found = launches_->find(&node); found != launches_->end()) return &found->second;
  const keel_impl* impl = FindImpl(node);
  if (impl == nullptr)
    Throw(KEEL_UNIMPLEMENTED, "the CPU device has no impl for " + node.op + " in a region");
  OwnLaunch& own = (*launches_)[&node];
  own.name = impl->name;
  own.launch.struct_size = sizeof(keel_launch);
  if (impl->prepare != nullptr) {
    const keel_rc rc = impl->prepare(nullptr, node.node.host, node.node.node, &own.launch);
    if (rc != KEEL_OK) throw Reported{rc};
  }
  own.run = own.launch.run != nullptr ? own.launch.run : impl->run;
  return &own;
}

void Builder::EmitOwn(const BodyNode& node, const Layout* layout) {
  const auto of = [&](uint32_t v) { return layout != nullptr ? *layout : PlainOf(v); };
  auto own = std::make_unique<OwnStep>();
  own->launch = Launch(node);
  own->in = node.in;
  own->out = node.out;
  for (uint32_t v : node.in) own->buffers.push_back(v == kNone ? -1 : BufferIn(v, of(v)));
  for (uint32_t v : node.out) own->buffers.push_back(ResultBuffer(v, of(v)));
  if (own->launch->launch.scratch_bytes > 0) own->scratch = Scratch(own->launch->launch.scratch_bytes);
  const char* const way =
      own->launch->launch.steps != nullptr ? own->launch->launch.steps : own->launch->name;
  Explain(node, way != nullptr ? way : "own loops");
  EmitOwn(std::move(own));
}
void Builder::EmitOwn(std::unique_ptr<OwnLaunch> made, std::vector<uint32_t> in, std::vector<uint32_t> out,
                      std::vector<int> buffers) {
  made->run = made->launch.run;
  auto own = std::make_unique<OwnStep>();
  own->launch = made.get();
  own->in = std::move(in);
  own->out = std::move(out);
  own->buffers = std::move(buffers);
  if (made->launch.scratch_bytes > 0) own->scratch = Scratch(made->launch.scratch_bytes);
  own->made = std::move(made);
  EmitOwn(std::move(own));
}
void Builder::EmitOwn(std::unique_ptr<OwnStep> own) {
  for (int b : own->buffers)
    if (b >= 0) Use(b);
  if (own->scratch >= 0) Use(own->scratch);
  program_->steps.push_back({{}, {}, std::move(own)});
}

void Builder::Explain(const BodyNode& node, const std::string& way) {
  const auto number = static_cast<size_t>(&node - body.nodes.data());
  if (explained_[number]) return;
  explained_[number] = true;
  if (body.single) return void(program_->ways = way);
  program_->ways += (program_->ways.empty() ? "" : "\n") + node.name + "\t" + node.op + "\t" + way;
}
bool Builder::EndsWithOwn() const {
  return !program_->steps.empty() && program_->steps.back().own != nullptr;
}

bool Builder::Allows(const PostOp& op) {
  if (op.loses_nan && kind_ == kCareful) return false;
  program_->loses_nan |= op.loses_nan;
  return true;
}
// Prepares launches that a careful program will need while node attributes can still be read.
void Builder::PrepareOwn() {
  for (uint32_t n = 0; n < body.nodes.size(); n++) {
    const auto is_anchor = [n](const Group& g) { return g.anchor == n; };
    if (std::any_of(groups_.begin(), groups_.end(), is_anchor) || IsConvGrad(body.nodes[n].op)) continue;
    if (FindImpl(body.nodes[n]) != nullptr) Launch(body.nodes[n]);
  }
}

// The plugin's own impls handle empty tensors.
bool Builder::Empty(const BodyNode& node) const {
  const auto empty = [this](uint32_t v) { return v != kNone && Value(v).Count() == 0; };
  return std::any_of(node.in.begin(), node.in.end(), empty) ||
         std::any_of(node.out.begin(), node.out.end(), empty);
}

void Builder::EmitNode(uint32_t n) {
  const BodyNode& node = body.nodes[n];
  const bool empty = Empty(node) && !IsChannelSum(body, node);
  const size_t steps = program_->steps.size();
  if (empty || !FindEmitter(node.op)(*this, node)) EmitOwn(node);
  if (program_->steps.size() > steps) Explain(node, EndsWithOwn() ? "own loops" : "oneDNN");
  done_[n] = true;
}

void Builder::MarkDone(const Group& group) {
  done_[group.anchor] = true;
  for (uint32_t n : group.nodes) done_[n] = true;
}

// The group whose contraction alone reads the result of this one, or null.
const Group* Builder::OnlyUser(const Group& group) const {
  const BodyValue& made = Value(body.nodes[group.Last()].out[0]);
  if (made.result != kNone || made.users.size() != 1) return nullptr;
  const auto found = std::ranges::find(groups_, made.users[0], &Group::anchor);
  return found == groups_.end() ? nullptr : &*found;
}

// Emits the whole group as one primitive if oneDNN has an optimised one, else the longest prefix that it has.
void Builder::EmitGroup(const Group& group) {
  const BodyNode& anchor = body.nodes[group.anchor];
  if (done_[group.anchor]) return;
  if (!IsContraction(anchor.op)) return EmitQuantisedGroup(group);
  const Group* user = OnlyUser(group);
  if (user != nullptr && EmitStripPair(*this, group, *user)) return MarkDone(group), MarkDone(*user);
  const auto emit = anchor.op == "conv" ? EmitConv : EmitMatmul;
  size_t count = group.nodes.size() + 1;
  bool ok = false;
  while (!ok && count > 0) ok = emit(*this, anchor, MakeRecipe(body, group, --count));
  if (!ok) {
    Explain(anchor, "own loops: oneDNN has no optimised code for it");
    EmitOwn(anchor);
  }
  done_[group.anchor] = true;
  for (size_t i = 0; i < count; i++) done_[group.nodes[i]] = true;
  for (size_t i = count; i < group.nodes.size(); i++) EmitNode(group.nodes[i]);
}

// One primitive, or node by node.
void Builder::EmitQuantisedGroup(const Group& group) {
  const bool whole = EmitQuantised(*this, group);
  if (whole)
    Explain(body.nodes[group.anchor],
            EndsWithOwn() ? "own loops of 8-bit integers" : "oneDNN, 8-bit integers");
  std::vector<uint32_t> nodes = group.before;
  std::sort(nodes.begin(), nodes.end());
  nodes.push_back(group.anchor);
  nodes.insert(nodes.end(), group.nodes.begin(), group.nodes.end());
  for (uint32_t n : nodes) {
    if (whole)
      done_[n] = true;
    else
      EmitNode(n);
  }
}

void Builder::EmitGradGroup(const ReluPoolGrad& grad) {
  for (uint32_t n : grad.nodes) done_[n] = n != grad.nodes.back();
  EmitReluPoolGrad(*this, grad);
  done_[grad.nodes.back()] = true;
}

void Builder::Finish() {
  for (uint32_t i = 0; i < body.results.size(); i++) {
    const uint32_t v = body.results[i];
    const int made = BufferIn(v, PlainOf(v));
    const Buffer& b = program_->buffers[static_cast<size_t>(made)];
    if (b.kind == Buffer::kOut && b.index == i) continue;
    const Layout plain = PlainOf(v);
    const int out = New({Buffer::kOut, i, nullptr, plain.get_size()});
    Emit(dnnl::reorder(dnnl::reorder::primitive_desc(Engine(), plain, Engine(), plain, UserScratch())),
         {{DNNL_ARG_FROM, plain, made}, {DNNL_ARG_TO, plain, out}});
  }
}

std::unique_ptr<Program> Builder::Run() {
  program_ = std::make_unique<Program>();
  for (uint32_t v = 0; v < body.n_in; v++) {
    const BodyValue& value = Value(v);
    const uint64_t bytes = PlainOf(v).get_size();
    AssignBuffer(v, PlainOf(v),
                 value.data != nullptr ? Constant(value.data, bytes) : New({Buffer::kIn, v, nullptr, bytes}));
  }
  std::vector<const Group*> by_last(body.nodes.size());
  std::vector<const ReluPoolGrad*> grads(body.nodes.size());
  std::vector<bool> grouped(body.nodes.size());
  for (const Group& g : groups_) {
    by_last[g.Last()] = &g;
    grouped[g.anchor] = true;
    for (const auto& nodes : {g.nodes, g.before})
      for (uint32_t n : nodes) grouped[n] = true;
  }
  const std::vector<ReluPoolGrad> found = FindReluPoolGrads(body);
  for (const ReluPoolGrad& grad : found) {
    grads[grad.nodes.back()] = &grad;
    for (uint32_t n : grad.nodes) grouped[n] = true;
  }
  for (uint32_t n = 0; n < body.nodes.size(); n++) {
    if (by_last[n] != nullptr)
      EmitGroup(*by_last[n]);
    else if (grads[n] != nullptr)
      EmitGradGroup(*grads[n]);
    else if (!grouped[n])
      EmitNode(n);
  }
  Finish();
  PlanArena();
  if (program_->loses_nan && body.open) PrepareOwn();
  return std::move(program_);
}

}  // namespace keel_cpu
