// note.cc: checks whether a file is a plugin for this libkeel by reading it, without dlopen, so that a
// rejected plugin runs no code. ELF, 64-bit, little-endian: program headers -> PT_NOTE -> "KEEL".
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <utility>
#include <vector>

#include "kernel/runtime/plugin/registry.h"

namespace keel {
namespace {

constexpr uint64_t kMaxNotes = 1 << 20;  // total of all notes
constexpr uint32_t kMaxHeaders = 256;
constexpr char kTruncated[] = "not a plugin: the ELF file is truncated";

class File {
 public:
  explicit File(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat info {};
    if (ok() && !fstat(fd_, &info) && S_ISREG(info.st_mode)) size_ = static_cast<uint64_t>(info.st_size);
  }
  ~File() {
    if (ok()) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool ok() const { return fd_ >= 0; }
  uint64_t size() const { return size_; }
  bool Read(uint64_t at, void* to, uint64_t n) const {
    return at <= size_ && n <= size_ - at &&
           pread(fd_, to, n, static_cast<off_t>(at)) == static_cast<ssize_t>(n);
  }

 private:
  int fd_;
  uint64_t size_ = 0;
};

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#elif defined(__riscv)
constexpr uint16_t kMachine = EM_RISCV;
#else
constexpr uint16_t kMachine = EM_PPC64;
#endif

std::string MachineName(uint16_t machine) {
  constexpr std::pair<uint16_t, const char*> kNames[] = {{EM_386, "i386"},       {EM_X86_64, "x86-64"},
                                                         {EM_ARM, "32-bit ARM"}, {EM_AARCH64, "AArch64"},
                                                         {EM_RISCV, "RISC-V"},   {EM_PPC64, "POWER"}};
  for (auto [number, name] : kNames)
    if (number == machine) return name;
  return absl::StrCat("machine ", machine);
}

absl::Status CheckKind(const Elf64_Ehdr& elf) {
  if (std::memcmp(elf.e_ident, ELFMAG, SELFMAG)) return Invalid("not a plugin: not an ELF shared library");
  bool big = elf.e_ident[EI_DATA] != ELFDATA2LSB, wide = elf.e_ident[EI_CLASS] == ELFCLASS64;
  auto host = [](uint16_t n, bool swap) { return swap ? __builtin_bswap16(n) : n; };
  uint16_t machine = host(elf.e_machine, big), type = host(elf.e_type, big);
  if (big || !wide || machine != kMachine)
    return Invalid("not a plugin for this machine: the file is ", wide ? "64-bit " : "32-bit ",
                   big ? "big-endian " : "", MachineName(machine), ", this libkeel is 64-bit ",
                   MachineName(kMachine));
  if (type != ET_DYN)
    return Invalid("not a plugin: an ELF file of type ", type, ", a shared library has type ", ET_DYN);
  return absl::OkStatus();
}

// Searches the notes in `bytes` for the KEEL note.
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
  if (!file.Read(0, &elf, sizeof elf)) return Invalid("not a plugin: not an ELF shared library");
  RETURN_IF_ERROR(CheckKind(elf));
  // The dynamic linker maps sections without checking that the file contains them.
  uint64_t sections = uint64_t{elf.e_shnum} * elf.e_shentsize;
  if (elf.e_shoff > file.size() || sections > file.size() - elf.e_shoff) return Invalid(kTruncated);
  if (elf.e_phentsize != sizeof(Elf64_Phdr) || elf.e_phnum > kMaxHeaders)
    return Invalid("not a plugin: ", elf.e_phnum, " program headers of ", elf.e_phentsize, " bytes; at most ",
                   kMaxHeaders, " of ", sizeof(Elf64_Phdr), " are possible");
  std::vector<Elf64_Phdr> parts(elf.e_phnum);
  if (!file.Read(elf.e_phoff, parts.data(), parts.size() * sizeof(Elf64_Phdr))) return Invalid(kTruncated);
  keel_note note;
  bool found = false;
  uint64_t notes = 0;
  for (const Elf64_Phdr& part : parts) {
    if (part.p_offset > file.size() || part.p_filesz > file.size() - part.p_offset)
      return Invalid(kTruncated);
    if (found || part.p_type != PT_NOTE || part.p_filesz > kMaxNotes - notes) continue;
    notes += part.p_filesz;
    std::vector<char> bytes(part.p_filesz);
    if (!file.Read(part.p_offset, bytes.data(), bytes.size())) return Invalid(kTruncated);
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
  // glibc's message for a missing dependency: "libx.so.1: cannot open shared object file: ...".
  size_t colon = text.find(": cannot open shared object file");
  return colon == std::string::npos ? "" : text.substr(0, colon);
}

}  // namespace keel
