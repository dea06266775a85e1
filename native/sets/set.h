// The kernels of one instruction set, by name; table.cpp puts them into its table.
#pragma once

#include "table.h"
#include "team.h"

namespace regard::REGARD_SET {

void product(const Product&);
void gate(const Gate&);
void norm(const Norm&);
void attention(const Attention&);
void vocabulary(const Vocabulary&);
void argmax(const Argmax&);
void softmax(const Softmax&);
void dropout(const Dropout&);
void rotation(const Rotation&);
void recurrence(const Recurrence&);
void halve(const Halving&);
void training_attention(const TrainingAttention&);
void attention_gradient(const TrainingAttention&, const AttentionGradient&);

// What the time of a product is about proportional to.
constexpr long work_of(long weight_bytes, long rows) { return weight_bytes / 16 * (15 + rows); }

// part(0 ... parts - 1) by the team's threads.
template <class F> void divide(long parts, long work, const F& part) {
  const auto call = [](const void* about, long number) { (*static_cast<const F*>(about))(number); };
  regard::divide(parts, static_cast<double>(work), call, &part);
}

// Rows of x as bytes, quantised_bytes(inner) each: a scale, what a zero byte stands for, and the entries.
void quantise(ConstRows x, long rows, long inner, char* to);
void multiply_bytes(const Product&);
void product_of_quantised(const Product&);  // of any number of rows; where the matrix is of floats, product

}  // namespace regard::REGARD_SET
