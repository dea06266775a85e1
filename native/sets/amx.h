// Sums of products of bytes by AMX, whose registers are tiles of 16 rows of 64 bytes: one instruction multiplies 16 rows
// of x, 64 entries of each, by 16 columns of W. A panel already has its bytes in the order of such tiles: a line is a row
// of two of them, four entries of K for each column. The sums are whole numbers, those of bytes.h.
//
//              W: one panel                     W: two panels, where x has 16 rows or fewer
//              ┌──6──┬──7──┐                    ┌──6──┬──7──┬──6──┬──7──┐
//     x  ┌─4─┐ │  0  │  1  │             x ┌─4─┐│  0  │  1  │  2  │  3  │
//        ├─5─┤ │  2  │  3  │               └───┘└─────┴─────┴─────┴─────┘
//        └───┘ └─────┴─────┘
//
// Numbers are those of the tiles. Four sums side by side hide the time that an addition takes.
#pragma once

#include <immintrin.h>

#include "kernels.h"
#include "words.h"

namespace regard::REGARD_SET {

constexpr long AMX_ROWS = 16, AMX_BYTES = 64, AMX_LINES = AMX_BYTES / 4;  // of a tile; a line has four entries of K

struct AmxShapes {  // of the tiles, as the processor reads them
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t bytes[16] = {};
  uint8_t rows[16] = {};

  // Upper rows of x in tile 4, lower ones in tile 5; without lower rows all sums are of the upper ones, by two panels.
  AmxShapes(long upper, long lower) {
    for (int tile = 0; tile < 8; tile++) {
      const bool below = lower > 0 && (tile == 2 || tile == 3 || tile == 5);
      bytes[tile] = AMX_BYTES;
      rows[tile] = static_cast<uint8_t>(tile >= 6 ? AMX_LINES : below ? lower : upper);
    }
  }
};

// GCC's own intrinsic says that it reads 8 bytes, so that the others may not have been written.
REGARD_INLINE void amx_begin(const AmxShapes& shapes) { asm volatile("ldtilecfg %0" ::"m"(shapes)); }

// Some rows of x, and the fours of one panel or two. What K leaves after whole tiles is a copy, with zeros behind it.
struct AmxBlock {
  const char *x, *below;  // bytes of the rows of tile 4, and of tile 5: null where there are two panels
  long x_stride;          // in bytes
  long steps;             // whole tiles of K
  const char* panel[2];
  const char (*rest)[AMX_LINES][PANEL_LINE];  // of each panel; null if nothing is left
};

REGARD_INLINE void amx_step(const AmxBlock& b, long step, const char* w) {
  _tile_loadd(4, b.x + step * AMX_BYTES, b.x_stride);
  _tile_loadd(6, w, PANEL_LINE);
  _tile_loadd(7, w + AMX_BYTES, PANEL_LINE);
  _tile_loadd(5, b.below + step * AMX_BYTES, b.x_stride);
  _tile_dpbusd(0, 4, 6);
  _tile_dpbusd(1, 4, 7);
  _tile_dpbusd(2, 5, 6);
  _tile_dpbusd(3, 5, 7);
}

REGARD_INLINE void amx_step(const AmxBlock& b, long step, const char* w, const char* v) {
  _tile_loadd(4, b.x + step * AMX_BYTES, b.x_stride);
  _tile_loadd(6, w, PANEL_LINE);
  _tile_dpbusd(0, 4, 6);
  _tile_loadd(7, w + AMX_BYTES, PANEL_LINE);
  _tile_dpbusd(1, 4, 7);
  _tile_loadd(6, v, PANEL_LINE);
  _tile_dpbusd(2, 4, 6);
  _tile_loadd(7, v + AMX_BYTES, PANEL_LINE);
  _tile_dpbusd(3, 4, 7);
}

// sums_IN of the block's rows I and a panel's columns N; those of a second panel from row `next` on.
inline void amx_sums(const AmxBlock& b, int32_t (*sums)[PANEL], long next) {
  constexpr long STEP = AMX_LINES * PANEL_LINE;
  asm volatile("" ::: "memory");  // what tiles load has been written
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  if (b.below) {
    for (long step = 0; step < b.steps; step++) amx_step(b, step, b.panel[0] + step * STEP);
    if (b.rest) amx_step(b, b.steps, b.rest[0][0]);
  } else {
    for (long step = 0; step < b.steps; step++) amx_step(b, step, b.panel[0] + step * STEP, b.panel[1] + step * STEP);
    if (b.rest) amx_step(b, b.steps, b.rest[0][0], b.rest[1][0]);
  }
  _tile_stored(0, sums[0], PANEL_LINE);
  _tile_stored(1, sums[0] + PANEL / 2, PANEL_LINE);
  _tile_stored(2, sums[next], PANEL_LINE);
  _tile_stored(3, sums[next] + PANEL / 2, PANEL_LINE);
}

}  // namespace regard::REGARD_SET
