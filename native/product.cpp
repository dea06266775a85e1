// out_TN = activation(x_TK W_KN + b_N), at few rows.
//
// W is packed in panels of 32 columns, so that the innermost loop reads it as one stream. A tile of up to MOST_ROWS
// rows and TILE words is kept in registers while K runs. An entry is one chain of fused additions, from the bias on,
// over K in order, whatever the tile: a row has the same bits alone and among others.
#include "set.h"

#include "activations.h"

namespace regard::REGARD_SET {

namespace {

constexpr int PER_PANEL = PANEL / LANES;            // words across a panel
constexpr int MOST_ROWS = LANES == 16 ? 12 : 6;     // with 2 words a row and their operands: 32 or 16 registers
constexpr long CHUNK = 72;                          // rows that stay in the second cache while panels pass
constexpr long LINE = 16;                           // floats of a cache line
constexpr long AHEAD = 16;                          // rows of a panel that are asked for before they are needed

// `words` from word number `word` on, of `ROWS` rows from `row` on.
template <int ROWS, int WORDS> void tile(const Product& p, long row, long word) {
  constexpr int ACROSS = WORDS < PER_PANEL ? WORDS : PER_PANEL;  // words that one panel has of the tile
  const float *w[WORDS / ACROSS], *x[ROWS];
  Word total[ROWS][WORDS];
#pragma GCC unroll 16
  for (int j = 0; j < WORDS; j++) {
    if (j % ACROSS == 0)
      w[j / ACROSS] = p.packed + (word + j) / PER_PANEL * (1 + p.inner) * PANEL + (word + j) % PER_PANEL * LANES;
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++) total[i][j] = load(w[j / ACROSS] + j % ACROSS * LANES);
  }
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; i++) x[i] = p.x.at + (row + i) * p.x.stride;
#pragma GCC unroll 4
  for (long k = 0; k < p.inner; k++) {
    Word column[WORDS];
#pragma GCC unroll 16
    for (int j = 0; j < WORDS; j++) {
      const float* at = w[j / ACROSS] + (1 + k) * PANEL + j % ACROSS * LANES;
      column[j] = load(at);
      if (j * LANES % LINE == 0) __builtin_prefetch(at + AHEAD * PANEL);
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
    for (int j = 0; j < WORDS; j++) {
      const long place = (word + j) * LANES, left = p.columns - place;
      float* at = p.out.at + (row + i) * p.out.stride + place;
      if (left >= LANES) store(at, total[i][j]);
      else if (left > 0) store_some(at, total[i][j], left);
    }
}

using Tile = void (*)(const Product&, long row, long word);

template <class Counts> struct Tiles;
template <int... ROW> struct Tiles<std::integer_sequence<int, ROW...>> {
  static constexpr Tile of[] = {tile<ROW + 1, 2>...};
};
Tile tile_of(long rows) { return Tiles<std::make_integer_sequence<int, MOST_ROWS>>::of[rows - 1]; }

// With few rows a tile is wider: more sums side by side hide the time that an addition takes.
struct Shape {
  Tile tile;
  int words;
};
Shape shape_for(long rows) {
  if (rows == 1) return {tile<1, 8>, 8};
  if (rows == 2) return LANES == 16 ? Shape{tile<2, 8>, 8} : Shape{tile<2, 4>, 4};
  if (rows == 3) return {tile<3, 4>, 4};
  if (rows == 4 && LANES == 16) return {tile<4, 4>, 4};
  return {nullptr, 2};
}

void few_rows(const Product& p, Shape shape, long words) {
  long word = 0;
  for (; word + shape.words <= words; word += shape.words) shape.tile(p, 0, word);
  for (; word < words; word += 2) tile_of(p.rows)(p, 0, word);
  apply(p.activation, p.out, p.rows, p.columns);
}

// Rows divide as evenly as they can, so that no tile is thin.
void many_rows(const Product& p, long words) {
  const long tiles = (p.rows + MOST_ROWS - 1) / MOST_ROWS;
  for (long word = 0; word < words; word += 2) {
    const long place = word * LANES, left = p.columns - place;
    for (long t = 0, row = 0; t < tiles; t++) {
      const long rows = p.rows / tiles + (t < p.rows % tiles);
      tile_of(rows)(p, row, word);
      if (left > 0)
        apply(p.activation, {p.out.at + row * p.out.stride + place, p.out.stride}, rows,
              left < 2 * LANES ? left : 2 * LANES);
      row += rows;
    }
  }
}

}  // namespace

void product(const Product& p) {
  if (p.rows <= 0) return;
  const long words = (p.columns + PANEL - 1) / PANEL * PER_PANEL;
  const Shape shape = shape_for(p.rows);
  if (shape.tile) return few_rows(p, shape, words);
  for (long row = 0; row < p.rows; row += CHUNK) {
    Product part = p;
    part.x.at += row * p.x.stride;
    part.out.at += row * p.out.stride;
    part.rows = p.rows - row < CHUNK ? p.rows - row : CHUNK;
    many_rows(part, words);
  }
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
