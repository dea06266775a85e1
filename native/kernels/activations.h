// The activations, by word. To add one: a function here and its line in `apply`, then the other places in README.md.
#pragma once

#include "kernels.h"
#include "words.h"

namespace regard::REGARD_SET {

REGARD_INLINE Word relu(Word x) { return most(all(0.0f), x); }

// x / (1 + e^-x)
REGARD_INLINE Word swish(Word x) { return x / (exp(-x) + 1.0f); }

// x (1 + tanh(c (x + 0.044715 x^3))) / 2, c = sqrt(2 / pi): since (1 + tanh u) / 2 = 1 / (1 + e^-2u)
REGARD_INLINE Word gelu_tanh(Word x) {
  const Word u = (x * x * 0.044715f + 1.0f) * x * -1.59576912f;
  return x / (exp(u) + 1.0f);
}

// x (1 + erf(x / sqrt 2)) / 2, erf by Abramowitz and Stegun 7.1.26 (absolute error 1.5e-7)
REGARD_INLINE Word gelu(Word x) {
  const Word z = x * 0.70710678f, size = z < 0.0f ? -z : z;
  const Word t = 1.0f / (size * 0.3275911f + 1.0f);
  Word p = t * 1.061405429f - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  const Word tail = p * t * exp(-z * z);  // 1 - erf |z|
  return x * 0.5f * (z < 0.0f ? tail : 2.0f - tail);
}

template <class F> REGARD_INLINE void each_row(Rows x, long rows, long columns, F f) {
  for (long row = 0; row < rows; row++)
    each_word(columns, [&](long place, long lanes) {
      float* at = x.at + row * x.stride + place;
      store(at, f(load(at, lanes)), lanes);
    });
}

// An activation of every entry, in place.
inline void apply(Activation activation, Rows x, long rows, long columns) {
  switch (activation) {
    case Activation::none: return;
    case Activation::relu: return each_row(x, rows, columns, [](Word v) { return relu(v); });
    case Activation::gelu: return each_row(x, rows, columns, [](Word v) { return gelu(v); });
    case Activation::gelu_tanh: return each_row(x, rows, columns, [](Word v) { return gelu_tanh(v); });
    case Activation::swish: return each_row(x, rows, columns, [](Word v) { return swish(v); });
  }
}

}  // namespace regard::REGARD_SET
