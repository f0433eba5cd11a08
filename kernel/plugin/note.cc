// note.cc: is a file a plugin for this libkeel? Answered from its bytes alone, before dlopen, so that a
// refused plugin runs no code. ELF, 64 bit, little-endian: program headers -> PT_NOTE -> "KEEL".
#include <elf.h>

#include <cstring>
#include <fstream>
#include <vector>

#include "kernel/plugin/registry.h"

namespace keel {
namespace {

constexpr uint64_t kMaxNotes = 1 << 20;
constexpr char kCutOff[] = "not a plugin: the ELF file is cut off";

class File {
 public:
  explicit File(const std::string& path) : stream_(path, std::ios::binary | std::ios::ate) {
    if (ok()) size_ = static_cast<uint64_t>(stream_.tellg());
  }
  bool ok() const { return stream_.good(); }
  uint64_t size() const { return size_; }
  bool Read(uint64_t at, void* to, uint64_t n) {
    stream_.clear();
    stream_.seekg(static_cast<std::streamoff>(at));
    stream_.read(static_cast<char*>(to), static_cast<std::streamsize>(n));
    return stream_.gcount() == static_cast<std::streamsize>(n);
  }

 private:
  std::ifstream stream_;
  uint64_t size_ = 0;
};

// Walks the notes in `bytes`; true when ours was found.
bool FindNote(const std::vector<char>& bytes, keel_note* out) {
  size_t at = 0;
  while (bytes.size() - at >= 12) {
    uint32_t head[3];
    std::memcpy(head, &bytes[at], sizeof head);
    uint64_t name = (uint64_t{head[0]} + 3) / 4 * 4, desc = (uint64_t{head[1]} + 3) / 4 * 4;
    if (name + desc > bytes.size() - at - 12) return false;
    if (head[0] == 5 && head[2] == 1 && desc >= 16 && !std::memcmp(&bytes[at + 12], "KEEL", 5)) {
      std::memcpy(out, &bytes[at], sizeof *out);
      return true;
    }
    at += 12 + name + desc;
  }
  return false;
}

absl::StatusOr<keel_note> ReadNote(const std::string& path) {
  File file(path);
  Elf64_Ehdr elf;
  if (!file.ok()) return FileError(errno, "cannot be read");
  if (!file.Read(0, &elf, sizeof elf) || std::memcmp(elf.e_ident, ELFMAG, SELFMAG))
    return Invalid("not a plugin: not an ELF shared library");
  if (elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_ident[EI_DATA] != ELFDATA2LSB)
    return Invalid("not a plugin: an ELF file for another kind of machine");
  // The linker maps what the headers name without asking whether the file holds it.
  if (elf.e_shoff + uint64_t{elf.e_shnum} * elf.e_shentsize > file.size()) return Invalid(kCutOff);
  keel_note note;
  bool found = false;
  for (uint32_t i = 0; i < elf.e_phnum; i++) {
    Elf64_Phdr part;
    if (elf.e_phentsize < sizeof part ||
        !file.Read(elf.e_phoff + uint64_t{i} * elf.e_phentsize, &part, sizeof part))
      return Invalid(kCutOff);
    if (part.p_offset > file.size() || part.p_filesz > file.size() - part.p_offset) return Invalid(kCutOff);
    if (found || part.p_type != PT_NOTE || part.p_filesz > kMaxNotes) continue;
    std::vector<char> bytes(part.p_filesz);
    if (!file.Read(part.p_offset, bytes.data(), bytes.size())) return Invalid(kCutOff);
    found = FindNote(bytes, &note);
  }
  if (found) return note;
  return Invalid("not a plugin: a shared library without the KEEL note that KEEL_PLUGIN() writes");
}

std::string BuildName(uint32_t build) {
  return build == 0   ? "plain"
         : build == 1 ? "address sanitizer"
         : build == 2 ? "thread sanitizer"
                      : "unknown";
}

absl::Status CheckVersion(const keel_note& n) {
  if (n.major != KEEL_ABI_MAJOR)
    return Invalid("ABI major version ", n.major, ", this libkeel has ", KEEL_ABI_MAJOR,
                   ": rebuild the plugin with this version's keel_plugin.h");
  if (n.draft != KEEL_ABI_DRAFT)
    return Invalid("ABI draft ", n.draft, ", this libkeel has draft ", KEEL_ABI_DRAFT,
                   " and drafts must match: ", n.draft > KEEL_ABI_DRAFT ? "update libkeel, or " : "",
                   "rebuild the plugin with this version's keel_plugin.h");
  if (n.minor > KEEL_ABI_MINOR)
    return Invalid("ABI minor version ", n.minor, ", this libkeel has ", KEEL_ABI_MINOR,
                   ": update libkeel, or build the plugin with an older keel_plugin.h");
  if (n.build != KEEL_BUILD)
    return Invalid("a build of kind \"", BuildName(n.build), "\", this libkeel is \"", BuildName(KEEL_BUILD),
                   "\": build both alike");
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPluginFile(const std::string& path) {
  ASSIGN_OR_RETURN(keel_note note, ReadNote(path));
  return CheckVersion(note);
}

std::string MissingLibrary(const std::string& text) {
  // The dynamic linker says "libx.so.1: cannot open shared object file: ..." of what it lacks.
  size_t colon = text.find(": cannot open shared object file");
  return colon == std::string::npos ? "" : text.substr(0, colon);
}

}  // namespace keel
