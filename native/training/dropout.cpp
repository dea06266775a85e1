// Dropout by a random byte for each entry: alone, behind ReLU, or of what joins the residual stream. Its gradient is
// the same with the result's gradient for x; behind ReLU, the entries that passed are those of the result above zero.
#include "set.h"

#include "words.h"

namespace regard::REGARD_SET {

namespace {

typedef uint8_t LooseBytes __attribute__((vector_size(LANES), aligned(1), may_alias));

// What entries are multiplied by: the scale, or zero where the byte is below the threshold.
REGARD_INLINE Word factors(const uint8_t* drawn, long lanes, const Dropout& d) {
  uint8_t some[LANES] = {};
  for (long lane = 0; lanes < LANES && lane < lanes; lane++) some[lane] = drawn[lane];
  const LooseBytes bytes = *reinterpret_cast<const LooseBytes*>(lanes < LANES ? some : drawn);
  return __builtin_convertvector(bytes, Ints) >= d.threshold - Ints{} ? all(d.scale) : all(0.0f);
}

template <class T> void typed(const Dropout& d, const T* x, const T* gate, T* out) {
  each_word(d.size, [&](long place, long lanes) {
    Word y = load(x + place, lanes) * factors(d.drawn + place, lanes, d);
    if (gate) y = load(gate + place, lanes) <= all(0.0f) ? all(0.0f) : y;  // what is not a number stays so
    if (d.stream) store(d.sum + place, load(d.stream + place, lanes) + y, lanes);
    else store(out + place, y, lanes);
  });
}

}  // namespace

void dropout(const Dropout& d) {
  if (d.halves) typed(d, static_cast<const uint16_t*>(d.x), static_cast<const uint16_t*>(d.gate), static_cast<uint16_t*>(d.out));
  else typed(d, static_cast<const float*>(d.x), static_cast<const float*>(d.gate), static_cast<float*>(d.out));
}

}  // namespace regard::REGARD_SET
