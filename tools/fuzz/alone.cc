// alone.cc: the main function of a fuzz target without libFuzzer: runs each input of the corpus, then RUNS
// mutations of them, deterministic for one seed. Regressions of faults that libFuzzer found (tools/sweep)
// fail here within a second.
//   fuzz_text FOLDER [RUNS [SEED]]
#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" const char* __asan_default_options() {
  return "handle_abort=1:handle_sigill=1:allocator_may_return_null=1";
}

namespace {

std::string input;  // the current input
unsigned long long seed = 1, run = 0;

void Died() {
  std::fprintf(stderr, "input of run %llu with seed %llu, %zu bytes, as hex: ", run, seed, input.size());
  for (size_t i = 0; i < std::min<size_t>(input.size(), 4000); i++)
    std::fprintf(stderr, "%02x", static_cast<unsigned char>(input[i]));
  std::fprintf(stderr, "\n");
}

void Run() {
  std::vector<uint8_t> exact(input.begin(),
                             input.end());  // a separate buffer, so that a read past the end is detected
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

class Changer {
 public:
  explicit Changer(std::vector<std::string> kept) : kept_(std::move(kept)), random_(seed) {}

  std::string Next() {
    std::string s = kept_[Below(kept_.size())];
    for (size_t n = 1 + Below(4); n > 0; n--) Change(s);
    return s;
  }

 private:
  size_t Below(size_t n) { return n ? random_() % n : 0; }

  void Change(std::string& s) {
    static constexpr uint8_t kSharp[] = {0, 1, 0x7f, 0x80, 0xff, '0', '9', '(', '[', '"', ','};
    size_t at = Below(s.size()), length = std::min(s.size() - at, 1 + Below(Below(64) + 1));
    switch (Below(7)) {
      case 0:
        if (!s.empty()) s[at] = static_cast<char>(s[at] ^ (1 << Below(8)));
        break;
      case 1:
        if (!s.empty()) s[at] = static_cast<char>(kSharp[Below(std::size(kSharp))]);
        break;
      case 2:
        s.erase(at, length);
        break;
      case 3:
        s.insert(at, s.substr(at, length));
        break;
      case 4:
        s.resize(at);
        break;
      case 5:
        for (size_t i = at; i < std::min(s.size(), at + 4); i++) s[i] = static_cast<char>(random_());
        break;
      default: {
        const std::string& other = kept_[Below(kept_.size())];
        s.replace(at, length, other.substr(Below(other.size()), 1 + Below(64)));
      }
    }
  }

  std::vector<std::string> kept_;
  std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: %s FOLDER [RUNS [SEED]]\n", argv[0]), 2;
  unsigned long long runs = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 2000;
  if (argc > 3) seed = std::strtoull(argv[3], nullptr, 10);
  __sanitizer_set_death_callback(Died);
  std::vector<std::filesystem::path> paths(std::filesystem::directory_iterator(argv[1]), {});
  std::sort(paths.begin(), paths.end());  // the same order on every file system
  std::vector<std::string> kept;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    input.assign(std::istreambuf_iterator<char>(in), {});
    Run();
    kept.push_back(input);
  }
  if (kept.empty()) return std::fprintf(stderr, "%s holds no input\n", argv[1]), 1;
  Changer changer(kept);
  for (run = 1; run <= runs; run++) {
    input = changer.Next();
    Run();
  }
  std::printf("%zu kept inputs and %llu made with seed %llu\n", kept.size(), runs, seed);
}
