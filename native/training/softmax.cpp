// The softmax of scores that exist, in their place, and log sum exp of them.
#include "set.h"

#include "words.h"

namespace regard::REGARD_SET {

namespace {

// x_V = softmax(x_V), by way of `weight_V`, which may be x_V; returns log sum exp x_V.
template <class T> float normalise(T* x, float* weight, long columns) {
  const float highest = highest_of(x, columns);
  Word total = all(0.0f);
  each_word(columns, [&](long place, long lanes) {
    const Word found = exp_or_zero(load(x + place, lanes, -__builtin_inff()) - highest);
    store(weight + place, found, lanes);
    total += found;
  });
  const float factor = 1.0f / sum(total);
  each_word(columns, [&](long place, long lanes) { store(x + place, load(weight + place, lanes) * factor, lanes); });
  return static_cast<float>(static_cast<double>(highest) + __builtin_log(static_cast<double>(sum(total))));
}

}  // namespace

void softmax(const Softmax& s) {
  for (long row = 0, place = 0; row < s.rows; row++, place += s.stride)
    s.log_sum_R[row] = s.floats ? normalise(s.floats + place, s.floats + place, s.columns)
                                : normalise(s.halves + place, s.scratch, s.columns);
}

}  // namespace regard::REGARD_SET
