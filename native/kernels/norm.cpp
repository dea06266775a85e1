// sum_TD = x_TD + y_TD and out_TD = norm(sum_TD), by row, while the row is in the cache:
//   layer   (s - mean) / sqrt(variance + epsilon) * gain + bias, over each of `groups` parts of the row
//   rms      s / sqrt(mean of s^2 + epsilon) * gain
//   affine   s * gain + bias: batch norm in evaluation, its running averages folded into gain and bias
#include "set.h"

#include "words.h"

namespace regard::REGARD_SET {

namespace {

float root(float x) { return __builtin_sqrtf(x); }

// The part of a row normalised; `from` may be `out`.
void normalise(const Norm& n, const float* from, float* out, long begin, long size) {
  float mean = 0.0f, factor = 1.0f;
  if (n.kind == NormKind::layer) {
    Word total = all(0.0f);
    each_word(size, [&](long place, long lanes) { total += load(from + place, lanes); });
    mean = sum(total) / static_cast<float>(size);
  }
  if (n.kind != NormKind::affine) {
    Word squares = all(0.0f);
    each_word(size, [&](long place, long lanes) {
      const Word apart = load(from + place, lanes, mean) - mean;
      squares = apart * apart + squares;
    });
    factor = 1.0f / root(sum(squares) / static_cast<float>(size) + n.epsilon);
  }
  each_word(size, [&](long place, long lanes) {
    const Word gain = load(n.gain + begin + place, lanes);
    const Word bias = n.bias ? load(n.bias + begin + place, lanes) : all(0.0f);
    store(out + place, (load(from + place, lanes) - mean) * factor * gain + bias, lanes);
  });
}

}  // namespace

void norm(const Norm& n) {
  const long size = n.columns / n.groups;
  for (long row = 0; row < n.rows; row++) {
    const float* from = n.x.at + row * n.x.stride;
    float* out = n.out.at + row * n.out.stride;
    if (n.y.at) {
      const float* y = n.y.at + row * n.y.stride;
      float* to = n.sum.at ? n.sum.at + row * n.sum.stride : out;
      each_word(n.columns, [&](long place, long lanes) {
        store(to + place, load(from + place, lanes) + load(y + place, lanes), lanes);
      });
      from = to;
    }
    for (long group = 0; group < n.groups; group++)
      normalise(n, from + group * size, out + group * size, group * size, size);
  }
}

}  // namespace regard::REGARD_SET
