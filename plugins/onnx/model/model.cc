// model.cc: parses wire fields into the structs of model.h: one function per message, one case per field.
// `depth` counts nested graphs, the only unbounded nesting of messages.
#include "plugins/onnx/model/model.h"

#include "plugins/onnx/import/failure.h"
#include "plugins/onnx/model/wire.h"

namespace onnx_import {
namespace {

constexpr int kMaxDepth = 32;

std::pair<Text, Text> parse_pair(Text message) {
  std::pair<Text, Text> p;
  for (Wire w(message); w.next();) {
    if (w.field == 1) p.first = w.text();
    if (w.field == 2) p.second = w.text();
  }
  return p;
}

Tensor parse_tensor(Text message) {
  Tensor t;
  t.message = message;
  for (Wire w(message); w.next();) {
    switch (w.field) {
      case 1:
        w.append_to(t.dims);
        break;
      case 2:
        t.type = w.integer();
        break;
      case 8:
        t.name = w.text();
        break;
      case 9:
        t.raw = w.text(), t.has_raw = true;
        break;
      case 13:
        t.external.push_back(parse_pair(w.text()));
        break;
      case 14:
        t.is_external = w.integer() == 1;
        break;
      default:
        break;
    }
  }
  return t;
}

Graph parse_graph(Text message, int depth);

Attribute parse_attribute(Text message, int depth) {
  Attribute a;
  for (Wire w(message); w.next();) {
    switch (w.field) {
      case 1:
        a.name = w.text();
        break;
      case 2:
        a.f = w.real();
        break;
      case 3:
        a.i = w.integer();
        break;
      case 4:
        a.s = w.text();
        break;
      case 5:
        a.tensor = std::make_shared<Tensor>(parse_tensor(w.text()));
        break;
      case 6:
        a.graph = std::make_shared<Graph>(parse_graph(w.text(), depth + 1));
        break;
      case 7:
        w.append_to(a.floats);
        break;
      case 8:
        w.append_to(a.ints);
        break;
      case 9:
        a.strings.push_back(w.text());
        break;
      case 20:
        a.type = w.integer();
        break;
      case 21:
        a.reference = w.text();
        break;
      default:
        break;
    }
  }
  return a;
}

Node parse_node(Text message, int depth) {
  Node n;
  for (Wire w(message); w.next();) {
    switch (w.field) {
      case 1:
        n.inputs.push_back(w.text());
        break;
      case 2:
        n.outputs.push_back(w.text());
        break;
      case 3:
        n.name = w.text();
        break;
      case 4:
        n.op = w.text();
        break;
      case 5:
        n.attributes.push_back(parse_attribute(w.text(), depth));
        break;
      case 7:
        n.domain = w.text();
        break;
      case 8:
        n.overload = w.text();
        break;
      default:
        break;
    }
  }
  if (n.domain == "ai.onnx") n.domain = "";
  return n;
}

// "?", "-1", "None": exporters write these for any size; equal ones do not mean equal sizes.
bool is_no_name(Text symbol) {
  if (symbol == "None") return true;
  for (char c : symbol)
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<signed char>(c) < 0)
      return false;
  return true;
}

Dim parse_dim(Text message) {
  Dim d;
  for (Wire w(message); w.next();) {
    if (w.field == 1) d.value = w.integer(), d.known = true;
    if (w.field == 2) d.symbol = w.text();
  }
  if (is_no_name(d.symbol)) d.symbol = {};
  return d;
}

void parse_tensor_type(Text message, ValueInfo& v) {
  v.is_tensor = true;
  for (Wire w(message); w.next();) {
    if (w.field == 1) v.type = w.integer();
    if (w.field != 2) continue;
    v.has_shape = true;
    for (Wire shape(w.text()); shape.next();)
      if (shape.field == 1) v.dims.push_back(parse_dim(shape.text()));
  }
}

void parse_map_type(Text message, ValueInfo& v) {
  v.is_map = true;
  for (Wire w(message); w.next();) {
    if (w.field != 2) continue;
    ValueInfo values;
    for (Wire inner(w.text()); inner.next();)
      if (inner.field == 1) parse_tensor_type(inner.text(), values);
    v.type = values.type;
  }
}

// A tensor, a sequence of tensors, an optional tensor or an optional sequence; is_tensor stays false for all
// other types.
void parse_type(Text message, ValueInfo& v) {
  for (Wire w(message); w.next();) {
    bool& form = w.field == 4 ? v.is_sequence : v.is_optional;
    if (w.field == 1) parse_tensor_type(w.text(), v);
    if (w.field == 5) parse_map_type(w.text(), v);
    if ((w.field != 4 && w.field != 9) || form || v.is_sequence) continue;
    form = true;
    for (Wire inner(w.text()); inner.next();)
      if (inner.field == 1) parse_type(inner.text(), v);
  }
}

ValueInfo parse_value_info(Text message) {
  ValueInfo v;
  for (Wire w(message); w.next();) {
    if (w.field == 1) v.name = w.text();
    if (w.field == 2) parse_type(w.text(), v);
  }
  return v;
}

Graph parse_graph(Text message, int depth) {
  if (depth > kMaxDepth) refuse(KEEL_INVALID, cat("the ONNX file nests graphs deeper than ", kMaxDepth));
  Graph g;
  for (Wire w(message); w.next();) {
    switch (w.field) {
      case 1:
        g.nodes.push_back(parse_node(w.text(), depth));
        break;
      case 2:
        g.name = w.text();
        break;
      case 5:
        g.initializers.push_back(parse_tensor(w.text()));
        break;
      case 11:
        g.inputs.push_back(parse_value_info(w.text()));
        break;
      case 12:
        g.outputs.push_back(parse_value_info(w.text()));
        break;
      case 13:
        g.values.push_back(parse_value_info(w.text()));
        break;
      case 15:
        g.has_sparse = true;
        break;
      default:
        break;
    }
  }
  return g;
}

OpsetImport parse_opset(Text message) {
  OpsetImport o;
  for (Wire w(message); w.next();) {
    if (w.field == 1) o.domain = w.text();
    if (w.field == 2) o.version = w.integer();
  }
  if (o.domain == "ai.onnx") o.domain = "";
  return o;
}

Function parse_function(Text message) {
  Function f;
  for (Wire w(message); w.next();) {
    switch (w.field) {
      case 1:
        f.name = w.text();
        break;
      case 4:
        f.inputs.push_back(w.text());
        break;
      case 5:
        f.outputs.push_back(w.text());
        break;
      case 6:
        f.attributes.push_back(w.text());
        break;
      case 7:
        f.nodes.push_back(parse_node(w.text(), 1));
        break;
      case 9:
        f.opsets.push_back(parse_opset(w.text()));
        break;
      case 10:
        f.domain = w.text();
        break;
      case 11:
        f.defaults.push_back(parse_attribute(w.text(), 1));
        break;
      case 13:
        f.overload = w.text();
        break;
      default:
        break;
    }
  }
  if (f.domain == "ai.onnx") f.domain = "";
  return f;
}

}  // namespace

Model parse_model(Text file) {
  Model m;
  for (Wire w(file); w.next();) {
    switch (w.field) {
      case 1:
        m.ir_version = w.integer();
        break;
      case 2:
        m.producer = w.text();
        break;
      case 3:
        m.producer_version = w.text();
        break;
      case 4:
        m.domain = w.text();
        break;
      case 5:
        m.version = w.integer();
        break;
      case 7:
        m.graph = parse_graph(w.text(), 1), m.has_graph = true;
        break;
      case 8:
        m.opsets.push_back(parse_opset(w.text()));
        break;
      case 14:
        m.metadata.push_back(parse_pair(w.text()));
        break;
      case 25:
        m.functions.push_back(parse_function(w.text()));
        break;
      default:
        break;
    }
  }
  if (!m.has_graph) refuse(KEEL_INVALID, "the file has no ONNX graph; expected an ONNX model");
  return m;
}

}  // namespace onnx_import
