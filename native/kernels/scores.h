// Scores of a vocabulary, score_NV = hidden_ND W_DV, in blocks of columns, each looked at while it is in the cache.
#pragma once

#include "set.h"

#include "words.h"

namespace regard::REGARD_SET {

inline long columns_of(const Scores& s, long block) {
  const long left = s.columns - block * VOCABULARY_BLOCK;
  return left < VOCABULARY_BLOCK ? left : VOCABULARY_BLOCK;
}

// seen(block, its number among those side by side, its scores) of each block of columns, and joined(the first of those
// side by side, how many) by the calling thread.
template <class Seen, class Joined> void each_block(const Scores& s, float* score, Seen seen, Joined joined) {
  const Matrix& w = s.matrix;
  const long bytes = panel_bytes(w.precision, w.inner), blocks = (s.columns + VOCABULARY_BLOCK - 1) / VOCABULARY_BLOCK;
  char* const quantised = at_line(s.quantised);
  if (w.precision == Precision::int8) quantise(s.hidden, s.rows, w.inner, quantised);
  for (long first = 0; first < blocks; first += s.together) {
    const long count = blocks - first < s.together ? blocks - first : s.together;
    divide(count, work_of(count * (VOCABULARY_BLOCK / PANEL) * bytes, s.rows), [&](long number) {
      const long begin = (first + number) * VOCABULARY_BLOCK;
      float* at = score + number * s.rows * VOCABULARY_STRIDE;
      product_of_quantised({s.hidden, {w.at + begin / PANEL * bytes, w.inner, w.precision}, {at, VOCABULARY_STRIDE},
                            s.rows, columns_of(s, first + number), Activation::none, quantised});
      seen(first + number, number, at);
    });
    joined(first, count);
  }
}

}  // namespace regard::REGARD_SET
