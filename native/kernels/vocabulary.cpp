// The k largest of score_NV = hidden_ND W_DV and log sum exp score_NV, without ever holding score_NV.
//
// A block of columns is multiplied and looked at while it is in the cache: its largest score and its share of
// sum exp(score - largest). Then, block by block in their order, what enters the k best (of most blocks nothing), and
// the shares, scaled to the highest score yet. Threads have blocks of their own; the result is the same for any number.
#include "scores.h"

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

// Of a row in a block of columns.
struct Look {
  const float* score;
  float highest, sum;  // of exp(score - highest)
};

Look look(const float* score, long columns) {
  const float highest = highest_of(score, columns);
  Word total = all(0.0f);
  each_word(columns, [&](long place, long lanes) {
    total += exp(load(score + place, lanes, -__builtin_inff()) - highest);
  });
  return {score, highest, sum(total)};
}

// Adds a block to what is known of a row; log_sum_N holds the running sum until the end.
void add(const Vocabulary& v, long row, const Look& block, long begin, long columns, float& highest) {
  float* score_k = v.score_Nk + row * v.k;
  int32_t* id_k = v.ids_Nk + row * v.k;
  const auto enter_word = [&](long first, long lanes) {
    if (!(largest(load(block.score + first, lanes, -__builtin_inff())) > score_k[v.k - 1])) return;
    for (long place = first; place < first + lanes; place++)
      if (block.score[place] > score_k[v.k - 1] && !(v.scores.without_V && v.scores.without_V[begin + place]))
        enter(score_k, id_k, v.k, block.score[place], static_cast<int32_t>(begin + place));
  };
  if (block.highest > score_k[v.k - 1]) each_word(columns, enter_word);
  if (block.highest > highest) {
    v.log_sum_N[row] *= static_cast<double>(exp(all(highest - block.highest))[0]);
    highest = block.highest;
  }
  v.log_sum_N[row] += static_cast<double>(block.sum) * static_cast<double>(exp(all(block.highest - highest))[0]);
}

}  // namespace

void vocabulary(const Vocabulary& v) {
  const Scores& s = v.scores;
  float* const highest_N = s.scratch;
  Look* const look_BN = reinterpret_cast<Look*>(highest_N + (s.rows + 1) / 2 * 2);
  float* const score = reinterpret_cast<float*>(look_BN + s.together * s.rows);
  for (long place = 0; place < s.rows * v.k; place++) {
    v.score_Nk[place] = -__builtin_inff();
    v.ids_Nk[place] = -1;
  }
  for (long row = 0; row < s.rows; row++) {
    highest_N[row] = -__builtin_inff();
    v.log_sum_N[row] = 0.0;
  }
  each_block(
      s, score,
      [&](long block, long number, const float* at) {
        for (long row = 0; row < s.rows; row++)
          look_BN[number * s.rows + row] = look(at + row * VOCABULARY_STRIDE, columns_of(s, block));
      },
      [&](long first, long count) {
        for (long number = 0; number < count; number++)
          for (long row = 0; row < s.rows; row++)
            add(v, row, look_BN[number * s.rows + row], (first + number) * VOCABULARY_BLOCK,
                columns_of(s, first + number), highest_N[row]);
      });
  for (long row = 0; row < s.rows; row++)
    v.log_sum_N[row] = static_cast<double>(highest_N[row]) + __builtin_log(v.log_sum_N[row]);
}

}  // namespace regard::REGARD_SET
