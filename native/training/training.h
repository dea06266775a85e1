// What the kernels of training compute, as kernels.h has those of finished models.
#pragma once

#include "kernels.h"

namespace regard {

// Attention for whole sequences, whose tokens are neighbours, and what its gradient needs. Contexts and gradients are
// added to what their arrays hold.
struct TrainingAttention {
  ConstRows query, key, value;
  Rows context;
  const int64_t *query_start_B, *query_length_B, *key_start_B, *key_length_B;
  const float* bias_HLM;  // null, or added to the scores: bias_longest rows and columns for each head, in one piece
  long bias_longest;
  float* weights;  // of each sequence, head and query a row of kept(keys) weights
  long count, heads, key_size, value_size;
  bool causal;  // the last query sees all keys, the one before it all but the last
  float scale;
  float* nearby;  // as many floats as the longest sequences have in query, key, value and context
};
struct AttentionGradient {
  ConstRows context;  // given
  Rows query, key, value;
  float* bias_HLM;  // null, or as large as the bias
  float* scratch;   // as many weights as the longest sequence has
};
constexpr long KEPT = 16;  // weights of a query are whole words of every set
constexpr long kept(long keys) { return (keys + KEPT - 1) / KEPT * KEPT; }

// x_RV = softmax(x_RV) in place, and log sum exp x_RV
struct Softmax {
  float* floats;     // null where x is of bf16
  uint16_t* halves;  // x of bf16
  float* scratch;    // for bf16: as many floats as columns
  float* log_sum_R;
  long stride, rows, columns;
};

// out = x * (drawn >= threshold) * scale, or sum = stream + that; zero where a gate, if there is one, is not above zero
struct Dropout {
  const void *x, *gate;  // of bf16 if `halves`, else of floats, as is out; all have `size` entries
  const uint8_t* drawn;
  const float* stream;  // null: no sum
  float* sum;
  void* out;  // may be x
  long size;
  int32_t threshold;
  float scale;
  bool halves;
};

}  // namespace regard
