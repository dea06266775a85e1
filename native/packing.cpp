// The order in which a product reads its matrix: panels of 32 columns, each the biases and then a row for every k.
#include "kernels.h"

namespace regard {

void pack(const Pack& p) {
  constexpr long BLOCK = 16;  // floats of a cache line, read from one row of W before the next
  const long panel_size = (1 + p.inner) * PANEL;
  for (long n = 0; n < p.rows; n++) {
    const long column = p.column + n;
    p.packed[column / PANEL * panel_size + column % PANEL] = p.bias_N ? p.bias_N[n] : 0.0f;
  }
  for (long begin = 0; begin < p.inner; begin += BLOCK) {
    const long end = begin + BLOCK < p.inner ? begin + BLOCK : p.inner;
    for (long n = 0; n < p.rows; n++) {
      const long column = p.column + n;
      float* to = p.packed + column / PANEL * panel_size + PANEL + column % PANEL;
      const float* from = p.weight_NK.at + n * p.weight_NK.stride;
      for (long k = begin; k < end; k++) to[k * PANEL] = from[k];
    }
  }
}

}  // namespace regard
