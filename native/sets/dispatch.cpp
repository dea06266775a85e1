#include "dispatch.h"

#include <atomic>

#ifdef REGARD_X86
#include <cpuid.h>
#endif
#ifdef REGARD_AMX
#include <sys/syscall.h>
#include <unistd.h>
#endif
#ifdef REGARD_ARM
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace regard {

extern const Kernels portable_table;
#ifdef REGARD_X86
extern const Kernels avx512_table, avx2_table;
extern const BytesSet avx512vnni_bytes;
#endif
#ifdef REGARD_AVXVNNI
extern const BytesSet avxvnni_bytes;
#endif
#ifdef REGARD_AMX
extern const BytesSet amx_bytes;
#endif
#ifdef REGARD_ARM
extern const BytesSet dotprod_bytes;
#endif

namespace {

[[maybe_unused]] Kernels with(const Kernels& base, const BytesSet& set) {
  Kernels table = base;
  table.name = set.name;
  table.multiply_bytes = set.multiply_bytes;
  return table;
}

#ifdef REGARD_AMX
constexpr long TILES = 18;  // XFEATURE_XTILEDATA
bool has_amx() {
  constexpr long ARCH_GET_XCOMP_SUPP = 0x1021;
  unsigned a = 0, b = 0, c = 0, d = 0;
  unsigned long features = 0;
  const bool has = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 24 & 1) && (d >> 25 & 1);
  return has && syscall(SYS_arch_prctl, ARCH_GET_XCOMP_SUPP, &features) == 0 && (features >> TILES & 1);
}
#endif

#ifdef REGARD_AVXVNNI
bool has_avxvnni() {  // older compilers do not know its name
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
}
#endif

}  // namespace

std::vector<const Kernels*> supported() {
  std::vector<const Kernels*> found;
#ifdef REGARD_X86
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
#ifdef REGARD_AMX
  static const Kernels amx = with(avx512_table, amx_bytes);
  if (vnni && has_amx()) found.push_back(&amx);
#endif
  static const Kernels avx512vnni = with(avx512_table, avx512vnni_bytes);
  if (vnni) found.push_back(&avx512vnni);
  if (avx512) found.push_back(&avx512_table);
#ifdef REGARD_AVXVNNI
  static const Kernels avxvnni = with(avx2_table, avxvnni_bytes);
  if (avx2 && has_avxvnni()) found.push_back(&avxvnni);
#endif
  if (avx2) found.push_back(&avx2_table);
#endif
#ifdef REGARD_ARM
  static const Kernels dotprod = with(portable_table, dotprod_bytes);
  if (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) found.push_back(&dotprod);
#endif
  found.push_back(&portable_table);
  return found;
}

namespace {

std::atomic<const Kernels*> chosen{nullptr};

// Linux gives a process tiles when it asks for them. Signal handlers then need larger stacks of their own, so nobody asks
// who does not use them.
bool allowed([[maybe_unused]] const Kernels* kernels) {
#ifdef REGARD_AMX
  constexpr long ARCH_REQ_XCOMP_PERM = 0x1023;
  if (kernels->name == amx_bytes.name) return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILES) == 0;
#endif
  return true;
}

const Kernels* fastest() {
  for (const Kernels* kernels : supported())
    if (allowed(kernels)) return kernels;
  return &portable_table;
}

}  // namespace

const Kernels& in_use() {
  const Kernels* kernels = chosen.load(std::memory_order_relaxed);
  if (!kernels) chosen.store(kernels = fastest(), std::memory_order_relaxed);
  return *kernels;
}

bool use(const std::string& name) {
  for (const Kernels* kernels : supported())
    if (name == kernels->name && allowed(kernels)) {
      chosen.store(kernels, std::memory_order_relaxed);
      return true;
    }
  return false;
}

}  // namespace regard
