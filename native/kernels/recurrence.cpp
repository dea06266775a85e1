// The simpler simple recurrent unit [Kim19], one token of each row: f = 1 / (1 + e^-g), c = f c_before + (1 - f) x, and
// max(0, c). States stay where they were written, so that a beam that is reordered copies none.
#include "activations.h"
#include "set.h"

namespace regard::REGARD_SET {

void recurrence(const Recurrence& r) {
  for (long row = 0; row < r.rows; row++) {
    const float *x = r.x.at + row * r.x.stride, *gate = x + r.columns;
    const int32_t* place_S = r.places_TS + row * r.places_stride;
    const long length = r.length_T[row];
    const float* before = length > 1 ? r.state.at + place_S[length - 2] * r.state.stride : nullptr;
    float *state = r.state.at + r.slot_T[row] * r.state.stride, *out = r.out.at + row * r.out.stride;
    each_word(r.columns, [&](long place, long lanes) {
      const Word keep = 1.0f / (exp(-load(gate + place, lanes)) + 1.0f);
      Word c = (1.0f - keep) * load(x + place, lanes);
      if (before) c = keep * load(before + place, lanes) + c;
      store(state + place, c, lanes);
      store(out + place, relu(c), lanes);
    });
  }
}

}  // namespace regard::REGARD_SET
