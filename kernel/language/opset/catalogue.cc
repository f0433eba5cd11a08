// catalogue.cc: the index of ops. Texts are indexed by their lines "op NAME since N"; an op is parsed on its
// first lookup.

#include <algorithm>
#include <deque>

#include "embed/core_opset.h"
#include "kernel/base/edit_distance.h"
#include "kernel/base/hash.h"
#include "kernel/base/mutex.h"
#include "kernel/language/opset/def.h"

namespace keel {
namespace {

constexpr size_t kMaxTextBytes = 1 << 20, kMaxOps = 4096, kMaxOpName = 256;

// A section of a text; "op " at the start of a line begins one.
struct Section {
  std::string_view text;
  uint32_t line;
};
std::vector<Section> SplitSections(std::string_view text) {
  std::vector<Section> out;
  uint32_t line = 1;
  size_t begin = 0;
  Section now{text.substr(0, 0), 1};
  for (size_t at = 0; at < text.size(); line++) {
    if (text.substr(at, 3) == "op ") {
      now.text = text.substr(begin, at - begin);
      out.push_back(now);
      begin = at;
      now.line = line;
    }
    size_t end = text.find('\n', at);
    at = end == std::string_view::npos ? text.size() : end + 1;
  }
  now.text = text.substr(begin);
  out.push_back(now);
  return out;  // the first section precedes the first op
}

}  // namespace

struct Catalogue::Impl {
  struct Definition {
    std::string name;
    uint32_t version = 0, line = 0;
    std::string_view text;
    std::string_view origin;
    Once parsed;  // afterwards def or error is set
    std::unique_ptr<OpDef> def;
    absl::Status error;
  };
  mutable Mutex mutex;  // guards the maps; definitions never move
  std::deque<std::string> texts;
  std::vector<std::shared_ptr<Definition>> entries;
  HashMap<std::string_view, std::vector<Definition*>> by_name;  // newest version first

