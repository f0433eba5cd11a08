// bytes.h: reads and writes whole files; little-endian numbers in them.
#ifndef KEEL_CLI_BYTES_H
#define KEEL_CLI_BYTES_H
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace cli {

std::string read_file(const std::string& path);  // "-" is stdin; Fail names the file and the reason
// The path of a file with these bytes, which lives as long as the command.
std::string file_in_memory(const char* name, std::string_view bytes);
void write_file(const std::string& path, std::string_view bytes);
bool is_file(const std::string& path);
uint64_t file_size(const std::string& path);  // 0 if absent
// Differs after the file was replaced by another one; 0 if absent.
uint64_t file_number(const std::string& path);

// Requires at + sizeof(T) <= size.
template <class T>
T number_at(std::string_view bytes, size_t at) {
  T v;
  std::memcpy(&v, bytes.data() + at, sizeof v);
  return v;
}
template <class T>
void put_number(std::string& out, T v) {
  out.append(reinterpret_cast<const char*>(&v), sizeof v);
}

}  // namespace cli
#endif
