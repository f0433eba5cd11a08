// temp_file.h: a file, or a pair, that replaces another one as a whole, or not at all.
#pragma once

#include <cstdint>
#include <string>

#include "kernel/base/status.h"

namespace keel {

// Written under another name in the same folder, then synced and renamed. Removed unless it is committed.
class TempFile {
 public:
  explicit TempFile(std::string path) : path_(std::move(path)) {}
  ~TempFile();
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;

  absl::Status Open();
  absl::Status Write(const void* data, uint64_t size);
  absl::Status PadTo(uint64_t offset);  // with zeros
  // Removes an older file first if it may need older data, so that it is never seen with these.
  absl::Status Commit(TempFile* data = nullptr);
  bool made() const { return made_; }

 private:
  absl::Status Failed(int error);
  absl::Status Close();  // synced
  absl::Status Rename();
  absl::Status RenameData(TempFile& data);

  std::string path_, temp_;
  int fd_ = -1;
  bool made_ = false, removed_old_ = false;
  uint64_t written_ = 0;
};

}  // namespace keel
