// flags.cc: flags on CLI11, and the groups that several subcommands take.
#include "cli/flags.h"

#include <CLI/CLI.hpp>

#include "cli/args.h"

namespace cli {

Flags& Flags::add(const char* names, bool& to, const char* about) {
  last_ = app_.add_flag(names, to, about);
  return *this;
}

Flags& Flags::add(const char* names, std::string& to, const char* about, const char* type) {
  last_ = app_.add_option(names, to, about);
  if (type) last_->type_name(type);
  return *this;
}

Flags& Flags::add(const char* names, std::vector<std::string>& to, const char* about, const char* type) {
  last_ = app_.add_option(names, to, about);
  if (names[0] == '-') last_->allow_extra_args(false);
  if (type) last_->type_name(type);
  return *this;
}

Flags& Flags::add(const char* names, std::optional<std::string>& to, const char* about, const char* type) {
  last_ = app_.add_option(names, to, about)->type_name(type);
  return *this;
}

Flags& Flags::add(const char* names, std::optional<double>& to, const char* about) {
  last_ = app_.add_option(names, to, about);
  return *this;
}

Flags& Flags::add(const char* names, int& to, const char* about, int low, int high) {
  last_ = app_.add_option(names, to, about)->check(CLI::Range(low, high));
  return *this;
}

Flags& Flags::add(const char* names, uint32_t& to, const char* about, uint32_t low, uint32_t high,
                  const char* type) {
  last_ = app_.add_option(names, to, about)->check(CLI::Range(low, high));
  if (type) last_->type_name(type);
  return *this;
}

Flags& Flags::required() {
  last_->required();
  return *this;
}

Flags& Flags::excludes(const char* flag) {
  last_->excludes(flag);
  return *this;
}

Flags& Flags::one_of(std::vector<std::string> values) {
  last_->check(CLI::IsMember(std::move(values)));
  return *this;
}

void global_flags(Flags& flags, Args& a) {
  flags.add("--json", a.json, "print one JSON object")
      .add("-v,--verbose", a.verbose, "print more, on stderr")
      .add("--threads", a.threads, "threads of a run", 1, 4096)
      .add("--memory", a.memory, "limit of a run: BYTES, 512M, 4G")
      .add("--lanes", a.lanes, "parallel launches in a run: auto, off, all")
      .one_of({"auto", "off", "all"})
      .add("--exact-convolution", a.exact_convolution, "no Winograd convolution")
      .add("--plugins", a.plugins, "folder of plugins, instead of the default one");
}

void file_argument(Flags& flags, Args& a) {
  flags.add("file", a.file, "a Keel file, its text form, or ONNX; -: stdin").required();
}

void input_flags(Flags& flags, Args& a) {
  flags
      .add("-i,--input", a.inputs, "NAME=SPEC (x=@x.npy, x=f32[2,2]=1,2,3,4, x=randn(7)) or @FILE.npz",
           "INPUT")
      .add("--dim", a.dims, "size of a symbolic dim: b=4", "NAME=N")
      .add("--shape", a.shapes, "sizes of an input: x=1,3,48,192 (? keeps a size)", "NAME=N,N,...")
      .add("--length", a.lengths, "elements of a sequence that an importer reads: x=3 (none: no optional)",
           "NAME=N")
      .add("--cut", a.cut, "import only the part of a model between these values: x,mask..logits", "FROM..TO")
      .add("--cast-inputs", a.cast_inputs,
           "convert inputs to any dtype (default: within a kind, such as f64 to f32, and upwards, such as "
           "i32 to f32)")
      .add("--exact-inputs", a.exact_inputs, "do not convert inputs")
      .excludes("--cast-inputs");
}

void output_flag(Flags& flags, Args& a) {
  flags.add("-o,--output", a.output, "file to write (run: @FILE.npz); -: stdout");
}

void device_flag(Flags& flags, Args& a) {
  flags.add("-d,--device", a.device,
            "device, or auto: the first of cuda, vulkan, cpu that has all ops (default: cpu)", "DEVICE");
  cpu_flags(flags, a);
}

void cpu_flags(Flags& flags, Args& a) {
  isa_flag(flags, a);
  flags.add("--tune", a.tune,
            "device cpu: measure products while planning, and keep the results for later plans");
}

void isa_flag(Flags& flags, Args& a) {
  flags.add("--isa", a.isa, "limit the device cpu to a class of processor: sse4, avx2, avx512, amx", "CLASS");
}

void placing_flags(Flags& flags, Args& a) {
  flags
      .add("--place", a.place,
           "PATTERN=DEVICE: run nodes of these names (with * and ?) there; may be repeated", "PATTERN=DEVICE")
      .add("--fallback", a.fallback,
           "devices for nodes without an impl on their own: the first that has one (default: an error)",
           "DEVICE,...");
}

void entry_flag(Flags& flags, Args& a) { flags.add("--entry", a.entry, "entry (default: the only one)"); }

void tolerance_flags(Flags& flags, Args& a) {
  flags.add("--rtol", a.rtol, "relative tolerance (default: by dtype, or from the file)")
      .add("--atol", a.atol, "absolute tolerance (same default)");
}

void pass_flags(Flags& flags, Args& a) {
  flags.add("--level", a.level, "0: no passes, 1, 2 (default), 3: also passes that may change results", 0, 3)
      .add("--passes", a.passes, "--passes=A,B: only these; --passes=-A,+B: relative to the level");
}

void count_flags(Flags& flags, Args& a) {
  flags.add("-n,--runs", a.runs, "runs to measure (default 100)", 1, 100000000)
      .add("--warmup", a.warmup, "untimed runs after the first", 0, 1000000);
}

void time_limit_flag(Flags& flags, Args& a) {
  flags.add("--time-limit", a.time_limit, "stop a run that takes longer (exit code 6)", 1u, 4000000000u,
            "MS");
}

void text_flag(Flags& flags, Args& a) { flags.add("--text", a.text, "write the text form"); }

}  // namespace cli
