// info.cc: the content of a module as JSON.
#include <map>

#include "kernel/api/handles.h"
#include "kernel/base/json.h"

namespace keel {
namespace {

void WriteValue(const Graph& graph, ValueId v, std::string_view name, Json& json) {
  const TensorType& type = graph.values[v].type;
  json.Key("name").String(name);
  json.Key("type").String(Print(type, graph.module->dims));
  json.Key("dtype").String(Name(type.dtype));
  json.Key("dims").BeginArray();
  for (Dim d : type.dims) IsSymbolic(d) ? json.String(graph.module->dims.Print(d)) : json.Int(d);
  json.EndArray();
}

void WriteSignature(const Graph& graph, Json& json) {
  json.Objects("params", graph.params, [&](ValueId v) { WriteValue(graph, v, graph.ValueName(v), json); });
  size_t i = 0;
  json.Objects("results", graph.results, [&](ValueId v) {
    const std::string& name = graph.result_names[i++];
    WriteValue(graph, v, name.empty() ? graph.ValueName(v) : name, json);
  });
}

void WriteEffects(const Graph& graph, Json& json) {
  const Effects& e = graph.effects;
  json.Key("effects").BeginObject();
  for (const auto& [key, list] : {std::pair("reads", &e.reads), std::pair("writes", &e.writes)}) {
    json.Key(key).BeginArray();
    for (uint32_t v : *list) json.String(graph.module->variables[v].name);
    json.EndArray();
  }
  json.Key("prints").Bool(e.err || e.out);
  json.Key("may_stop").Bool(e.guard);
  json.EndObject();
}

void WriteGraph(const Graph& graph, Json& json) {
  std::map<std::string, int64_t> ops;
  for (const Node& node : graph.nodes) ops[std::string(OpName(*node.op))]++;
  json.Key("name").String(graph.name);
  json.Key("nodes").Int(static_cast<int64_t>(graph.nodes.size()));
  WriteSignature(graph, json);
  json.Key("ops").BeginObject();
  for (const auto& [op, count] : ops) json.Key(op).Int(count);
  json.EndObject();
  WriteEffects(graph, json);
}

void WriteEntries(const Module& m, Json& json) {
  json.Objects("entries", m.entries, [&](const Entry& e) {
    json.Key("name").String(e.name);
    json.Key("graph").String(m.graphs[e.graph]->name);
    WriteSignature(*m.graphs[e.graph], json);
  });
}

void WriteConstants(const Module& m, Json& json) {
  uint64_t bytes = 0;
  for (const Constant& c : m.constants) bytes += c.bytes;
  json.Key("constants").Int(static_cast<int64_t>(m.constants.size()));
  json.Key("constant_bytes").Int(static_cast<int64_t>(bytes));
}

void WriteVariables(const Module& m, Json& json) {
  json.Objects("variables", m.variables, [&](const ModuleVariable& v) {
    json.Key("name").String(v.name);
    json.Key("type").String(Print(v.type, m.dims));
    json.Key("bytes").Int(static_cast<int64_t>(v.storage->Read()->bytes()));
  });
}

void WriteCases(const Module& m, Json& json) {
  json.Objects("cases", m.cases, [&](const Case& c) {
    json.Key("name").String(c.name).Key("entry").String(c.entry);
    json.Key("inputs").Int(static_cast<int64_t>(c.inputs.size()));
    json.Key("expected").Int(static_cast<int64_t>(c.expected.size()));
    json.Key("rtol").Double(c.rtol).Key("atol").Double(c.atol);
  });
}

}  // namespace

std::string ModuleInfo(const Module& m) {
  Json json;
  json.BeginObject();
  WriteEntries(m, json);
  json.Objects("graphs", m.graphs, [&](const auto& graph) { WriteGraph(*graph, json); });
  WriteConstants(m, json);
  WriteVariables(m, json);
  json.Key("metadata").BeginObject();
  for (const auto& [key, value] : m.metadata) json.Key(key).String(value);
  json.EndObject();
  WriteCases(m, json);
  json.EndObject();
  return json.Take();
}

}  // namespace keel
