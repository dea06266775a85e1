// The order in which a product reads its matrix: panels of 32 columns, each with what belongs to its columns first.
//
//   fp32   biases | a row of 32 weights for every k
//   bf16   biases | the same, each weight rounded to its upper 16 bits, to the nearest, ties to even
//   int8   scales | biases | sums of a column's bytes | norms of its scaled bytes, all floats |
//          for every four k 32 fours of bytes, one a column; weight = scale * byte
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels.h"

namespace regard {

namespace {

constexpr float ROUNDED_FOUR = MOST_FOUR - 4 * 0.5f;  // that are then rounded

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

// Behind the last column that lies in the same panel as column n.
long end_of_panel(const Pack& p, long n) {
  const long end = n + PANEL - (p.column + n) % PANEL;
  return end < p.rows ? end : p.rows;
}

template <class Stored> void pack_rows(const Pack& p) {
  constexpr long BLOCK = 128;  // floats read from one row of W before the next; what they become stays in the cache
  for (long first = 0, last; first < p.rows; first = last) {
    last = end_of_panel(p, first);
    const long column = (p.column + first) % PANEL;
    float* panel = head(p, first, 0) - column;
    for (long n = first; n < last; n++) panel[column + n - first] = p.bias_N ? p.bias_N[n] : 0.0f;
    Stored* to = reinterpret_cast<Stored*>(panel + PANEL) + column;
    for (long begin = 0; begin < p.inner; begin += BLOCK) {
      const long end = begin + BLOCK < p.inner ? begin + BLOCK : p.inner;
      for (long n = first; n < last; n++) {
        const float* from = p.weight_NK.at + n * p.weight_NK.stride;
        __builtin_prefetch(from + end);
        for (long k = begin; k < end; k++) store(to + k * PANEL + n - first, from[k]);
      }
    }
  }
}

// The largest of numbers without their signs, as bits, which are in the same order; one that is none is above all.
uint32_t largest(const float* from, long count) {
  uint32_t most = 0;
  for (long k = 0; k < count; k++) {
    uint32_t bits;
    std::memcpy(&bits, from + k, sizeof bits);
    bits &= 0x7fffffff;
    most = bits > most ? bits : most;
  }
  return most;
}

// The largest sum, without signs, of four weights whose products one 16-bit number adds up: halves of two fours.
float largest_four(const float* from, long count) {
  float most = 0.0f;
  const auto sum = [&](long k) {
    float total = 0.0f;
    for (const long place : {k, k + 1, k + 4, k + 5}) total += place < count ? std::fabs(from[place]) : 0.0f;
    return total;
  };
  for (long k = 0; k < count; k += 8) most = std::max({most, sum(k), sum(k + 2)});
  return most;
}

void pack_bytes(const Pack& p) {
  std::vector<int8_t> bytes(static_cast<size_t>(4 * groups_of(p.inner)));  // of a column
  for (long n = 0; n < p.rows; n++) {
    const float* from = p.weight_NK.at + n * p.weight_NK.stride;
    const uint32_t bits = largest(from, p.inner);
    float most;
    std::memcpy(&most, &bits, sizeof most);
    const bool finite = std::isfinite(most);
    const float four = finite ? std::max(largest_four(from, p.inner), most * ROUNDED_FOUR / MOST_W) : 0.0f;
    const float factor = finite && most > SMALLEST ? ROUNDED_FOUR / four : 0.0f;
    int sum = 0;
    long squares = 0;
    for (long k = 0; finite && k < p.inner; k++) {
      const float scaled = from[k] * factor;
      const int byte = static_cast<int>(scaled + (scaled < 0.0f ? -0.5f : 0.5f));
      bytes[static_cast<size_t>(k)] = static_cast<int8_t>(byte);
      sum += byte;
      squares += byte * byte;
    }
    if (!finite) std::fill(bytes.begin(), bytes.end(), int8_t{0});
    char* to = reinterpret_cast<char*>(head(p, n, BYTES_HEAD));
    for (long g = 0; g < groups_of(p.inner); g++) std::memcpy(to + g * PANEL_LINE, bytes.data() + 4 * g, 4);
    const float scale = finite ? four / ROUNDED_FOUR : std::numeric_limits<float>::quiet_NaN();
    *head(p, n, 0) = scale;
    *head(p, n, 1) = p.bias_N ? p.bias_N[n] : 0.0f;
    *head(p, n, 2) = static_cast<float>(sum);
    *head(p, n, 3) = scale * std::sqrt(static_cast<float>(squares));
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