  absl::Status Header(std::string_view text, std::string_view origin) const;
  absl::Status AddSection(std::string_view text, std::string_view origin, uint32_t line, bool core,
                          std::vector<std::shared_ptr<Definition>>* out) const;
  absl::Status AddText(std::string_view text, std::string_view origin, bool core);
  absl::StatusOr<const OpDef*> Parsed(Definition* e) const;
  std::string Closest(std::string_view name) const;
  std::vector<Definition*> All() const;
};

absl::Status Catalogue::Impl::Header(std::string_view text, std::string_view origin) const {
  Lexer lex(text, origin);
  RETURN_IF_ERROR(lex.Expect("opset"));
  RETURN_IF_ERROR(lex.Name("the op set's name").status());
  ASSIGN_OR_RETURN(int64_t format, lex.Int("the format of the language"));
  if (format != 1) return Invalid(origin, ": op language ", format, " is not supported; this kernel reads 1");
  return lex.AtEnd() ? absl::OkStatus() : lex.Fail("expected a line that begins with 'op '");
}

absl::Status Catalogue::Impl::AddSection(std::string_view text, std::string_view origin, uint32_t line,
                                         bool core, std::vector<std::shared_ptr<Definition>>* out) const {
  Lexer lex(text, origin, line);
  auto e = std::make_unique<Definition>();
  Token at = lex.PeekSecond();
  RETURN_IF_ERROR(opset::ReadHead(lex, &e->name, &e->version));
  if (e->name.size() > kMaxOpName) return lex.FailAt(at, "the op's name is too long");
  if (!core && e->name.find('.') == std::string::npos)
    return lex.FailAt(at, absl::StrCat("an op of a plugin must have a dotted name, like vendor.", e->name));
  e->line = line;
  e->text = text;
  e->origin = origin;
  for (const auto& other : *out)
    if (other->name == e->name && other->version == e->version)
      return lex.FailAt(at,
                        absl::StrCat("version ", e->version, " of this op is defined twice in this text"));
  out->push_back(std::move(e));
  return absl::OkStatus();
}

absl::Status Catalogue::Impl::AddText(std::string_view text, std::string_view origin, bool core) {
  if (text.size() > kMaxTextBytes)
    return Exhausted(origin, ": the text has ", text.size(), " bytes, the limit is 1 MiB");
  std::lock_guard lock(mutex);
  size_t kept = texts.size();
  std::string_view name = texts.emplace_back(origin), own = core ? text : texts.emplace_back(text);
  auto undo = [&](absl::Status status) {
    texts.resize(kept);
    return status;
  };
  std::vector<Section> sections = SplitSections(own);
  if (absl::Status s = Header(sections[0].text, name); !s.ok()) return undo(s);
  if (entries.size() + sections.size() - 1 > kMaxOps)
    return undo(Exhausted(origin, ": more than ", kMaxOps, " ops"));
  std::vector<std::shared_ptr<Definition>> fresh;
  for (size_t i = 1; i < sections.size(); i++)
    if (absl::Status s = AddSection(sections[i].text, name, sections[i].line, core, &fresh); !s.ok())
      return undo(s);
  for (const auto& e : fresh)
    if (auto found = by_name.find(e->name); found != by_name.end())
      for (const Definition* other : found->second)
        if (other->version == e->version)
          return undo(Error(absl::StatusCode::kAlreadyExists, origin, ": op ", e->name, " ", e->version,
                            " is already defined in ", other->origin));
  auto all = entries;  // copies: if memory runs out, the catalogue is unchanged
  auto names = by_name;
  for (auto& e : fresh) {
    auto& versions = names[e->name];
    auto older = [&](const Definition* other) { return other->version < e->version; };
    versions.insert(std::find_if(versions.begin(), versions.end(), older), e.get());
    all.push_back(std::move(e));
  }
  entries.swap(all);
  by_name.swap(names);
  return absl::OkStatus();
}

absl::StatusOr<const OpDef*> Catalogue::Impl::Parsed(Definition* e) const {
  e->parsed.Do([e] {
    auto def = opset::ParseOp(e->text, e->origin, e->line);
    if (def.ok())
      e->def = *std::move(def);
    else
      e->error = Annotate(def.status(), kErrorOp, e->name);
  });
  if (!e->error.ok()) return e->error;
  return e->def.get();
}

std::string Catalogue::Impl::Closest(std::string_view name) const {
  std::string_view best;
  size_t least = std::max<size_t>(2, name.size() / 3) + 1;
  for (const auto& e : entries) {
    size_t d = EditDistance(name.substr(0, kMaxOpName), e->name, least + 1);
    if (d < least || (d == least && !best.empty() && e->name < best)) {
      least = d;
      best = e->name;
    }
  }
  return std::string(best);
}

auto Catalogue::Impl::All() const -> std::vector<Definition*> {
  std::lock_guard lock(mutex);
  std::vector<Definition*> out;
  for (const auto& [name, versions] : by_name) out.insert(out.end(), versions.begin(), versions.end());
  std::sort(out.begin(), out.end(), [](const Definition* a, const Definition* b) {
    return a->name != b->name ? a->name < b->name : a->version < b->version;
  });
  return out;
}

Catalogue::Catalogue() : impl_(std::make_unique<Impl>()) {
  // Once per process, and never destroyed: 0.2 ms, and contexts may outlive static variables.
  static const std::string& texts = *new std::string(Unpack(core_opset));
  std::string_view rest = texts;
  for (const PackedFile& file : core_opset.files) {
    absl::Status status = impl_->AddText(rest.substr(0, file.size), file.name, true);
    (void)status;  // ParseAll in the tests reports a broken embedded text
    rest.remove_prefix(file.size);
  }
}
Catalogue::~Catalogue() = default;

absl::Status Catalogue::AddText(std::string_view text, std::string_view origin) {
  return impl_->AddText(text, origin, false);
}

absl::StatusOr<const OpDef*> Catalogue::Find(std::string_view name, uint32_t version) const {
  Impl::Definition* found = nullptr;
  {
    std::lock_guard lock(impl_->mutex);
    auto place = impl_->by_name.find(name);
    if (place == impl_->by_name.end()) {
      std::string closest = impl_->Closest(name);
      absl::Status status =
          NotFound("no op is named '", name.substr(0, 80), "'", closest.empty() ? "" : "; did you mean ",
                   closest, closest.empty() ? "" : "?");
      return Annotate(std::move(status), kErrorOp, name.substr(0, 80));
    }
    for (Impl::Definition* e : place->second)
      if (!found && (version == 0 || e->version == version)) found = e;
    if (!found)
      return Annotate(NotFound("op ", name, " has no version ", version, "; the newest here is ",
                               place->second[0]->version),
                      kErrorOp, name);
  }
  return impl_->Parsed(found);
}

std::vector<std::string> Catalogue::Names() const {
  std::vector<std::string> out;
  std::lock_guard lock(impl_->mutex);
  for (const auto& [name, versions] : impl_->by_name) out.emplace_back(name);
  std::sort(out.begin(), out.end());
  return out;
}

absl::Status Catalogue::ParseAll() const {
  for (Impl::Definition* e : impl_->All()) {
    ASSIGN_OR_RETURN(const OpDef* def, impl_->Parsed(e));
    RETURN_IF_ERROR(opset::CheckCalls(*this, *def));
  }
  return absl::OkStatus();
}

}  // namespace keel
