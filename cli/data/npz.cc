// npz.cc: zip archives of .npy files, stored or deflated, zip64 when reading. See npy.h.
//
// How to read it: the central directory at the file's end lists the members; each points to a local header
// followed by the data. Every offset comes from the file, so each is checked against its size first.
#include <zlib.h>

#include "cli/data/bytes.h"
#include "cli/data/npy.h"
#include "cli/exit.h"

namespace cli {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kLocator64Size = 20, kEnd64Size = 56;

struct Member {
  std::string name;
  uint16_t method = 0;
  uint32_t crc = 0;
  uint64_t packed = 0, size = 0, header_at = 0;
};

class Zip {
 public:
  Zip(std::string_view bytes, const std::string& where) : b_(bytes), where_(where) {}

  std::vector<Member> members() {
    size_t end = find_end();
    uint64_t count = number_at<uint16_t>(b_, end + 10), at = number_at<uint32_t>(b_, end + 16);
    if (end >= kLocator64Size && number_at<uint32_t>(b_, end - kLocator64Size) == kLocator64) {
      auto end64 = number_at<uint64_t>(b_, end - kLocator64Size + 8);
      need(end64, kEnd64Size);
      if (number_at<uint32_t>(b_, end64) != kEnd64) fail("its zip64 end record is missing");
      count = number_at<uint64_t>(b_, end64 + 32);
      at = number_at<uint64_t>(b_, end64 + 48);
    }
    std::vector<Member> out;
    for (uint64_t i = 0; i < count; i++) out.push_back(central(&at));
    return out;
  }

  // The unpacked bytes; `hold` owns them if they were deflated.
  std::string_view unpack(const Member& m, std::string& hold) {
    need(m.header_at, kLocalSize);
    if (number_at<uint32_t>(b_, m.header_at) != kLocal)
      fail("the local header of '" + m.name + "' is missing");
    uint64_t at = m.header_at + kLocalSize + number_at<uint16_t>(b_, m.header_at + 26) +
                  number_at<uint16_t>(b_, m.header_at + 28);
    need(at, m.packed);
    std::string_view data = b_.substr(at, m.packed);
    if (m.method == 8)
      data = inflate_raw(data, m, hold);
    else if (m.method != 0)
      fail("'" + m.name + "' is packed by method " + std::to_string(m.method) +
           ", expected stored or deflate");
    if (data.size() != m.size) fail("'" + m.name + "' does not have the size in the archive's directory");
    if (crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()) != m.crc)
      fail("the checksum of '" + m.name + "' is wrong: the file is damaged");
    return data;
  }

 private:
  [[noreturn]] void fail(const std::string& what) { throw Fail(kBadFile, where_ + ": bad .npz: " + what); }
  void need(uint64_t at, uint64_t size) {
    if (at > b_.size() || size > b_.size() - at) fail("it is truncated or damaged");
  }
  size_t find_end() {
    if (b_.size() < kEndSize) fail("it is truncated");
    for (size_t back = 0; back <= 65535 && back + kEndSize <= b_.size(); back++)
      if (size_t at = b_.size() - kEndSize - back; number_at<uint32_t>(b_, at) == kEnd) return at;
    fail("it has no directory (is it truncated?)");
  }
  Member central(uint64_t* at) {
    need(*at, kCentralSize);
    if (number_at<uint32_t>(b_, *at) != kCentral) fail("its directory is damaged");
    uint64_t name = number_at<uint16_t>(b_, *at + 28), extra = number_at<uint16_t>(b_, *at + 30),
             comment = number_at<uint16_t>(b_, *at + 32);
    need(*at + kCentralSize, name + extra + comment);
    Member m;
    m.name = b_.substr(*at + kCentralSize, name);
    if (number_at<uint16_t>(b_, *at + 8) & 1) fail("'" + m.name + "' is encrypted");
    m.method = number_at<uint16_t>(b_, *at + 10);
    m.crc = number_at<uint32_t>(b_, *at + 16);
    m.packed = number_at<uint32_t>(b_, *at + 20);
    m.size = number_at<uint32_t>(b_, *at + 24);
    m.header_at = number_at<uint32_t>(b_, *at + 42);
    zip64_extra(b_.substr(*at + kCentralSize + name, extra), m);
    *at += kCentralSize + name + extra + comment;
    return m;
  }
  // Fields with all bits set are stored, in this order, in the extra field 1.
  static void zip64_extra(std::string_view extra, Member& m) {
    while (extra.size() >= 4) {
      auto id = number_at<uint16_t>(extra, 0), size = number_at<uint16_t>(extra, 2);
      extra.remove_prefix(4);
      if (size > extra.size()) return;
      size_t at = 0;
      for (uint64_t* field : {&m.size, &m.packed, &m.header_at}) {
        if (id != 1 || *field != 0xffffffff || at + 8 > size) continue;
        *field = number_at<uint64_t>(extra, at);
        at += 8;
      }
      extra.remove_prefix(size);
    }
  }
  std::string_view inflate_raw(std::string_view data, const Member& m, std::string& hold) {
    // Deflate compresses at most 1032 to 1, so a larger claimed size is false.
    if (m.size / 1032 > data.size()) fail("'" + m.name + "' has an impossible size");
    hold.resize(m.size);
    z_stream z{};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
    size_t in = 0, out = 0;
    int rc = Z_OK;
    while (rc == Z_OK) {  // in steps, because zlib counts in 32 bits
      size_t give = std::min<size_t>(data.size() - in, 1u << 30),
             room = std::min<size_t>(hold.size() - out, 1u << 30);
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data() + in));
      z.avail_in = static_cast<uInt>(give);
      z.next_out = reinterpret_cast<Bytef*>(hold.data() + out);
      z.avail_out = static_cast<uInt>(room);
      rc = inflate(&z, Z_NO_FLUSH);
      in += give - z.avail_in;
      out += room - z.avail_out;
    }
    inflateEnd(&z);
    if (rc != Z_STREAM_END || out != m.size)
      fail("'" + m.name + "' cannot be decompressed: the file is damaged");
    return hold;
  }

  std::string_view b_;
  const std::string& where_;
};

