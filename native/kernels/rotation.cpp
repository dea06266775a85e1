// Rotary positions [Su24 §3.4.2]: entries i and i + K/2 of each head are turned by the angle of the row's place,
//   x_i cos - x_(i + K/2) sin and x_(i + K/2) cos + x_i sin.
#include "set.h"
#include "words.h"

namespace regard::REGARD_SET {

void rotation(const Rotation& r) {
  const long half = r.size / 2;
  for (long row = 0; row < r.rows; row++)
    for (long head = 0; head < r.heads; head++) {
      float *first = r.x.at + row * r.x.stride + head * r.size, *second = first + half;
      const float *cos = r.cos_SX + r.place_T[row] * half, *sin = r.sin_SX + r.place_T[row] * half;
      each_word(half, [&](long i, long lanes) {
        const Word a = load(first + i, lanes), b = load(second + i, lanes);
        const Word c = load(cos + i, lanes), s = load(sin + i, lanes);
        store(first + i, a * c - b * s, lanes);
        store(second + i, b * c + a * s, lanes);
      });
    }
}

}  // namespace regard::REGARD_SET
