// text_parse.cc: parses graph text: the header and the declarations (meta, const, var, fn, entry, case).
// Declarations precede their uses. Grammar: docs/reference/text_form.md.

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "kernel/language/graph/constant.h"
#include "kernel/language/graph/element.h"
#include "kernel/language/graph/text_reader.h"
#include "kernel/language/graph/types.h"

namespace keel {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 31;

absl::Status ReadMeta(TextReader& r) {
  Token at = r.lex.Peek();
  ASSIGN_OR_RETURN(Spelling key, r.ReadName("a key"));
  RETURN_IF_ERROR(r.lex.Expect("="));
  ASSIGN_OR_RETURN(std::string value, r.lex.String("a value in quotes"));
  return r.Locate(at, r.module.SetMetadata(key.name, value));
}

absl::StatusOr<std::string> ReadElements(TextReader& r, DType dtype, int64_t wanted) {
  Token at = r.lex.Peek();
  std::string bytes;
  int64_t count = 0;
  uint64_t element = 0;
  RETURN_IF_ERROR(r.lex.List("[", "]", [&]() -> absl::Status {
    Token place = r.lex.Peek();
    ASSIGN_OR_RETURN(Literal literal, r.ReadLiteral());
    RETURN_IF_ERROR(r.Encode(place, literal, dtype, &element));
    bytes.resize(BytesOf(dtype, count + 1));
    StoreElement(dtype, &element, count++, bytes.data());
    return absl::OkStatus();
  }));
  if (count != wanted) return r.Fail(at, absl::StrCat("the type has ", wanted, " elements, got ", count));
  return bytes;
}

absl::StatusOr<std::string> ReadData(TextReader& r, const TensorType& type, uint64_t bytes) {
  if (r.lex.AtPunct("..."))
    return r.Fail(r.lex.Peek(), "the data of this constant was omitted when the text was printed");
  if (r.lex.At("hex")) return r.ReadHex(bytes);
  if (r.lex.AtPunct("[") || !type.dims.empty())
    return ReadElements(r, type.dtype, CountOf(type.dims, type.dtype).value_or(0));
  Token at = r.lex.Peek();
  ASSIGN_OR_RETURN(Literal literal, r.ReadLiteral());
  std::string element(bytes, '\0');
  RETURN_IF_ERROR(r.Encode(at, literal, type.dtype, element.data()));
  return element;
}

// 64-byte aligned, like constants of a file.
void SetData(Constant* c, const std::string& bytes) {
  size_t size = (bytes.size() + 63) / 64 * 64;
  void* memory = std::aligned_alloc(64, size ? size : 64);
  if (!memory) throw std::bad_alloc();
  if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
  c->owner = std::shared_ptr<const void>(memory, std::free);
  c->data = memory;
  c->bytes = bytes.size();
}

// `NAME: type = data`, of a constant or a variable.
absl::StatusOr<Constant> ReadValue(TextReader& r, std::string_view what, Token* at) {
  ASSIGN_OR_RETURN(Spelling name, r.ReadName(absl::StrCat("a ", what, "'s name")));
  *at = name.at;
  RETURN_IF_ERROR(r.lex.Expect(":"));
  Constant c;
  ASSIGN_OR_RETURN(c.type, r.ReadType());
  for (Dim d : c.type.dims)
    if (IsSymbolic(d) || d < 0)
      return r.Fail(name.at, absl::StrCat("the dims of a ", what, " are numbers from 0"));
  ASSIGN_OR_RETURN(uint64_t size,
                   r.Locate(name.at, BytesOf(absl::StrCat(what, " '", name.name, "'"), c.type)));
  RETURN_IF_ERROR(r.lex.Expect("="));
  ASSIGN_OR_RETURN(std::string bytes, ReadData(r, c.type, size));
  SetData(&c, bytes);
  c.name = name.name;
  return c;
}

absl::Status ReadConst(TextReader& r) {
  Token at;
  ASSIGN_OR_RETURN(Constant c, ReadValue(r, "constant", &at));
  return r.Locate(at, r.module.AddConstant(std::move(c)).status());
}

absl::Status ReadVar(TextReader& r) {
  Token at;
  ASSIGN_OR_RETURN(Constant c, ReadValue(r, "variable", &at));
  ASSIGN_OR_RETURN(ArrayRef value, ArrayOf(c));
  auto storage = std::make_shared<Variable>(std::move(value));
  return r.Locate(at, r.module.AddVariable(c.name, std::move(storage)).status());
}

// `(x, y) -> (p, _)`: repeats the graph's parameters and names its unnamed results.
absl::Status ReadEntryNames(TextReader& r, Graph& g) {
  size_t i = 0;
  RETURN_IF_ERROR(r.lex.List("(", ")", [&]() -> absl::Status {
    ASSIGN_OR_RETURN(Spelling name, r.ReadName("a parameter's name"));
    if (i < g.params.size() && g.values[g.params[i]].name == name.name) return i++, absl::OkStatus();
    return r.Fail(name.at, absl::StrCat("'", name.name, "' is not parameter ", i, " of @", g.name));
  }));
  if (i != g.params.size())
    return r.lex.Fail(absl::StrCat("@", g.name, " has ", g.params.size(), " parameters"));
  if (!r.lex.Accept("->")) return absl::OkStatus();
  i = 0;
  RETURN_IF_ERROR(r.lex.List("(", ")", [&]() -> absl::Status {
    ASSIGN_OR_RETURN(Spelling name, r.ReadName("a result's name"));
    if (i >= g.results.size())
      return r.Fail(name.at, absl::StrCat("@", g.name, " has ", g.results.size(), " results"));
    std::string given = name.name == "_" && !name.quoted ? "" : name.name;
    for (size_t j = 0; j < g.results.size(); j++)
      if (j != i && !given.empty() && g.result_names[j] == given)
        return r.Fail(name.at, "two results have this name");
    std::string& known = g.result_names[i++];
    if (!known.empty() && known != given)
      return r.Fail(name.at, absl::StrCat("this result of @", g.name, " is called '", known, "'"));
    known = given;
    return absl::OkStatus();
  }));
  return i == g.results.size() ? absl::OkStatus()
                               : r.lex.Fail(absl::StrCat("@", g.name, " has ", g.results.size(), " results"));
}

absl::Status ReadEntry(TextReader& r) {
  ASSIGN_OR_RETURN(Spelling name, r.ReadName("an entry's name"));
  RETURN_IF_ERROR(r.lex.Expect("="));
  RETURN_IF_ERROR(r.lex.Expect("@"));
  ASSIGN_OR_RETURN(Spelling target, r.ReadName("a graph's name"));
  ASSIGN_OR_RETURN(Graph * graph, r.Locate(target.at, r.module.FindGraph(target.name)));
  RETURN_IF_ERROR(r.Locate(name.at, r.module.AddEntry(name.name, graph)));
  return r.lex.AtPunct("(") ? ReadEntryNames(r, *graph) : absl::OkStatus();
}

absl::StatusOr<std::vector<uint32_t>> ReadConstants(TextReader& r) {
  std::vector<uint32_t> out;
  RETURN_IF_ERROR(r.lex.List("(", ")", [&]() -> absl::Status {
    Token at = r.lex.Peek();
    if (r.AtTypedLiteral() || r.AtLiteral()) {
      ASSIGN_OR_RETURN(Literal literal, r.AtTypedLiteral() ? r.ReadTypedLiteral() : r.ReadLiteral());
      DType dtype = literal.weak == Operand::kWeakInt ? DType::kI32 : DType::kF32;
      ASSIGN_OR_RETURN(out.emplace_back(), AddLiteral(r, at, literal, dtype));
    } else {
      ASSIGN_OR_RETURN(Spelling name, r.ReadName("a constant"));
      ASSIGN_OR_RETURN(out.emplace_back(), r.Locate(at, r.module.FindConstant(name.name)));
    }
    return absl::OkStatus();
  }));
  return out;
}

absl::Status ReadCase(TextReader& r) {
  Case c{"", "", {}, {}, 1e-5, 1e-8};
  ASSIGN_OR_RETURN(Spelling name, r.ReadName("a case's name"));
  c.name = name.name;
  RETURN_IF_ERROR(r.lex.Expect("="));
  ASSIGN_OR_RETURN(Spelling entry, r.ReadName("an entry's name"));
  c.entry = entry.name;
  ASSIGN_OR_RETURN(c.inputs, ReadConstants(r));
  RETURN_IF_ERROR(r.lex.Expect("->"));
  ASSIGN_OR_RETURN(c.expected, ReadConstants(r));
  if (r.lex.AtPunct("{"))
    RETURN_IF_ERROR(r.lex.List("{", "}", [&]() -> absl::Status {
      Token at = r.lex.Peek();
      ASSIGN_OR_RETURN(std::string_view key, r.lex.Name("rtol or atol"));
      if (key != "rtol" && key != "atol") return r.Fail(at, "expected rtol or atol");
      RETURN_IF_ERROR(r.lex.Expect("="));
      ASSIGN_OR_RETURN((key == "rtol" ? c.rtol : c.atol), r.ReadDouble("a number"));
      return absl::OkStatus();
    }));
  return r.Locate(name.at, r.module.AddCase(std::move(c)));
}

struct Declaration {
  std::string_view keyword;
  absl::Status (*read)(TextReader&);
};
constexpr Declaration kDeclarations[] = {{"meta", ReadMeta},   {"const", ReadConst}, {"var", ReadVar},
                                         {"fn", ReadFunction}, {"entry", ReadEntry}, {"case", ReadCase}};

// "opset core 1": the catalogue that the text was written for; optional.
absl::Status ReadOpset(TextReader& r) {
  if (!r.lex.Accept("opset")) return absl::OkStatus();
  RETURN_IF_ERROR(r.lex.Expect("core"));
  Token at = r.lex.Peek();
  ASSIGN_OR_RETURN(int64_t version, r.lex.Int("the version of the opset"));
  if (version == 1) return absl::OkStatus();
  return r.Fail(at, absl::StrCat("this text requires version ", version,
                                 " of the opset core; this reader supports version 1"));
}

absl::Status ReadModule(TextReader& r) {
  RETURN_IF_ERROR(r.lex.Expect("keel"));
  Token at = r.lex.Peek();
  ASSIGN_OR_RETURN(int64_t version, r.lex.Int("the version of the text form"));
  if (version != 1)
    return r.Fail(
        at, absl::StrCat("this is version ", version, " of the text form; this reader supports version 1"));
  RETURN_IF_ERROR(ReadOpset(r));
  while (!r.lex.AtEnd()) {
    const Declaration* found = nullptr;
    for (const Declaration& d : kDeclarations)
      if (r.lex.At(d.keyword)) found = &d;
    if (!found) return r.lex.Fail("expected meta, const, var, fn, entry or case");
    r.lex.Next();
    RETURN_IF_ERROR(found->read(r));
  }
  return absl::OkStatus();
}

// Adds the source lines around the position that each message starts with.
absl::Status WithLines(const absl::Status& s, std::string_view text) {
  std::string_view message = s.message();
  uint32_t line = 0, number = 1;
  if (std::from_chars(message.data(), message.data() + message.size(), line).ec != std::errc()) return s;
  std::string out(message);
  for (size_t begin = 0; begin <= text.size() && number <= line + 2; number++) {
    size_t end = std::min(text.find('\n', begin), text.size());
    if (number + 2 >= line) {
      std::string_view shown = text.substr(begin, std::min<size_t>(end - begin, 160));
      absl::StrAppend(&out, "\n", number == line ? "> " : "  ", number, " | ", shown,
                      end - begin > 160 ? "..." : "");
    }
    begin = end + 1;
  }
  return Reword(s, out);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> ParseText(std::string_view text,
                                                  std::shared_ptr<Catalogue> catalogue) {
  if (text.size() > kMaxTextBytes)
    return Exhausted("the text has ", text.size(), " bytes; the limit is ", kMaxTextBytes);
  auto module = std::make_unique<Module>(std::move(catalogue));
  TextReader reader(text, *module);
  if (absl::Status s = ReadModule(reader); !s.ok()) return WithLines(s, text);
  return module;
}

}  // namespace keel
