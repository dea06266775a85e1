// The dot product of bytes: with amx.h the one place where instruction sets differ in more than their width.
//
// A lane holds four bytes. Those of x are 0 to 127, those of w -127 to 127, and packing sees to it that the four of w
// whose products one 16-bit number adds up come to 258 at most without their signs (127 * 258 < 2^15): no set saturates,
// signed and unsigned instructions agree, and all give the same sums. Without an instruction for all of it two fours are
// added up before they are widened, since widening costs as much as multiplying.
#pragma once

#include "words.h"

#if defined __AVX2__
#include <immintrin.h>
#elif defined __ARM_FEATURE_DOTPROD
#include <arm_neon.h>
#endif

namespace regard::REGARD_SET {

#if defined __AVX512VNNI__ || defined __AVXVNNI__ || defined __ARM_FEATURE_DOTPROD

REGARD_INLINE Ints dot(Ints total, Ints x, Ints w) {
#if defined __AVX512VNNI__
  asm("vpdpbusd %2, %1, %0" : "+v"(total) : "v"(x), "v"(w));  // GCC 12 keeps the totals of its built-in in memory
  return total;
#elif defined __AVXVNNI__
  asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(total) : "x"(x), "x"(w));
  return total;
#else
  return reinterpret_cast<Ints>(vdotq_s32(reinterpret_cast<int32x4_t>(total), reinterpret_cast<int8x16_t>(x),
                                          reinterpret_cast<int8x16_t>(w)));
#endif
}

// total + the products of each lane's four bytes, and of another four.
REGARD_INLINE Ints dot(Ints total, Ints x, Ints w, Ints y, Ints v) { return dot(dot(total, x, w), y, v); }

#else

typedef int16_t Shorts __attribute__((vector_size(4 * LANES)));

// The products of bytes, two neighbours added up; and neighbours of those.
REGARD_INLINE Shorts pairs(Ints x, Ints w) {
#if defined __AVX512BW__
  return reinterpret_cast<Shorts>(_mm512_maddubs_epi16(reinterpret_cast<__m512i>(x), reinterpret_cast<__m512i>(w)));
#elif defined __AVX2__
  return reinterpret_cast<Shorts>(_mm256_maddubs_epi16(reinterpret_cast<__m256i>(x), reinterpret_cast<__m256i>(w)));
#else
  const Shorts both = reinterpret_cast<Shorts>(x), other = reinterpret_cast<Shorts>(w);
  return (both & 255) * ((other << 8) >> 8) + (both >> 8) * (other >> 8);
#endif
}
REGARD_INLINE Ints widened(Shorts sums) {
#if defined __AVX512BW__
  return reinterpret_cast<Ints>(_mm512_madd_epi16(reinterpret_cast<__m512i>(sums), _mm512_set1_epi16(1)));
#elif defined __AVX2__
  return reinterpret_cast<Ints>(_mm256_madd_epi16(reinterpret_cast<__m256i>(sums), _mm256_set1_epi16(1)));
#else
  const Ints both = reinterpret_cast<Ints>(sums);
  return ((both << 16) >> 16) + (both >> 16);
#endif
}

// total + the products of each lane's four bytes, and of another four.
REGARD_INLINE Ints dot(Ints total, Ints x, Ints w, Ints y, Ints v) {
  return total + widened(pairs(x, w) + pairs(y, v));
}

#endif

}  // namespace regard::REGARD_SET