uint32_t small(uint64_t v) {
  if (v >= 0xffffffff)
    throw Fail(kUsage, "cannot write an .npz of 4 GiB or more", "fetch fewer results, or write one as .npy");
  return static_cast<uint32_t>(v);
}

// Common part of local and central headers: version to method, time, crc, sizes, name length.
void put_common_header(std::string& out, const std::string& name, uint32_t crc, uint32_t size) {
  for (uint16_t v : {20, 0x800, 0, 0, 0x21}) put_number(out, v);  // version, utf-8, stored, 1980-01-01
  for (uint32_t v : {crc, size, size}) put_number(out, v);
  put_number(out, static_cast<uint16_t>(name.size()));
  put_number(out, uint16_t{0});
}

}  // namespace

bool is_zip(std::string_view bytes) {
  return bytes.starts_with("PK\x03\x04") || bytes.starts_with("PK\x05\x06");
}

NamedArrays read_npz(const keel::Context& context, std::string_view bytes, const std::string& where,
                     const std::string* only) {
  Zip zip(bytes, where);
  NamedArrays out;
  std::vector<std::string> names;
  for (const Member& m : zip.members()) {
    std::string name = m.name.ends_with(".npy") ? m.name.substr(0, m.name.size() - 4) : m.name;
    names.push_back(name);
    if (only && name != *only) continue;
    std::string hold;
    out.emplace_back(name, read_npy(context, zip.unpack(m, hold), where + ":" + name));
  }
  if (only && out.empty())
    throw Fail(kBadFile, where + " has no array \"" + *only + "\"; it has " + join(names, ", "),
               closest(*only, names));
  return out;
}

std::string write_npz(const NamedArrays& arrays) {
  std::string out, directory;
  for (const auto& [name, array] : arrays) {
    std::string file = name + ".npy", data = write_npy(array);
    uint32_t at = small(out.size()), size = small(data.size());
    auto crc = static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()));
    put_number(out, kLocal);
    put_common_header(out, file, crc, size);
    out += file;
    out += data;
    put_number(directory, kCentral);
    put_number(directory, uint16_t{20});
    put_common_header(directory, file, crc, size);
    for (uint16_t v : {0, 0, 0}) put_number(directory, v);  // comment, disk, internal attributes
    put_number(directory, uint32_t{0});
    put_number(directory, at);
    directory += file;
  }
  uint32_t directory_at = small(out.size());
  auto count = static_cast<uint16_t>(arrays.size());
  out += directory;
  put_number(out, kEnd);
  for (uint16_t v : {uint16_t{0}, uint16_t{0}, count, count}) put_number(out, v);
  put_number(out, small(directory.size()));
  put_number(out, directory_at);
  put_number(out, uint16_t{0});
  return out;
}

}  // namespace cli
