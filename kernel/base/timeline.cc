// timeline.cc: writes the timeline file: a JSON array with one event per line. It is flushed in chunks. If
// the process is killed, only the last chunk is missing; viewers accept the array without its end. Forked
// children write nothing.
#include "kernel/base/timeline.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include "kernel/base/mutex.h"

namespace keel {
namespace {

constexpr size_t kFlushBytes = 1 << 16;

struct File {
  Mutex mutex;
  std::string path, text;  // text: not yet written
  int fd = -1;
  int error = 0;  // of the first failed write
  std::atomic<pid_t> owner{0};
  bool first = true;  // no line written yet
  int64_t zero = 0;
  std::map<std::string, int64_t, std::less<>> tracks;
  std::atomic<uint32_t> threads{0};

  void Flush() {
    for (size_t at = 0; at < text.size() && !error;) {
      ssize_t n = ::write(fd, text.data() + at, text.size() - at);
      if (n >= 0)
        at += static_cast<size_t>(n);
      else if (errno != EINTR)
        error = errno;
    }
    text.clear();
  }
  void Line(Json json) {
    text += std::exchange(first, false) ? "[\n" : ",\n";
    text += json.Take();
    if (text.size() > kFlushBytes) Flush();
  }
};

File& TheFile() {  // never freed: other threads may still run at exit
  static File& file = *new File;
  return file;
}

std::string ThreadTrack(File& file, std::string_view track) {
  thread_local const uint32_t number = file.threads.fetch_add(1);
  return absl::StrCat(track, number ? absl::StrCat(", thread ", number) : "");
}

Json TrackNameEvent(int64_t track, std::string_view name) {
  Json json;
  json.BeginObject()
      .Key("name")
      .String("thread_name")
      .Key("ph")
      .String("M")
      .Key("pid")
      .Int(1)
      .Key("tid")
      .Int(track);
  json.Key("args").BeginObject().Key("name").String(name).EndObject().EndObject();
  return json;
}

int64_t TrackNumber(File& file, std::string_view track) {
  std::string name = ThreadTrack(file, track);
  auto [at, added] = file.tracks.try_emplace(name, static_cast<int64_t>(file.tracks.size()) + 1);
  if (added) file.Line(TrackNameEvent(at->second, name));
  return at->second;
}

absl::Status CannotWrite(const File& file, int error) {
  return Annotate(FileError(error, absl::StrCat("cannot write the timeline \"", file.path, "\"")), kErrorHint,
                  "name a file in an existing, writable folder");
}

bool IsChild(const File& file) { return file.owner.load(std::memory_order_relaxed) != getpid(); }

}  // namespace

int64_t Now() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

constinit std::atomic<int> Timeline::detail_{kOff};

absl::Status Timeline::Begin(const std::string& path, Detail detail) {
  File& file = TheFile();
  std::lock_guard lock(file.mutex);
  if (On())
    return Error(absl::StatusCode::kFailedPrecondition, "timeline \"", file.path, "\" has not ended yet");
  file.path = path;
  // Non-blocking: a fifo without a reader is an error, and events that a full fifo cannot take are dropped.
  file.fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
  if (file.fd < 0) return CannotWrite(file, errno);
  file.error = 0;
  file.first = true;
  file.owner = getpid();
  file.zero = Now();
  file.tracks.clear();
  static const int at_exit = std::atexit([] {
    if (absl::Status ended = End(); !ended.ok())
      std::fprintf(stderr, "keel: %s\n", std::string(ended.message()).c_str());
  });
  (void)at_exit;
  detail_ = detail;
  return absl::OkStatus();
}

absl::Status Timeline::End() {
  File& file = TheFile();
  if (IsChild(file)) return absl::OkStatus();
  std::lock_guard lock(file.mutex);
  if (!On()) return absl::OkStatus();
  detail_ = kOff;
  file.text += file.first ? "[]\n" : "\n]\n";
  file.Flush();
  if (::close(file.fd) != 0 && !file.error) file.error = errno;
  return file.error ? CannotWrite(file, file.error) : absl::OkStatus();
}

void Timeline::Add(std::string_view track, const Span& span) try {
  File& file = TheFile();
  if (IsChild(file)) return;
  std::lock_guard lock(file.mutex);
  if (!On()) return;
  int64_t number = TrackNumber(file, track);
  auto us = [](int64_t ns) { return static_cast<double>(ns) / 1e3; };
  Json json;
  json.BeginObject().Key("name").String(span.name).Key("cat").String(span.kind).Key("ph").String("X");
  json.Key("ts").Double(us(span.begin - file.zero)).Key("dur").Double(us(span.end - span.begin));
  json.Key("pid").Int(1).Key("tid").Int(number).Key("args").Raw(span.args).EndObject();
  file.Line(std::move(json));
} catch (const std::bad_alloc&) {
}

TimedBlock::TimedBlock(const char* kind, std::string_view name)
    : kind_(Timeline::On() ? kind : nullptr), begin_(Now()) {
  if (!kind_) return;
  name_ = name;
  args_.BeginObject();
}

TimedBlock::~TimedBlock() {
  if (!kind_) return;
  try {
    Timeline::Add("planning", {name_, kind_, begin_, Now(), args_.EndObject().Take()});
  } catch (const std::bad_alloc&) {
  }
}

double TimedBlock::Ms() const { return static_cast<double>(Now() - begin_) / 1e6; }

void TimedBlock::Note(std::string_view key, std::string_view text) {
  if (kind_) args_.Key(key).String(text);
}

void TimedBlock::Note(std::string_view key, uint64_t number) {
  if (kind_) args_.Key(key).Int(static_cast<int64_t>(number));
}

}  // namespace keel
