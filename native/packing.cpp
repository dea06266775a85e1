// The order in which a product reads its matrix: panels of 32 columns, each with what belongs to its columns first.
//
//   fp32   biases | a row of 32 weights for every k
//   bf16   biases | the same, each weight rounded to its upper 16 bits, to the nearest, ties to even
//   int8   scales | biases | sums of a column's bytes, all floats | for every four k 32 fours of bytes, one a column;
//          weight = scale * byte, the largest of a column at 63
#include <cmath>
#include <cstring>

#include "kernels.h"

namespace regard {

namespace {

uint16_t bf16_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  if (std::isnan(x)) return static_cast<uint16_t>((bits >> 16) | 64);  // rounding could make it a number
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void store(float* to, float x) { *to = x; }
void store(uint16_t* to, float x) { *to = bf16_of(x); }

// The place in its panel of what belongs to a column, such as its bias.
float* head(const Pack& p, long n, long line) {
  const long column = p.column + n;
  char* panel = p.packed + column / PANEL * panel_bytes(p.precision, p.inner);
  return reinterpret_cast<float*>(panel + line * PANEL_LINE) + column % PANEL;
}

template <class Stored> void pack_rows(const Pack& p) {
  constexpr long BLOCK = 16;  // floats of a cache line, read from one row of W before the next
  for (long n = 0; n < p.rows; n++) *head(p, n, 0) = p.bias_N ? p.bias_N[n] : 0.0f;
  for (long begin = 0; begin < p.inner; begin += BLOCK) {
    const long end = begin + BLOCK < p.inner ? begin + BLOCK : p.inner;
    for (long n = 0; n < p.rows; n++) {
      Stored* to = reinterpret_cast<Stored*>(head(p, n, 1) - (p.column + n) % PANEL) + (p.column + n) % PANEL;
      const float* from = p.weight_NK.at + n * p.weight_NK.stride;
      for (long k = begin; k < end; k++) store(to + k * PANEL, from[k]);
    }
  }
}

void pack_bytes(const Pack& p) {
  for (long n = 0; n < p.rows; n++) {
    const float* from = p.weight_NK.at + n * p.weight_NK.stride;
    float most = 0.0f, none = 0.0f;  // `none` becomes no number where a weight is none
    for (long k = 0; k < p.inner; k++) {
      most = std::fabs(from[k]) > most ? std::fabs(from[k]) : most;
      none += from[k] * 0.0f;
    }
    const float factor = none == 0.0f && most > SMALLEST ? MOST_W / most : 0.0f;
    int8_t* to = reinterpret_cast<int8_t*>(head(p, n, 3));
    long sum = 0;
    for (long k = 0; k < 4 * groups_of(p.inner); k++) {
      const float scaled = k < p.inner ? from[k] * factor : 0.0f;
      const int byte = factor > 0.0f ? static_cast<int>(scaled + (scaled < 0.0f ? -0.5f : 0.5f)) : 0;
      to[k / 4 * PANEL_LINE + k % 4] = static_cast<int8_t>(byte);
      sum += byte;
    }
    *head(p, n, 0) = most / MOST_W + none;
    *head(p, n, 1) = p.bias_N ? p.bias_N[n] : 0.0f;
    *head(p, n, 2) = static_cast<float>(sum);
  }
}

}  // namespace

void pack(const Pack& p) {
  switch (p.precision) {
    case Precision::fp32: return pack_rows<float>(p);
    case Precision::bf16: return pack_rows<uint16_t>(p);
    case Precision::int8: return pack_bytes(p);
  }
}

}  // namespace regard
