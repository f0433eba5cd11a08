// importer.h: one import, from the bytes of a model to a Keel module.
//
// run() checks the operators, declares parameters, converts the nodes in order and names the results. A Scope
// maps names to values: of the graph, of a function being inlined, or of a branch.
#pragma once
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>

#include "plugins/onnx/import/call.h"

namespace onnx_import {

struct Scope {
  Edit* edit = nullptr;           // the graph of the module that nodes are added to
  std::span<const Node> nodes;    // of the graph that is converted
  const Scope* parent = nullptr;  // names are also looked up there; null for a function
  int opset = 0;
  int depth = 0;
  std::string prefix;                           // makes inner names unique
  std::unordered_map<Text, std::string> shown;  // inner names with an outer name
  std::unordered_map<Text, ValueP> values;
  AttributeMap attributes;  // attributes of the enclosing function call

  const ValueP* find(Text name) const;  // null: unknown name; a null value: omitted
  std::string show(Text name) const;
};

// Names in quotes, for a message.
template <class Names>
std::string listed(const Names& names) {
  std::string all;
  for (const std::string& name : names) all += cat(all.empty() ? "'" : ", '", name, "'");
  return all.empty() ? "none" : all;
}

// The words between the commas of an option; "": none.
std::vector<Text> words_of(Text list);

class Importer {
 public:
  // Options: "dim.NAME" = "4", "shape.INPUT" = "1,3,?,192": sizes that replace the model's; "length.INPUT" =
  // "3": elements of a sequence; "cut" = "a,b..y": only the part between values; "list" = "operators": the
  // supported ones, in the metadata "onnx.operators".
  Importer(const keel_host* host, const keel_source* source, std::span<const keel_kv> options,
           keel_edit* edit)
      : source_(source), options_(options), edit_(host, source, edit) {}
  void run();

 private:
  using Names = std::set<std::string>;
  struct Control {
    Text domain, op;
    int since;
    const char* attributes;
    void (Importer::*convert)(Call&, const Scope&);
    bool lists = false;    // takes sequences and absent optionals as operands
    bool strings = false;  // takes tensors of strings
  };

  // The whole model, or a part of it (part.cc).
  void cut_model();
  void cut_model(Text names);
  void add_metadata();
  void add_parameters(Scope& scope);
  void add_parameter(const ValueInfo& info, Scope& scope);
  Dims parameter_dims(const ValueInfo& info);
  void name_symbols();
  void fix_sizes();  // sizes.cc: applies the options before parameters are declared
  void fix_dim(Text name, Text size);
  void fix_shape(Text input, Text sizes);
  ValueInfo* fed_input(Text name);
  std::set<std::string> fed_names();
  void learn(const std::string& symbol, int64_t size, const std::string& from);
  std::string symbol_of(const ValueInfo& info, size_t axis) const;
  std::string type_text(Text name) const;
  void note_name(const Node& node, const Call& call, const Scope& scope);
  ValueP fixed(Text name);
  void widen_strings();
  static keel_dt parameter_dtype(const ValueInfo& info);
  ValueP as_strings(const Value& bytes);
  void add_results(const Scope& scope);

  // Sequences and optionals of the model's inputs and outputs (lists.cc).
  struct ListInput {
    Text name;
    std::vector<Text> elements;  // the parameters' names
    bool absent, is_sequence;
    int64_t type;
  };
  const char* given_length(Text name) const;
  void check_lengths(const std::vector<std::string>& names) const;
  void expand_inputs();
  void expand_maps();  // maps.cc
  void expand_map(ValueInfo& input) const;
  void expand_input(const ValueInfo& info, int64_t length, std::vector<ValueInfo>& inputs);
  void check_elements() const;
  void join_inputs(Scope& scope);
  static void note_list(std::string& lines, Text name, const Value& v);
  void add_result(Text name, const ValueP& value);
  void demand(const Names& needs) const;

  // The survey: all unsupported features are reported at once.
  using Unsupported = std::map<std::string, std::pair<int, std::string>>;  // how often, and the first place
  void survey(const std::vector<Node>& nodes, int opset, Unsupported& unsupported,
              std::set<const Function*>& seen) const;
  void refuse_unsupported(const std::vector<Node>& nodes, int opset) const;

  // Node by node.
  void convert(const std::vector<Node>& nodes, Scope& scope);
  void convert(const Node& node, Scope& scope);
  bool convert_rule(Call& call);
  static void add_data(Call& call, const Rule& rule);
  void convert_control(const Control& control, Call& call, const Scope& scope);
  void spend(int64_t nodes);  // of the limit
  bool check_needs(Call& call, const Rule& rule);
  void skip(Call& call);
  void pass_needs(Call& call);
  void inline_function(const Function& f, Call& call, const Scope& scope);
  Scope within(const Call& call, const Scope& scope) const;
  // part: makes the names of each iteration's nodes unique
  std::vector<ValueP> inline_graph(const Graph& g, const std::vector<ValueP>& inputs, Call& call,
                                   const Scope& scope, const std::string& part = "");

  // Operators with graphs as attributes (control.cc, bodies.cc).
  static const Control* find_control(Text domain, Text op);
  static std::span<const Control> controls();

