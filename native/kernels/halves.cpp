// Rows in bf16: keys and values that are kept for later steps take half the memory, and are read in half the time.
#include "set.h"
#include "words.h"

namespace regard::REGARD_SET {

void halve(const Halving& h) {
  for (long row = 0; row < h.rows; row++) {
    const float* from = h.x.at + row * h.x.stride;
    uint16_t* to = h.out + row * h.out_stride;
    each_word(h.columns, [&](long place, long lanes) {
      const Word x = load(from + place, lanes);
      store(to + place, x == x ? x : all(__builtin_nanf("")), lanes);  // the bits of another could round to a number
    });
  }
}

}  // namespace regard::REGARD_SET
