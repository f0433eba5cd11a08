// rename.cc: a build tool that copies oneDNN's shared library and replaces names in its string table by names
// of the same length.
//   rename FROM TO
// The copy imports KEEL_parallel_start and the like from libkomp.so.1 instead of GOMP_parallel_start from
// libgomp.so.1. So its loops run in Keel's pool, even in a program with its own libgomp, and the dynamic
// linker never substitutes another copy of oneDNN. Nothing else changes: imported names are in no hash table
// of the dynamic linker. oneDNN's licence (Apache 2.0) allows modified copies that are marked as such: this
// comment and the README of plugins/cpu do that.
#include <elf.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Name {
  const char *from, *to;
};
// Libraries: the dependency and the copy's own name.
constexpr Name kLibraries[] = {{"libgomp.so.1", "libkomp.so.1"}, {"libdnnl.so.3", "libkdnn.so.3"}};
// Prefixes of all imports from libgomp.so.1.
constexpr Name kBeginnings[] = {{"GOMP_", "KEEL_"}, {"omp_", "kel_"}};

class Library {
 public:
  explicit Library(std::vector<char> bytes) : bytes_(std::move(bytes)) {
    const auto& head = At<Elf64_Ehdr>(0);
    if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64)
      throw std::runtime_error("not a 64-bit ELF file");
    const auto* sections = &At<Elf64_Shdr>(head.e_shoff, head.e_shnum);
    for (int i = 0; i < head.e_shnum; i++) sections_[sections[i].sh_type] = &sections[i];
    for (const auto type : {SHT_DYNSYM, SHT_DYNAMIC, SHT_GNU_verneed, SHT_GNU_versym})
      if (sections_.find(type) == sections_.end()) throw std::runtime_error("a required section is missing");
    strings_ = &sections[sections_[SHT_DYNSYM]->sh_link];
  }

  void Rename() {
    CollectUses();
    for (const Name& name : kLibraries) RenameLibrary(name);
    int renamed = 0;
    for (const Elf64_Sym& symbol : Table<Elf64_Sym>(SHT_DYNSYM))
      for (const Name& name : kBeginnings) {
        if (std::strncmp(Text(symbol.st_name), name.from, std::strlen(name.from)) != 0) continue;
        if (symbol.st_shndx != SHN_UNDEF)
          throw std::runtime_error(Quoted(symbol.st_name) + " is defined in the library, not imported");
        Write(symbol.st_name, name);
        renamed++;
      }
    if (renamed != kImports)
      throw std::runtime_error("imports " + std::to_string(renamed) + " OpenMP functions; expected " +
                               std::to_string(kImports) + ", the number that gomp.cc implements");
  }
  const std::vector<char>& Bytes() const { return bytes_; }

 private:
  static constexpr int kImports = 10;

  template <class T>
  T& At(size_t offset, size_t count = 1) {
    if (offset > bytes_.size() || count > (bytes_.size() - offset) / sizeof(T))
      throw std::runtime_error("the file is truncated");
    return *reinterpret_cast<T*>(bytes_.data() + offset);
  }
  template <class T>
  struct Span {
    T *first, *last;
    T* begin() const { return first; }
    T* end() const { return last; }
  };
  template <class T>
  Span<T> Table(uint32_t type) {
    const Elf64_Shdr& s = *sections_[type];
    T* first = &At<T>(s.sh_offset, s.sh_size / sizeof(T));
    return {first, first + s.sh_size / sizeof(T)};
  }
  char* Text(size_t offset) {
    if (offset >= strings_->sh_size) throw std::runtime_error("a name is outside of the string table");
    return &At<char>(strings_->sh_offset, strings_->sh_size) + offset;
  }
  std::string Quoted(size_t offset) { return std::string("'") + Text(offset) + "'"; }

  // The offsets of referenced names. Linkers may let one name be the suffix of another.
  void CollectUses() {
    for (const Elf64_Sym& s : Table<Elf64_Sym>(SHT_DYNSYM)) uses_.insert(s.st_name);
    for (const Elf64_Dyn& d : Table<Elf64_Dyn>(SHT_DYNAMIC))
      if (d.d_tag == DT_NEEDED || d.d_tag == DT_SONAME || d.d_tag == DT_RUNPATH || d.d_tag == DT_RPATH)
        uses_.insert(d.d_un.d_val);
    const Elf64_Shdr& needed = *sections_[SHT_GNU_verneed];
    for (size_t at = needed.sh_offset, i = 0; i < needed.sh_info; i++) {
      const auto& file = At<Elf64_Verneed>(at);
      uses_.insert(file.vn_file);
      for (size_t v = at + file.vn_aux, j = 0; j < file.vn_cnt; j++) {
        uses_.insert(At<Elf64_Vernaux>(v).vna_name);
        v += At<Elf64_Vernaux>(v).vna_next;
      }
      at += file.vn_next;
    }
  }

  void RenameLibrary(const Name& name) {
    for (const Elf64_Dyn& d : Table<Elf64_Dyn>(SHT_DYNAMIC)) {
      if ((d.d_tag != DT_NEEDED && d.d_tag != DT_SONAME) || std::strcmp(Text(d.d_un.d_val), name.from) != 0)
        continue;
      Write(d.d_un.d_val, name);
      return;  // version records refer to the same string, or linking the plugin fails
    }
    throw std::runtime_error(std::string("neither is nor needs ") + name.from);
  }

  void Write(size_t offset, const Name& name) {
    const size_t end = offset + std::strlen(name.from);
    for (const size_t other : uses_)
      if (other != offset && other < end && other + std::strlen(Text(other)) >= offset)
        throw std::runtime_error("the replaced part of " + Quoted(offset) + " is also part of " +
                                 Quoted(other));
    std::memcpy(Text(offset), name.to, std::strlen(name.from));
  }

  std::vector<char> bytes_;
  std::map<uint32_t, const Elf64_Shdr*> sections_;
  const Elf64_Shdr* strings_ = nullptr;
  std::set<size_t> uses_;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) throw std::runtime_error("usage: rename FROM TO");
  std::ifstream in(argv[1], std::ios::binary);
  if (!in) throw std::runtime_error("cannot be read");
  Library library({std::istreambuf_iterator<char>(in), {}});
  library.Rename();
  std::ofstream out(argv[2], std::ios::binary | std::ios::trunc);
  out.write(library.Bytes().data(), static_cast<std::streamsize>(library.Bytes().size()));
  if (!out.flush()) throw std::runtime_error(std::string(argv[2]) + " cannot be written");
} catch (const std::exception& e) {
  std::fprintf(stderr, "rename: %s: %s\n", argc > 1 ? argv[1] : "", e.what());
  return 1;
}