  // operators.cc: "" for operators that are only missing.
  static Text reason_against(Text domain, Text op);
  static std::string operator_list();
  void convert_if(Call& call, const Scope& scope);
  void convert_loop(Call& call, const Scope& scope);
  void convert_scan(Call& call, const Scope& scope);
  void convert_scan_8(Call& call, const Scope& scope);
  void convert_flex_attention(Call& call, const Scope& scope);
  void convert_gradient(Call& call, const Scope& scope);
  void branch_on_data(Call& call, const Scope& scope);
  void loop_by_count(Call& call, const Scope& scope, keel_dim length);
  void loop_by_condition(Call& call, const Scope& scope);
  bool demand_values(Call& call, std::initializer_list<size_t> operands);

  // Bodies inlined once per iteration or element (unroll.cc).
  void unroll(Call& call, const Scope& scope, const std::string& why);
  bool demand_known(Call& call, Value& v, const std::string& what, const std::string& why);
  std::string reason_to_unroll(Call& call, const Graph& g, const Scope& scope) const;
  bool sizes_follow(const std::vector<Node>& nodes, int opset, std::set<Text> names, int64_t* steps) const;
  void convert_sequence_map(Call& call, const Scope& scope);
  bool always_continues(const Graph& g, const Scope& scope) const;

  // A graph of the model as a graph of the module. Its parameters are `first`, then the captured values, then
  // `last`; they have these names in the model's graph, in this order without the captured ones.
  struct Captured {
    std::vector<std::pair<Text, ValueP>>
        values;  // of these, data are operands of the node that runs the body
    std::vector<std::pair<Text, ValueP>> constants;  // known at import, so copied into the body
    Ids ids(Edit& e) const;
  };
  struct Parameter {
    Text name;
    keel_dt dtype;
    Dims dims;
    bool strings = false;  // their bytes, u8[dims.., width]
  };
  struct Body {
    Edit edit;
    int64_t number;
    Ids params;
    std::vector<ValueP> results;
    bool missing;              // a result needs a parameter's value
    std::set<size_t> strings;  // results that are bytes of strings (carried.cc)
    keel_attr attribute() const { return {KEEL_ATTR_GRAPH, 0, number, 0, nullptr}; }
  };
  static void align_strings(Body& a, Body& b);

  // The values that a loop carries (carried.cc): `n` parameters of its body from `param` on, which are its
  // results from `result` on.
  struct Carried {
    size_t n, param, result;
  };
  static Parameter parameter(Call& call, Text name, size_t operand);
  static std::vector<Parameter> carried_parameters(Call& call, const Graph& g, size_t from, size_t until);
  static bool widen(const Carried& carried, Body& body, std::vector<Parameter>& first);
  std::unique_ptr<Body> loop_body(const Graph& g, Call& call, const Scope& scope, const Captured& captured,
                                  std::vector<Parameter>& first, const std::vector<Parameter>& last,
                                  const Carried& carried, std::string* why);
  static Ids carried_operands(Call& call, size_t from, const std::vector<Parameter>& first,
                              const Carried& carried);
  static void set_result(Call& call, size_t k, keel_value v, const Body& body, size_t result);

  // Types (body_types.cc).
  static std::string differing(Call& call, const Graph& yes, Body& a, const Graph& no, Body& b);
  static std::string changing(Call& call, const Graph& g, Body& body, const std::vector<Parameter>& first,
                              const Carried& carried);
  static void expect_tensors(Call& call, const Body& body);
  static void expect_condition(Call& call, const Graph& g, Body& body);
  static void expect_stackable(Call& call, const Graph& g, Body& body, size_t from);
  static void expect_scannable(Call& call, const Ids& scanned, size_t first);

  bool capture(const std::vector<const Graph*>& graphs, const Scope& scope, Captured* out) const;
  std::unique_ptr<Body> body_of(const Graph& g, Call& call, const Scope& scope, const Captured& captured,
                                const std::vector<Parameter>& first, const std::vector<Parameter>& last);
  std::unique_ptr<Body> branch(const Graph& g, Call& call, const Scope& scope, const Captured& captured);
  const Function* function(const Node& node) const;
  AttributeMap attributes(const Node& node, const Scope& scope) const;
  std::vector<ValueP> operands(const Node& node, const Scope& scope) const;

  const keel_source* source_;
  std::span<const keel_kv> options_;
  Edit edit_;
  Model model_;
  std::vector<ListInput> lists_;
  std::deque<std::string> texts_;  // names that the model's file does not have
  Names result_names_;
  std::string string_inputs_, string_outputs_;  // lines of parameters and results that hold strings
  Names needs_;                                 // parameters whose values are needed
  std::map<Text, std::string> symbols_;         // by the model's name of a dim
  Names symbol_names_;
  std::map<std::string, int64_t> fixed_sizes_;        // by the symbol's name
  std::map<Text, std::vector<std::string>> unnamed_;  // by input: symbols of unnamed dims
  std::string node_names_;                            // lines NODE <tab> RESULT, for the model's own graph
  int64_t nodes_left_ = 1000000;                      // limit: nested functions could expand beyond memory
};

int opset_version(const std::vector<OpsetImport>& imports);  // 0: none
const Graph& graph_of(const Call& call, Text attribute);
// The names that a graph and its nested graphs read but do not define.
void free_names(const Graph& g, std::set<Text> defined, std::vector<Text>& out);
bool known_bool(Edit& e, Value& v, bool* value);  // false: not known
// Refuse an operand that is not one bool or not one integer.
void expect_flag(Call& call, size_t i);
void expect_count(Call& call, size_t i);
// Refuses a loop with more results than these, which its body makes.
void expect_results(const Call& call, size_t made);
// Refuses stacked entries, of the body's result with this name, that have several types.
void expect_alike(Call& call, Text name, const std::vector<ValueP>& parts);

}  // namespace onnx_import
