// Preloaded into a peer that picks its instructions by cpuid and has no switch for it: reports a processor
// whose vectors end at AVX2. limited.py wrote a breakpoint (int3, nop) over each cpuid instruction of that
// peer's library; the handler answers in its place.
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <ucontext.h>

// Features of leaf 7 that follow AVX2, by subleaf and register: AVX-512 in all its parts, AVX-VNNI, AVX-IFMA,
// AVX10, AMX.
static const unsigned kNewer[2][4] = {
    {0, 1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31,
     1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14,
     1u << 2 | 1u << 3 | 1u << 8 | 1u << 22 | 1u << 23 | 1u << 24 | 1u << 25},
    {1u << 4 | 1u << 5 | 1u << 21 | 1u << 22 | 1u << 23, 0, 0,
     1u << 4 | 1u << 5 | 1u << 8 | 1u << 10 | 1u << 19}};

static void answer(int signal, siginfo_t* info, void* context) {
  (void)signal;
  (void)info;
  greg_t* r = ((ucontext_t*)context)->uc_mcontext.gregs;
  const unsigned leaf = (unsigned)r[REG_RAX], part = (unsigned)r[REG_RCX];
  unsigned out[4];
  __cpuid_count(leaf, part, out[0], out[1], out[2], out[3]);
  for (int i = 0; leaf == 7 && part < 2 && i < 4; i++) out[i] &= ~kNewer[part][i];
  r[REG_RAX] = out[0];
  r[REG_RBX] = out[1];
  r[REG_RCX] = out[2];
  r[REG_RDX] = out[3];
  r[REG_RIP]++;  // past the nop
}

__attribute__((constructor)) static void install(void) {
  struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGTRAP, &action, 0);
}
