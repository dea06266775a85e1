// The dot product of bytes: the one place where instruction sets differ in more than their width.
//
// A lane holds four bytes. Those of x are 0 to 127 and those of w -127 to 127, so that two products add up to a 16-bit
// number (2 * 127 * 127 < 2^15): no set saturates, signed and unsigned instructions agree, and all give the same sums.
#pragma once

#include "words.h"

#if defined __AVX2__
#include <immintrin.h>
#elif defined __ARM_FEATURE_DOTPROD
#include <arm_neon.h>
#endif

namespace regard::REGARD_SET {

// total + the products of each lane's four bytes
REGARD_INLINE Ints dot(Ints total, Ints x, Ints w) {
#if defined __AVX512VNNI__
  asm("vpdpbusd %2, %1, %0" : "+v"(total) : "v"(x), "v"(w));  // GCC 12 keeps the totals of its built-in in memory
  return total;
#elif defined __AVX512BW__
  const __m512i pairs = _mm512_maddubs_epi16(reinterpret_cast<__m512i>(x), reinterpret_cast<__m512i>(w));
  return total + reinterpret_cast<Ints>(_mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
#elif defined __AVX2__
  const __m256i pairs = _mm256_maddubs_epi16(reinterpret_cast<__m256i>(x), reinterpret_cast<__m256i>(w));
  return total + reinterpret_cast<Ints>(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
#elif defined __ARM_FEATURE_DOTPROD
  return reinterpret_cast<Ints>(vdotq_s32(reinterpret_cast<int32x4_t>(total), reinterpret_cast<int8x16_t>(x),
                                          reinterpret_cast<int8x16_t>(w)));
#else
  typedef int16_t Shorts __attribute__((vector_size(4 * LANES)));
  const Shorts both = reinterpret_cast<Shorts>(x), other = reinterpret_cast<Shorts>(w);
  const Shorts pairs = (both & 255) * ((other << 8) >> 8) + (both >> 8) * (other >> 8);
  const Ints sums = reinterpret_cast<Ints>(pairs);
  return total + ((sums << 16) >> 16) + (sums >> 16);
#endif
}

}  // namespace regard::REGARD_SET
