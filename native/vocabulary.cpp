// The k largest of score_NV = hidden_ND W_DV and log sum exp score_NV, without ever holding score_NV.
//
// A block of columns is multiplied and looked at while it is in the cache: its largest score (most blocks stop here),
// what enters the k best, and its share of sum exp(score - highest), which is scaled when a higher score comes.
#include "set.h"

#include "words.h"

namespace regard::REGARD_SET {

namespace {

// The best so far of a row, best first; of equal ones the smaller id, since ids come in order.
void enter(float* score_k, int32_t* id_k, long k, float score, int32_t id) {
  long place = k - 1;
  for (; place > 0 && score_k[place - 1] < score; place--) {
    score_k[place] = score_k[place - 1];
    id_k[place] = id_k[place - 1];
  }
  score_k[place] = score;
  id_k[place] = id;
}

// One row's look at a block's scores; log_sum_N holds the running sum until the end.
void look(const Vocabulary& v, long row, const float* score, long begin, long columns, float& highest) {
  Word largest_yet = all(-__builtin_inff());
  each_word(columns, [&](long place, long lanes) {
    largest_yet = most(load(score + place, lanes, -__builtin_inff()), largest_yet);
  });
  const float here = largest(largest_yet);
  float* score_k = v.score_Nk + row * v.k;
  int32_t* id_k = v.ids_Nk + row * v.k;
  if (here > score_k[v.k - 1])
    for (long place = 0; place < columns; place++)
      if (score[place] > score_k[v.k - 1] && !(v.without_V && v.without_V[begin + place]))
        enter(score_k, id_k, v.k, score[place], static_cast<int32_t>(begin + place));
  if (here > highest) {
    v.log_sum_N[row] *= static_cast<double>(exp(all(highest - here))[0]);
    highest = here;
  }
  Word total = all(0.0f);
  each_word(columns, [&](long place, long lanes) {
    total += exp(load(score + place, lanes, -__builtin_inff()) - highest);
  });
  v.log_sum_N[row] += static_cast<double>(sum(total));
}

}  // namespace

void vocabulary(const Vocabulary& v) {
  float* highest_N = v.scratch + v.rows * VOCABULARY_STRIDE;
  for (long place = 0; place < v.rows * v.k; place++) {
    v.score_Nk[place] = -__builtin_inff();
    v.ids_Nk[place] = -1;
  }
  for (long row = 0; row < v.rows; row++) {
    highest_N[row] = -__builtin_inff();
    v.log_sum_N[row] = 0.0;
  }
  const Matrix& w = v.matrix;
  if (w.precision == Precision::int8) quantise(v.hidden, v.rows, w.inner, v.quantised);
  for (long begin = 0; begin < v.columns; begin += VOCABULARY_BLOCK) {
    const long columns = v.columns - begin < VOCABULARY_BLOCK ? v.columns - begin : VOCABULARY_BLOCK;
    const Matrix block = {w.at + begin / PANEL * panel_bytes(w.precision, w.inner), w.inner, w.precision};
    product_of_quantised({v.hidden, block, {v.scratch, VOCABULARY_STRIDE}, v.rows, columns, Activation::none,
                          v.quantised});
    for (long row = 0; row < v.rows; row++)
      look(v, row, v.scratch + row * VOCABULARY_STRIDE, begin, columns, highest_N[row]);
  }
  for (long row = 0; row < v.rows; row++)
    v.log_sum_N[row] = static_cast<double>(highest_N[row]) + __builtin_log(v.log_sum_N[row]);
}

}  // namespace regard::REGARD_SET
