// The order of a product's tiles. A tile is some rows of x times some words of W's columns, whose sums stay in registers
// while K runs; `Kind` computes one:
//
//   Kind::MOST_ROWS                                    rows of a tile with two words
//   Kind::INNER                                        entries of K at once, of many rows
//   Kind::tile<ROWS, WORDS>(product, row, word, part)  adds a part of K to its entries of out, without the activation
//   Kind::wide(rows)                                   words of a tile of so few rows; 2 where it is no wider
#pragma once

#include "activations.h"

namespace regard::REGARD_SET {

constexpr int PER_PANEL = PANEL / LANES;  // words across a panel

struct Part {  // of K
  long begin, end;
};
using Tile = void (*)(const Product&, long row, long word, Part);

template <class Kind, class Counts> struct Tiles;
template <class Kind, int... ROW> struct Tiles<Kind, std::integer_sequence<int, ROW...>> {
  static constexpr Tile of[] = {Kind::template tile<ROW + 1, 2>...};
};
template <class Kind> Tile tile_of(long rows) {
  return Tiles<Kind, std::make_integer_sequence<int, Kind::MOST_ROWS>>::of[rows - 1];
}

// Few rows: a tile is wider, since more sums side by side hide the time that an addition takes.
template <class Kind> void few_rows(const Product& p, Tile wide, long width, long words) {
  const Part whole{0, p.matrix.inner};
  long word = 0;
  for (; word + width <= words; word += width) wide(p, 0, word, whole);
  for (; word < words; word += 2) tile_of<Kind>(p.rows)(p, 0, word, whole);
  apply(p.activation, p.out, p.rows, p.columns);
}

// Rows divide as evenly as they can, so that no tile is thin.
template <class Kind> void add_part(const Product& p, long words, Part part) {
  const long tiles = (p.rows + Kind::MOST_ROWS - 1) / Kind::MOST_ROWS;
  for (long word = 0; word < words; word += 2) {
    const long place = word * LANES, left = p.columns - place;
    for (long t = 0, row = 0; t < tiles; t++) {
      const long rows = p.rows / tiles + (t < p.rows % tiles);
      tile_of<Kind>(rows)(p, row, word, part);
      if (left > 0 && part.end == p.matrix.inner)
        apply(p.activation, {p.out.at + row * p.out.stride + place, p.out.stride}, rows,
              left < 2 * LANES ? left : 2 * LANES);
      row += rows;
    }
  }
}

template <class Kind> void many_rows(const Product& p, long words) {
  const long inner = p.matrix.inner, parts = inner > Kind::INNER ? (inner + Kind::INNER - 1) / Kind::INNER : 1;
  for (long n = 0; n < parts; n++) add_part<Kind>(p, words, {inner * n / parts, inner * (n + 1) / parts});
}

template <class Kind> void all_tiles(const Product& p) {
  const long words = (p.columns + PANEL - 1) / PANEL * PER_PANEL;
  switch (p.rows) {
    case 1: return few_rows<Kind>(p, Kind::template tile<1, Kind::wide(1)>, Kind::wide(1), words);
    case 2: return few_rows<Kind>(p, Kind::template tile<2, Kind::wide(2)>, Kind::wide(2), words);
    case 3: return few_rows<Kind>(p, Kind::template tile<3, Kind::wide(3)>, Kind::wide(3), words);
    case 4: return few_rows<Kind>(p, Kind::template tile<4, Kind::wide(4)>, Kind::wide(4), words);
    default: return many_rows<Kind>(p, words);
  }
}

// A tile's word of out, and zeros for the columns that fill up the last panel.
REGARD_INLINE Word written(const Product& p, long row, long word) {
  const long place = word * LANES, left = p.columns - place;
  const float* at = p.out.at + row * p.out.stride + place;
  return left >= LANES ? load(at) : left > 0 ? load(at, left) : all(0.0f);
}

// A tile's word written where the columns are; those that fill up the last panel are not.
REGARD_INLINE void write(const Product& p, long row, long word, Word x) {
  const long place = word * LANES, left = p.columns - place;
  float* at = p.out.at + row * p.out.stride + place;
  if (left >= LANES) store(at, x);
  else if (left > 0) store_some(at, x, left);
}

}  // namespace regard::REGARD_SET
