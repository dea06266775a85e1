// The product of bytes. A row of x becomes bytes when a product starts, on its own, between its lowest and its highest
// entry; a column of W is bytes already. Their sums are exact whole numbers, and only then come scales and bias:
//
//   x_k = low + s q_k,  w_k = t v_k:   sum_k x_k w_k = t (s sum_k q_k v_k + low sum_k v_k)
#include "set.h"

#include "bytes.h"
#include "tiles.h"

namespace regard::REGARD_SET {

namespace {

typedef uint8_t Bytes __attribute__((vector_size(LANES), aligned(1), may_alias));
typedef int32_t LooseInts __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
REGARD_INLINE Ints load_ints(const char* from) { return *reinterpret_cast<const LooseInts*>(from); }
REGARD_INLINE Word floats(Ints x) { return __builtin_convertvector(x, Word); }

struct Head {  // of a quantised row; its bytes follow
  float scale, low;
};

struct Fours {
  static constexpr int MOST_ROWS = LANES == 16 ? 12 : 4;
  static constexpr long INNER = 1L << 62;  // sums of bytes become floats once: K is whole
  static constexpr int wide(long rows) { return rows <= 2 && LANES < 16 ? 4 : 2; }

  template <int ROWS, int WORDS> static void tile(const Product& p, long row, long word, Part) {
    const long groups = groups_of(p.matrix.inner);
    const char *panel[WORDS], *x[ROWS];
    Ints total[ROWS][WORDS];
#pragma GCC unroll 16
    for (int j = 0; j < WORDS; j++)
      panel[j] = p.matrix.at + (word + j) / PER_PANEL * panel_bytes(Precision::int8, p.matrix.inner) +
                 (word + j) % PER_PANEL * LANES * 4;
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++) {
      x[i] = p.scratch + (row + i) * quantised_bytes(p.matrix.inner);
#pragma GCC unroll 16
      for (int j = 0; j < WORDS; j++) total[i][j] = Ints{};
    }
    for (long g = 0; g < groups; g += 2) {
      Ints column[WORDS], next[WORDS];
#pragma GCC unroll 16
      for (int j = 0; j < WORDS; j++) {
        column[j] = load_ints(panel[j] + (3 + g) * PANEL_LINE);
        next[j] = load_ints(panel[j] + (4 + g) * PANEL_LINE);
      }
#pragma GCC unroll 16
      for (int i = 0; i < ROWS; i++) {
        const int32_t* fours = reinterpret_cast<const int32_t*>(x[i] + sizeof(Head)) + g;
        const Ints four = Ints{} + fours[0], other = Ints{} + fours[1];
#pragma GCC unroll 16
        for (int j = 0; j < WORDS; j++) total[i][j] = dot(total[i][j], four, column[j], other, next[j]);
      }
    }
#pragma GCC unroll 16
    for (int j = 0; j < WORDS; j++) {
      const float* line = reinterpret_cast<const float*>(panel[j]);
      const Word scale = load(line), bias = load(line + PANEL), sum = load(line + 2 * PANEL);
#pragma GCC unroll 16
      for (int i = 0; i < ROWS; i++) {
        const Head& of = *reinterpret_cast<const Head*>(x[i]);
        write(p, row + i, word + j, (floats(total[i][j]) * of.scale + sum * of.low) * scale + bias);
      }
    }
  }
};

}  // namespace

void multiply_bytes(const Product& p) { all_tiles<Fours>(p); }

void quantise(ConstRows x, long rows, long inner, char* to) {
  for (long row = 0; row < rows; row++, to += quantised_bytes(inner)) {
    const float* from = x.at + row * x.stride;
    Word high = all(-__builtin_inff()), low = all(__builtin_inff()), none = all(0.0f);
    each_word(inner, [&](long place, long lanes) {
      const Word entry = load(from + place, lanes, from[place]);
      high = most(entry, high);
      low = least(entry, low);
      none += entry * 0.0f;  // no number where an entry is none, or infinite
    });
    const float lowest = -largest(-low), range = largest(high) - lowest;
    const float factor = range > SMALLEST ? MOST_X / range : 0.0f;
    Head& head = *reinterpret_cast<Head*>(to);
    head.scale = (factor > 0.0f ? range / MOST_X : 0.0f) + sum(none);
    head.low = inner > 0 ? lowest : 0.0f;
    uint8_t* bytes = reinterpret_cast<uint8_t*>(to + sizeof(Head));
    each_word(inner, [&](long place, long lanes) {
      const Word scaled = least((load(from + place, lanes) - lowest) * factor + 0.5f, all(MOST_X));
      const Bytes entry = __builtin_convertvector(__builtin_convertvector(scaled, Ints), Bytes);
      if (lanes == LANES) *reinterpret_cast<Bytes*>(bytes + place) = entry;
      else
        for (long lane = 0; lane < lanes; lane++) bytes[place + lane] = entry[lane];
    });
    for (long k = inner; k < 4 * groups_of(inner); k++) bytes[k] = 0;
  }
}

}  // namespace regard::REGARD_SET
