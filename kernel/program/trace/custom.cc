// custom.cc: gradients defined by the program. The results pass through a `call` whose body is the identity,
// so the nodes that computed them stay in place; its vjp is the backward code, recorded in a separate trace.
//
// How to read it: Trace::Custom. The graph of a call contains no constants: captures of the backward code
// become operands of the call. Their gradients are zeros, as are the gradients of the forwarded results.
#include <algorithm>

#include "kernel/language/graph/constant.h"
#include "kernel/language/graph/types.h"
#include "kernel/program/grad/node_writer.h"
#include "kernel/program/grad/slice.h"
#include "kernel/program/trace/tape.h"
#include "kernel/program/trace/trace.h"
#include "kernel/runtime/device/move.h"

namespace keel {
namespace {

using Values = std::vector<ValueId>;

// Zeros from a `dim` node: the graph of a call contains no constants.
ValueId Zeros(NodeWriter& writer, const TensorType& type) {
  ValueId zero = writer.Node(
      "dim", {}, {{"dtype", KEEL_ATTR_DTYPE, static_cast<int64_t>(type.dtype)}, {"of", KEEL_ATTR_DIM, 0}});
  return type.dims.empty() ? zero : writer.Shaped("fill", "dims", zero, type.dims);
}

bool Floating(const TensorType& type) { return IsFloating(type.dtype); }

// An error unless the backward code returned a gradient of the right type for each floating x.
absl::Status CheckGradients(const CustomGradientRequest& request, const Graph& graph) {
  std::span<const ValueId> xs(graph.params.data(), request.xs.size());
  const Values& dxs = graph.results;
  auto type = [&](ValueId v) -> const TensorType& { return graph.values[v].type; };
  auto floats = std::ranges::count_if(xs, [&](ValueId x) { return Floating(type(x)); });
  if (static_cast<size_t>(floats) != dxs.size())
    return Annotate(Invalid("custom gradient \"", request.name, "\": backward returned ", dxs.size(),
                            " gradients, expected ", floats),
                    kErrorHint, "return one gradient per floating argument, in their order");
  for (size_t i = 0, next = 0; i < xs.size(); i++) {
    if (!Floating(type(xs[i]))) continue;
    const TensorType &got = type(dxs[next++]), &of = type(xs[i]);
    if (!MayBeEqual(got, of, graph.module->dims))
      return Annotate(
          Invalid("custom gradient \"", request.name, "\": the gradient of argument ", i, " is ",
                  Print(got, graph.module->dims), ", but the argument is ", Print(of, graph.module->dims)),
          kErrorHint,
          "a gradient has the dtype and dims of its argument: cast it, or sum over broadcast dims");
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> WriteIdentity(Module& module, std::string_view name,
                                       const std::vector<TensorType>& in, size_t first, size_t count) {
  auto number = static_cast<uint32_t>(module.graphs.size());
  ASSIGN_OR_RETURN(Graph * graph, module.AddFreshGraph(name, ""));
  absl::Status status;
  NodeWriter writer(*graph, &status);
  Values params;
  for (const TensorType& type : in) params.push_back(writer.Param(type));
  for (size_t i = 0; i < count && writer.ok(); i++) writer.Results({params[first + i]});
  RETURN_IF_ERROR(status);
  return number;
}

}  // namespace

// Its parameters: xs, ys, cotangents, then its captures from this trace.
absl::StatusOr<std::shared_ptr<Trace>> Trace::WriteBackward(const CustomGradientRequest& request) {
  std::vector<keel_array*> like(request.xs.begin(), request.xs.end());
  like.insert(like.end(), request.ys.begin(), request.ys.end());
  std::ranges::copy_if(request.ys, std::back_inserter(like),
                       [](keel_array* y) { return IsFloating(y->dtype); });
  Results params;
  ASSIGN_OR_RETURN(std::shared_ptr<Trace> back, Begin({request.name, like, SIZE_MAX, true}, &params));
  back->allows_variables_ = false;
  absl::StatusOr<Results> made = request.backward(back, params);
  back->Leave();
  RETURN_IF_ERROR(made.status());
  RETURN_IF_ERROR(back->Finish(*made));
  RETURN_IF_ERROR(CheckGradients(request, *back->graph_));
  return back;
}

absl::StatusOr<Results> Trace::CallCustom(const CustomGradientRequest& request, const Trace& back) {
  Graph& graph = *back.graph_;
  absl::Status status;
  NodeWriter here(*graph_, &status), writer(graph, &status);
  size_t nx = request.xs.size(), ny = request.ys.size();
  Values params(graph.params.begin(), graph.params.end() - static_cast<ptrdiff_t>(back.captures_.size()));
  Values given, results, in;
  std::vector<TensorType> types;
  auto pass = [&](ValueId param, ValueId operand) {
    given.push_back(param);
    in.push_back(here.Node("stop_gradient", {operand}));
  };
  graph_->scope = {0, source_};
  for (size_t i = 0, next = 0; i < nx; i++) {
    const TensorType type = types.emplace_back(graph.values[params[i]].type);
    ASSIGN_OR_RETURN(in.emplace_back(), ValueFor(request.xs[i]));
    if (!Floating(type)) continue;
    ValueId dx = graph.results[next++];
    results.push_back(graph.values[dx].type == type ? dx : writer.Shaped("reshape", "to", dx, type.dims));
  }
  for (size_t i = 0; i < ny; i++) {
    ASSIGN_OR_RETURN(ValueId y, ValueFor(request.ys[i]));
    pass(writer.Param(TensorType(graph.values[params[nx + i]].type)), y);
  }
  for (const auto& [outer, param] : back.captures_) pass(param, outer);
  for (ValueId v = 0; v < graph.values.size(); v++) {
    if (graph.values[v].kind != ValueKind::kConstant) continue;
    ASSIGN_OR_RETURN(ValueId constant, graph_->AddConstant(graph.values[v].index));
    pass(v, constant);
  }
  for (ValueId v : given) {
    const TensorType type = types.emplace_back(graph.values[v].type);
    if (Floating(type)) results.push_back(Zeros(writer, type));
  }
  RETURN_IF_ERROR(status);
  params.insert(params.begin() + static_cast<ptrdiff_t>(nx), given.begin(), given.end());
  ASSIGN_OR_RETURN(uint32_t vjp,
                   ExtractGraph(graph, params, results, Keep::kNone, absl::StrCat(request.name, ".vjp")));
  ASSIGN_OR_RETURN(uint32_t body, WriteIdentity(*module_, request.name, types, nx, ny));
  Attrs attrs = MakeAttrs({{"body", KEEL_ATTR_GRAPH, body}, {"vjp", KEEL_ATTR_GRAPH, vjp}});
  ASSIGN_OR_RETURN(Values called, Add("call", std::move(in), attrs));
  return Symbols(called);
}

absl::StatusOr<Results> Trace::Custom(const CustomGradientRequest& request) {
  std::lock_guard lock(*mutex_);
  RETURN_IF_ERROR(CheckOpen("add a custom gradient"));
  size_t graphs = module_->graphs.size();
  absl::StatusOr<std::shared_ptr<Trace>> back = WriteBackward(request);
  absl::StatusOr<Results> made = back.ok() ? CallCustom(request, **back) : back.status();
  if (!made.ok()) module_->DropGraphs(graphs);
  return made;
}

// Records a call of a small graph that all steps of a training loop share: its reads and captures are feeds.
// The results are new arrays that share the memory of the ys.
absl::StatusOr<Results> Tape::Custom(const CustomGradientRequest& request) {
  auto module = std::make_shared<Module>(context_->catalogue);
  ASSIGN_OR_RETURN(Graph * graph, module->AddGraph("custom"));
  auto trace = std::make_shared<Trace>(module, graph, device_->name());
  std::vector<keel_array*> in(request.xs.begin(), request.xs.end());
  in.insert(in.end(), request.ys.begin(), request.ys.end());
  Results params, same;
  for (keel_array* array : in) {
    ASSIGN_OR_RETURN(params.emplace_back(), trace->Param("", TypeOf(array)));
  }
  std::vector<keel_array*> raw = Raw(params);
  const size_t nx = request.xs.size();
  ASSIGN_OR_RETURN(Results results, trace->Custom({request.name, Arrays(raw).first(nx),
                                                   Arrays(raw).subspan(nx), request.backward}));
  for (const ArrayRef& result : results) RETURN_IF_ERROR(trace->Result("", result.get()));
  std::vector<TraceLink> links;
  RETURN_IF_ERROR(trace->End(&links));
  Values feeds = graph->params;
  for (const TraceLink& link : links) {  // reads of the backward code use the current values
    if (link.value == kNoValue) continue;
    feeds.push_back(link.value);
    ArrayRef& array = params.emplace_back(link.array);
    if (link.variable) {
      ASSIGN_OR_RETURN(array, link.variable->ReadOnHost());
    }
    in.push_back(array.get());
  }
  for (keel_array* y : request.ys) {
    ASSIGN_OR_RETURN(ArrayRef shared, ShareElements(y));
    same.push_back(std::move(shared));
  }
  Record(context_->gradients.Share(Taped::Of(module, graph, std::move(feeds), graph->results)), device_, in,
         Raw(same));
  return same;
}

}  // namespace keel
