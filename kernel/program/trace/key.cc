// key.cc: see key.h. kKinds has a row per leaf kind.
#include "kernel/program/trace/key.h"

#include "absl/strings/str_join.h"
#include "kernel/language/graph/element.h"

namespace keel {
namespace {

std::string ArrayText(const keel_leaf& leaf) {
  const keel_array& a = *leaf.array;
  std::string dims = absl::StrJoin(a.shape(), ", ", [](std::string* out, int64_t d) {
    absl::StrAppend(out, d < 0 ? "?" : absl::StrCat(d));
  });
  return absl::StrCat(Name(a.dtype), "[", dims, "]");
}

struct Kind {
  void (*key)(const keel_leaf&, std::string*);
  std::string (*text)(const keel_leaf&);
};

const Kind kKinds[] = {
    {[](const keel_leaf&, std::string*) {}, [](const keel_leaf&) { return std::string("none"); }},
    {[](const keel_leaf& l, std::string* key) { AppendBytes(key, l.i != 0); },
     [](const keel_leaf& l) { return std::string(l.i ? "bool true" : "bool false"); }},
    {[](const keel_leaf& l, std::string* key) { AppendBytes(key, l.i); },
     [](const keel_leaf& l) { return absl::StrCat("i64 ", l.i); }},
    {[](const keel_leaf& l, std::string* key) {
       AppendBytes(key, l.f);
     },  // compared by bits: -0.0 is not 0.0
     [](const keel_leaf& l) { return "f64 " + PrintElement(DType::kF64, &l.f); }},
    {[](const keel_leaf& l, std::string* key) { key->append(l.s, std::strlen(l.s) + 1); },
     [](const keel_leaf& l) { return absl::StrCat("str \"", l.s, "\""); }},
    {[](const keel_leaf& l, std::string* key) {
       AppendBytes(key, l.array->dtype);
       AppendBytes(key, l.array->view.ndim);
     },
     ArrayText},
};
static_assert(std::size(kKinds) == KEEL_LEAF_ARRAY + 1);

}  // namespace

absl::Status Arguments::Check(bool* symbolic) const {
  for (size_t i = 0; i < leaves.size(); i++) {
    const keel_leaf& leaf = leaves[i];
    if (leaf.kind < 0 || leaf.kind >= static_cast<int32_t>(std::size(kKinds)))
      return Invalid(NameOf(i), ": kind ", leaf.kind, " is not one of the KEEL_LEAF_ kinds");
    if (leaf.kind == KEEL_LEAF_ARRAY && !leaf.array) return Invalid(NameOf(i), " is NULL; expected an array");
    if (leaf.kind == KEEL_LEAF_ARRAY && leaf.array->symbolic()) *symbolic = true;
    if (leaf.kind == KEEL_LEAF_STR && !leaf.s) return Invalid(NameOf(i), " is NULL; expected a string");
  }
  return absl::OkStatus();
}

void Arguments::Key(std::string* kind, LeafDims* dims) const {
  kind->append(structure);
  for (const keel_leaf& leaf : leaves) {
    AppendBytes(kind, leaf.kind);
    kKinds[leaf.kind].key(leaf, kind);
    if (leaf.kind == KEEL_LEAF_ARRAY) {
      for (int64_t d : leaf.array->shape()) dims->push_back(d);
    }
  }
}

std::string Arguments::NameOf(size_t leaf) const {
  const char* name = leaves[leaf].name;
  return name && *name ? absl::StrCat("argument ", name) : absl::StrCat("argument ", leaf);
}

std::string Arguments::ParamName(size_t leaf) const {
  const char* name = leaves[leaf].name;
  return name && *name ? std::string(name) : absl::StrCat("x", leaf);
}

KeptArguments::KeptArguments(const Arguments& arguments) : structure_(arguments.structure) {
  for (const keel_leaf& leaf : arguments.leaves) {
    Leaf& kept = leaves_.emplace_back(Leaf{leaf, "", DType::kNone, 0});
    if (leaf.kind == KEEL_LEAF_STR) kept.text = leaf.s;
    if (leaf.kind != KEEL_LEAF_ARRAY) continue;
    kept.dtype = leaf.array->dtype;
    kept.rank = leaf.array->view.ndim;
    for (int64_t d : leaf.array->shape()) dims_.push_back(d);
  }
}

std::string Arguments::Describe(size_t leaf) const { return kKinds[leaves[leaf].kind].text(leaves[leaf]); }

}  // namespace keel
