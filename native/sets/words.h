// A vector word: as many floats as one register holds. Kernels are written once over it and compiled for each
// instruction set (REGARD_SET, REGARD_LANES), each in a namespace of its own.
//
// Arithmetic and comparisons of words are the compiler's vector extension (GCC, Clang): + - * / of words and of a word
// with a number, and `mask ? a : b`. `a * b + c` becomes one fused instruction where the set has it.
#pragma once

#include <cstdint>
#include <utility>

#if defined __AVX2__
#include <immintrin.h>
#endif

#define REGARD_INLINE inline __attribute__((always_inline))

namespace regard::REGARD_SET {

constexpr int LANES = REGARD_LANES;

typedef float Word __attribute__((vector_size(4 * LANES)));
typedef int32_t Ints __attribute__((vector_size(4 * LANES)));
typedef uint32_t Bits __attribute__((vector_size(4 * LANES)));  // whose sums may run over
typedef uint16_t Halves __attribute__((vector_size(2 * LANES)));
typedef uint16_t LooseHalves __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
typedef float LooseWord __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

REGARD_INLINE Word load(const float* from) { return *reinterpret_cast<const LooseWord*>(from); }
REGARD_INLINE void store(float* to, Word x) { *reinterpret_cast<LooseWord*>(to) = x; }
// Floats of which the upper halves are stored (bf16). GCC 12 widens by two halves of a word, which takes twice as long.
REGARD_INLINE Word load(const uint16_t* from) {
#if defined __AVX512F__
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  const __m512i upper = _mm512_maskz_cvtepu16_epi32(0xffff, halves);  // that without a mask warns in GCC 12
  return reinterpret_cast<Word>(reinterpret_cast<Ints>(upper) << 16);
#elif defined __AVX2__
  const __m256i upper = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  return reinterpret_cast<Word>(reinterpret_cast<Ints>(upper) << 16);
#else
  const Halves upper = *reinterpret_cast<const LooseHalves*>(from);
  return reinterpret_cast<Word>(__builtin_convertvector(upper, Ints) << 16);
#endif
}
// Rounded; of two equally near the even one. NaN stays NaN if its lower half is zero, as that of what was bf16 before and
// the one that arithmetic makes are; others are for the caller.
REGARD_INLINE void store(uint16_t* to, Word x) {
  const Bits bits = reinterpret_cast<Bits>(x);
  *reinterpret_cast<LooseHalves*>(to) = __builtin_convertvector((bits + 0x7fff + (bits >> 16 & 1)) >> 16, Halves);
}
REGARD_INLINE Word all(float x) { return x - Word{}; }  // which is x, -0 too: no addition is left of it

// The first n lanes of x, which may be all, the others `rest`.
template <int... LANE> REGARD_INLINE Ints numbers(std::integer_sequence<int, LANE...>) { return Ints{LANE...}; }
REGARD_INLINE Word first(Word x, long n, float rest) {
  const int32_t most = n < LANES ? static_cast<int32_t>(n) : LANES;
  return numbers(std::make_integer_sequence<int, LANES>{}) < most - Ints{} ? x : all(rest);
}

// The first n lanes from memory, the others `rest`; and back. Nothing beyond them is touched.
REGARD_INLINE Word load_some(const float* from, long n, float rest = 0.0f) {
  Word x = all(rest);
  for (long lane = 0; lane < n; lane++) x[lane] = from[lane];
  return x;
}
REGARD_INLINE void store_some(float* to, Word x, long n) {
  for (long lane = 0; lane < n; lane++) to[lane] = x[lane];
}
REGARD_INLINE Word load_some(const uint16_t* from, long n, float rest = 0.0f) {
  uint16_t whole[LANES] = {};
  for (long lane = 0; lane < n; lane++) whole[lane] = from[lane];
  return first(load(whole), n, rest);
}
REGARD_INLINE void store_some(uint16_t* to, Word x, long n) {
  uint16_t whole[LANES];
  store(whole, x);
  for (long lane = 0; lane < n; lane++) to[lane] = whole[lane];
}

// f(place, lanes) for every word of an axis; the last one may have fewer lanes.
template <class F> REGARD_INLINE void each_word(long size, F f) {
  long place = 0;
  for (; place + LANES <= size; place += LANES) f(place, static_cast<long>(LANES));
  if (place < size) f(place, size - place);
}
template <class T> REGARD_INLINE Word load(const T* from, long lanes, float rest = 0.0f) {
  return lanes == LANES ? load(from) : load_some(from, lanes, rest);
}
template <class T> REGARD_INLINE void store(T* to, Word x, long lanes) {
  if (lanes == LANES) store(to, x);
  else store_some(to, x, lanes);
}

// The larger and the smaller; where one is not a number, the second.
REGARD_INLINE Word most(Word a, Word b) { return a > b ? a : b; }
REGARD_INLINE Word least(Word a, Word b) { return a < b ? a : b; }

// Lanes of a (0 to LANES - 1) and b (from LANES on), picked.
template <int... LANE> REGARD_INLINE Word pick(Word a, Word b) {
#ifdef __clang__
  return __builtin_shufflevector(a, b, LANE...);
#else
  return __builtin_shuffle(a, b, Ints{LANE...});
#endif
}

using Lanes = std::make_integer_sequence<int, LANES>;

template <int DISTANCE, int... LANE> REGARD_INLINE Word swapped(Word x, std::integer_sequence<int, LANE...>) {
  return pick<(LANE ^ DISTANCE)...>(x, x);
}
template <int DISTANCE = LANES / 2> REGARD_INLINE float sum(Word x) {
  x = x + swapped<DISTANCE>(x, Lanes{});
  if constexpr (DISTANCE > 1) return sum<DISTANCE / 2>(x);
  else return x[0];
}
template <int DISTANCE = LANES / 2> REGARD_INLINE float largest(Word x) {
  x = most(swapped<DISTANCE>(x, Lanes{}), x);
  if constexpr (DISTANCE > 1) return largest<DISTANCE / 2>(x);
  else return x[0];
}

// The largest of a row, as long as all are numbers.
template <class T> REGARD_INLINE float highest_of(const T* score, long columns) {
  Word highest = all(-__builtin_inff());
  each_word(columns, [&](long place, long lanes) {
    highest = most(load(score + place, lanes, -__builtin_inff()), highest);
  });
  return largest(highest);
}

// Of each group of 2 HALF lanes: the two halves of a added up, then those of b.
template <int HALF, int... LANE> REGARD_INLINE Word folded(Word a, Word b, std::integer_sequence<int, LANE...>) {
  return pick<(LANE % (2 * HALF) < HALF ? LANE : LANE - HALF + LANES)...>(a, b) +
         pick<(LANE % (2 * HALF) < HALF ? LANE + HALF : LANE + LANES)...>(a, b);
}

// The sums of LANES words as one word: lane i is the sum of x[i]. Destroys x.
template <int HALF = LANES / 2> REGARD_INLINE Word sums(Word* x) {
  for (int i = 0; i < HALF; i++) x[i] = folded<HALF>(x[i], x[i + HALF], Lanes{});
  if constexpr (HALF > 1) return sums<HALF / 2>(x);
  else return x[0];
}

// e^x to 2 units in the last place, between e^-87 and e^88: x = n ln 2 + r, |r| <= ln 2 / 2, and a polynomial of r.
// What is not a number stays one: its bits, to which a power is added, are those of the polynomial.
REGARD_INLINE Word exp(Word given) {
  const Word x = least(all(88.0f), most(all(-87.0f), given));
  const Word shift = all(12582912.0f);  // 1.5 * 2^23: adding it rounds to a whole number, in the lowest bits
  const Word shifted = x * 1.44269504f + shift, n = shifted - shift;
  const Word r = (x - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts, so that nothing is lost
  Word p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r) * r + r + 1.0f;
  const Bits power = (reinterpret_cast<Bits>(shifted) - reinterpret_cast<Bits>(shift)) << 23;
  return given == given ? reinterpret_cast<Word>(reinterpret_cast<Bits>(p) + power) : given;
}

// e^x of a softmax's weight; zero below e^-70, so that no weight is too small for a normal number, which would be slow.
REGARD_INLINE Word exp_or_zero(Word x) { return x < all(-70.0f) ? all(0.0f) : exp(x); }

}  // namespace regard::REGARD_SET
