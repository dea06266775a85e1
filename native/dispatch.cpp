#include "dispatch.h"

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

#ifdef REGARD_X86
extern const Kernels avx512vnni_table, avx512_table, avx2_table;
#ifdef REGARD_AVXVNNI
extern const Kernels avxvnni_table;
#endif
#ifdef REGARD_AMX
extern const Kernels amx_table;
#endif
#endif
#ifdef REGARD_ARM
extern const Kernels dotprod_table;
#endif
extern const Kernels portable_table;

#ifdef REGARD_AMX
namespace {
// Linux gives a process tiles when it asks for them.
bool may_use_amx() {
  constexpr long ASK = 0x1023, TILES = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool has = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 24 & 1) && (d >> 25 & 1);
  return has && syscall(SYS_arch_prctl, ASK, TILES) == 0;
}
}  // namespace
#endif

#ifdef REGARD_AVXVNNI
namespace {
bool has_avxvnni() {  // older compilers do not know its name
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
}
}  // namespace
#endif

std::vector<const Kernels*> supported() {
  std::vector<const Kernels*> found;
#ifdef REGARD_X86
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#ifdef REGARD_AMX
  if (avx512 && __builtin_cpu_supports("avx512vnni") && may_use_amx()) found.push_back(&amx_table);
#endif
  if (avx512 && __builtin_cpu_supports("avx512vnni")) found.push_back(&avx512vnni_table);
  if (avx512) found.push_back(&avx512_table);
#ifdef REGARD_AVXVNNI
  if (avx2 && has_avxvnni()) found.push_back(&avxvnni_table);
#endif
  if (avx2) found.push_back(&avx2_table);
#endif
#ifdef REGARD_ARM
  if (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) found.push_back(&dotprod_table);
#endif
  found.push_back(&portable_table);
  return found;
}

namespace {
const Kernels*& chosen() {
  static const Kernels* kernels = supported().front();
  return kernels;
}
}  // namespace

const Kernels& in_use() { return *chosen(); }

bool use(const std::string& name) {
  for (const Kernels* kernels : supported())
    if (name == kernels->name) {
      chosen() = kernels;
      return true;
    }
  return false;
}

}  // namespace regard
