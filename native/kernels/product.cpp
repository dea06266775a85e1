// out_TN = activation(x_TK W_KN + b_N), at few rows.
//
// W is packed in panels of 32 columns, so that the innermost loop reads it as one stream. A tile of rows and words is
// kept in registers while K runs. An entry is one chain of fused additions, from the bias on, over K in order, whatever
// the tile: a row has the same bits alone and among others. Weights may be stored by half (bf16), and are widened then.
#include "set.h"

#include "tiles.h"

namespace regard::REGARD_SET {

namespace {

constexpr long AHEAD = 16;      // rows of a panel that are asked for before they are needed
constexpr long CACHE_LINE = 64;  // bytes
constexpr long PARTS = 4;       // that a thread takes of a product
constexpr long LEAST_PART = 1L << 15;  // work of one

// Weights as they are stored: floats, or the upper halves of floats.
template <class Stored, Precision PRECISION> struct Weights {
  static constexpr int MOST_ROWS = LANES == 16 ? 12 : 6;  // with 2 words a row and their operands: 32 or 16 registers
  static constexpr long INNER = NEAR_INNER;
  static constexpr int wide(long rows) {
    return rows == 1 ? 8 : rows == 2 ? (LANES == 16 ? 8 : 4) : rows == 3 || LANES == 16 ? 4 : 2;
  }

  template <int ROWS, int WORDS> static void tile(const Product& p, long row, long word, Part part) {
    constexpr int ACROSS = WORDS < PER_PANEL ? WORDS : PER_PANEL;  // words that one panel has of the tile
    const Stored* w[WORDS / ACROSS];
    const float* x[ROWS];
    Word total[ROWS][WORDS];
#pragma GCC unroll 16
    for (int j = 0; j < WORDS; j++) {
      const char* panel = p.matrix.at + (word + j) / PER_PANEL * panel_bytes(PRECISION, p.matrix.inner);
      const long column = (word + j) % PER_PANEL * LANES;
      if (j % ACROSS == 0) w[j / ACROSS] = reinterpret_cast<const Stored*>(panel + PANEL_LINE) + column;
#pragma GCC unroll 16
      for (int i = 0; i < ROWS; i++)
        total[i][j] = part.begin ? written(p, row + i, word + j) : load(reinterpret_cast<const float*>(panel) + column);
    }
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++) x[i] = p.x.at + (row + i) * p.x.stride;
#pragma GCC unroll 4
    for (long k = part.begin; k < part.end; k++) {
      Word column[WORDS];
#pragma GCC unroll 16
      for (int j = 0; j < WORDS; j++) {
        const Stored* at = w[j / ACROSS] + k * PANEL + j % ACROSS * LANES;
        column[j] = load(at);
        if (j * LANES * static_cast<long>(sizeof(Stored)) % CACHE_LINE == 0) __builtin_prefetch(at + AHEAD * PANEL);
      }
#pragma GCC unroll 16
      for (int i = 0; i < ROWS; i++) {
        const Word entry = all(x[i][k]);
#pragma GCC unroll 16
        for (int j = 0; j < WORDS; j++) total[i][j] = entry * column[j] + total[i][j];
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 16
      for (int j = 0; j < WORDS; j++) write(p, row + i, word + j, total[i][j]);
  }
};

// A part of a product whose rows stay in the cache, f(part).
template <class F> void each_chunk(const Product& p, F f) {
  const long chunk = chunk_of(p.matrix.inner);
  for (long row = 0; row < p.rows; row += chunk) {
    Product part = p;
    part.x.at += row * p.x.stride;
    part.out.at += row * p.out.stride;
    part.rows = p.rows - row < chunk ? p.rows - row : chunk;
    f(part, row);
  }
}

void one_chunk(const Product& p) {
  switch (p.matrix.precision) {
    case Precision::fp32: return all_tiles<Weights<float, Precision::fp32>>(p);
    case Precision::bf16: return all_tiles<Weights<uint16_t, Precision::bf16>>(p);
    case Precision::int8: return in_use().multiply_bytes(p);  // sets that differ in nothing else share this code
  }
}

// The same by all threads, some panels each, where that is worth it.
void divided_chunk(const Product& p) {
  const long panels = (p.columns + PANEL - 1) / PANEL, bytes = panel_bytes(p.matrix.precision, p.matrix.inner);
  const long work = work_of(bytes, p.rows), least = (LEAST_PART + work - 1) / work;
  const long even = panels / (PARTS * threads()), each = (least > even ? least : even) / 2 * 2 + 2;
  if (threads() == 1 || each >= panels) return one_chunk(p);
  divide((panels + each - 1) / each, panels * work, [&](long number) {
    const long column = number * each * PANEL, left = p.columns - column;
    Product part = p;
    part.matrix.at += number * each * bytes;
    part.out.at += column;
    part.columns = left < each * PANEL ? left : each * PANEL;
    one_chunk(part);
  });
}

}  // namespace

void product(const Product& p) {
  each_chunk(p, [](Product part, long) {
    part.scratch = at_line(part.scratch);
    if (part.matrix.precision == Precision::int8) quantise(part.x, part.rows, part.matrix.inner, part.scratch);
    divided_chunk(part);
  });
}

void product_of_quantised(const Product& p) {
  each_chunk(p, [&](Product part, long row) {
    part.scratch += row * quantised_bytes(p.matrix.inner);
    one_chunk(part);
  });
}

void gate(const Gate& g) {
  for (long row = 0; row < g.rows; row++) {
    const float* x = g.x.at + row * g.x.stride;
    float* out = g.out.at + row * g.out.stride;
    each_word(g.columns, [&](long place, long lanes) { store(out + place, load(x + place, lanes), lanes); });
    apply(g.activation, {out, g.out.stride}, 1, g.columns);
    each_word(g.columns, [&](long place, long lanes) {
      store(out + place, load(out + place, lanes) * load(x + g.columns + place, lanes), lanes);
    });
  }
}

}  // namespace regard::REGARD_SET
