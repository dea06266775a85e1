// The largest of score_NV = hidden_ND W_DV in each row, exactly, by screening: greedy search needs no other score.
//
// W in bytes takes a fourth of the memory and less than a fourth of the time. Its scores are off by what rounding took,
// which the inequality of Cauchy and Schwarz bounds, for x~ and w~ rounded in steps of s and t:
//
//   |x w - x~ w~| <= |x| |w - w~| + |x - x~| |w~| <= sqrt(K) / 2 (t |x| + s |w~|)
//
// A bias is the same number in both; each addition to it is rounded.
// So only panels whose highest rounded score lies no further than that below the best exact score can have a better one:
// mostly one of a thousand. They are multiplied exactly; an entry has the bits that it has in the whole product. Where
// all scores are alike, as those of a model that has learned nothing, there are many, and the whole product is faster.
#include "scores.h"

namespace regard::REGARD_SET {

namespace {

// The highest of a panel's scores or extents; no number where one of them is none.
float highest(const float* at, long columns) {
  Word most_yet = all(-__builtin_inff()), none = all(0.0f);
  each_word(columns, [&](long place, long lanes) {
    const Word found = load(at + place, lanes, -3e38f);
    most_yet = most(found, most_yet);
    none += found * 0.0f;
  });
  return largest(most_yet) + sum(none);
}

constexpr float TINY = 0x1p-70f;  // above what has the square zero

// How far a score in bytes may be off: for a panel with these steps and norms at most.
struct Bound {
  float steps = 0.0f, norms = 0.0f, biases = 0.0f, tiny = 0.0f;
  Bound() = default;

  // Of a row, and its bytes. Beside the roundings to bytes there are those of floats, numbers whose square is zero as a
  // float, and products that are denormal: each is off by 2^-149, and up to K 127 63 such steps make a score.
  Bound(const float* x, const char* bytes, long inner) {
    Word total = all(0.0f);
    each_word(inner, [&](long place, long lanes) {
      const Word entry = load(x + place, lanes);
      total += entry * entry;
    });
    const float step = reinterpret_cast<const float*>(bytes)[0], low = reinterpret_cast<const float*>(bytes)[1];
    const float root = __builtin_sqrtf(static_cast<float>(inner)), norm = __builtin_sqrtf(sum(total));
    const float rounded = static_cast<float>(inner) * 0x1p-23f * norm +
                          (MOST_X * step + __builtin_fabsf(low)) * root * 0x1p-20f + TINY * root;
    tiny = static_cast<float>(inner) * 0x1p-135f;
    biases = static_cast<float>(inner + 2) * 0x1p-23f;
    steps = 1.001f * (norm + rounded) * root / 2;
    norms = 1.001f * (step * root / 2 + rounded);
  }
  float of(float step, float norm, float bias) const {
    return steps * (step + 4 * SMALLEST) + norms * norm + biases * bias + tiny;
  }
};

// The best exact score of a row so far.
struct Best {
  const Argmax& a;
  long row;
  const char* quantised;
  float score = -__builtin_inff();
  int32_t id = -1;
  bool finite = true;

  void look(long panel) {
    const Scores& s = a.scores;
    const long begin = panel * PANEL, columns = s.columns - begin < PANEL ? s.columns - begin : PANEL;
    float exact[PANEL];
    product_of_quantised({{s.hidden.at + row * s.hidden.stride, s.hidden.stride},
                          {a.exact.at + panel * panel_bytes(a.exact.precision, a.exact.inner), a.exact.inner,
                           a.exact.precision},
                          {exact, PANEL}, 1, columns, Activation::none, const_cast<char*>(quantised)});
    for (long n = 0; n < columns; n++) {
      finite = finite && exact[n] * 0.0f == 0.0f;
      const int32_t found = static_cast<int32_t>(begin + n);
      if (s.without_V && s.without_V[found]) continue;
      if (exact[n] > score || (exact[n] == score && found < id)) {
        score = exact[n];
        id = found;
      }
    }
  }
};

constexpr long MANY = 6;  // a panel for one row alone takes about six times what it takes for one row of many

}  // namespace

void argmax(const Argmax& a) {
  const Scores& s = a.scores;
  const Matrix& w = s.matrix;
  const bool screens = w.at != a.exact.at;
  const long panels = (s.columns + PANEL - 1) / PANEL, bytes = panel_bytes(w.precision, w.inner);
  const long per_block = VOCABULARY_BLOCK / PANEL;
  float *const highest_NP = s.scratch, *const step_P = highest_NP + s.rows * panels, *const norm_P = step_P + panels,
               *const bias_P = norm_P + panels;
  each_block(
      s, bias_P + panels,
      [&](long block, long, const float* at) {
        for (long row = 0; row < s.rows; row++)
          for (long place = 0; place < columns_of(s, block); place += PANEL) {
            const long left = columns_of(s, block) - place, panel = block * per_block + place / PANEL;
            highest_NP[row * panels + panel] = highest(at + row * VOCABULARY_STRIDE + place, left < PANEL ? left : PANEL);
          }
      },
      [](long, long) {});
  for (long panel = 0; panel < panels; panel++) {
    const float* head = reinterpret_cast<const float*>(w.at + panel * bytes);
    step_P[panel] = screens ? highest(head, PANEL) : 0.0f;
    norm_P[panel] = screens ? highest(head + 3 * PANEL, PANEL) : 0.0f;
    bias_P[panel] = 0.0f;
    for (long n = 0; screens && n < PANEL; n++) {
      const float size = __builtin_fabsf(head[PANEL + n]);
      bias_P[panel] = size > bias_P[panel] ? size : bias_P[panel];
    }
  }
  long looked = 0;
  const long together = screens ? (s.rows < MANY ? s.rows : MANY) : 1;
  for (long row = 0; row < s.rows; row++) {
    const float* highest_P = highest_NP + row * panels;
    const char* quantised = at_line(s.quantised) + row * quantised_bytes(w.inner);
    Best best{a, row, quantised};
    long first = 0;
    for (long panel = 1; panel < panels; panel++)
      if (highest_P[panel] > highest_P[first]) first = panel;
    if (panels > 0) best.look(first);
    const Bound bound = screens ? Bound(s.hidden.at + row * s.hidden.stride, quantised, w.inner) : Bound{};
    const auto may_have_better = [&](long panel) {
      return panel != first && !(highest_P[panel] + bound.of(step_P[panel], norm_P[panel], bias_P[panel]) < best.score);
    };
    for (long panel = 0; panel < panels; panel++) looked += may_have_better(panel);
    if (looked * together > (row + 2) * panels) {
      Scores whole = s;
      whole.matrix = a.exact;
      return argmax({whole, a.exact, a.id_N});
    }
    for (long panel = 0; panel < panels; panel++)
      if (may_have_better(panel)) best.look(panel);
    a.id_N[row] = best.finite ? best.id : -1;
  }
}

}  // namespace regard::REGARD_SET
