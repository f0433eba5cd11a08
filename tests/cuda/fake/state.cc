// state.cc: see fake.h: planted failures, capture, and the order of execution.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "fake.h"

namespace fake {
namespace {

pid_t process = 0;
thread_local CUstream capturing = nullptr;

void PlantFromEnvironment(State* s) {
  const char* text = getenv("FAKECUDA_FAIL");  // FUNCTION:NUMBER:CODE
  if (!text) return;
  const std::string all = text;
  const size_t first = all.find(':'), second = all.find(':', first + 1);
  s->failing = all.substr(0, first);
  s->left = std::stoull(all.substr(first + 1));
  s->code = static_cast<CUresult>(std::stoi(all.substr(second + 1)));
}

bool IsReady(const CUstream_st& stream) {
  return !stream.commands.empty() && (!stream.commands.front().after || *stream.commands.front().after);
}

// false: no stream is ready.
bool RunOne() {
  State& s = state();
  std::vector<CUstream> ready;
  for (CUstream stream : s.streams)
    if (IsReady(*stream)) ready.push_back(stream);
  if (ready.empty()) return false;
  CUstream chosen = ready[s.random() % ready.size()];
  const auto run = std::move(chosen->commands.front().run);
  chosen->commands.pop_front();
  if (run) run();
  return true;
}

// A lost context executes nothing more: the host may free what its work would use.
void DropWork() {
  for (CUstream stream : state().streams)
    for (auto& command : stream->commands)
      if (command.is_work) command.run = nullptr;
}

}  // namespace

State& state() {
  static State& all = *[] {
    auto* s = new State;
    s->random.seed(static_cast<unsigned>(Variable("FAKECUDA_SEED", 1)));
    PlantFromEnvironment(s);
    return s;
  }();
  return all;
}

long long Variable(const char* name, long long otherwise) {
  const char* text = getenv(name);
  return text && *text ? std::atoll(text) : otherwise;
}

void Complain(const std::string& text) {
  std::fprintf(stderr, "fakecuda: %s\n", text.c_str());
  const char* path = getenv("FAKECUDA_FINDINGS");
  std::FILE* file = path ? std::fopen(path, "a") : nullptr;
  if (!file) return;
  std::fprintf(file, "%s\n", text.c_str());
  std::fclose(file);
}

CUresult Enter(const char* function) {
  State& s = state();
  s.calls[function]++;
  if (s.failing == function && s.left && --s.left == 0) {
    s.fired = function;
    if (s.code == CUDA_ERROR_LAUNCH_FAILED) DropWork();
    return s.code;
  }
  if (!process) process = getpid();
  return process == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult NotInCapture() {
  if (!capturing) return CUDA_SUCCESS;
  capturing->broken = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}
void SetCapturing(CUstream stream) { capturing = stream; }

bool IsKnown(uintptr_t address, size_t bytes) {
  const auto& memory = state().memory;
  auto at = memory.upper_bound(address);
  if (at == memory.begin()) return false;
  --at;
  return address + bytes <= at->first + at->second;
}

bool RunUntil(const std::function<bool()>& holds) {
  while (!holds())
    if (!RunOne()) return false;
  return true;
}
void RunSome(int n) {
  while (n-- > 0 && RunOne()) continue;
}
void Encode(CUstream stream, std::function<void()> run) {
  stream->commands.push_back({std::move(run), nullptr, true});
}
void EncodeMark(CUstream stream, std::shared_ptr<bool> occurred) {
  stream->commands.push_back({[occurred = std::move(occurred)] { *occurred = true; }, nullptr});
}

}  // namespace fake

// The call of that number from now on fails with the code; 0: none does.
EXPORT void fake_fail(const char* function, uint64_t number, int code) {
  std::lock_guard lock(fake::state().mutex);
  fake::state().failing = function;
  fake::state().left = number;
  fake::state().code = static_cast<CUresult>(code);
  fake::state().fired.clear();
}
EXPORT const char* fake_fired() { return fake::state().fired.c_str(); }
EXPORT uint64_t fake_calls(const char* function) {
  std::lock_guard lock(fake::state().mutex);
  return fake::state().calls[function];
}
// Calls of each function: lines "NUMBER FUNCTION".
EXPORT const char* fake_all_calls() {
  static std::string text;
  std::lock_guard lock(fake::state().mutex);
  text.clear();
  for (const auto& [function, n] : fake::state().calls) text += std::to_string(n) + " " + function + "\n";
  return text.c_str();
}
EXPORT long long fake_alive() { return fake::state().alive; }
