// One table of functions for each instruction set.
#pragma once

#include "kernels.h"
#include "training.h"

namespace regard {

struct Kernels {
  const char* name;
  void (*multiply_bytes)(const Product&);  // whose scratch holds the rows of x, chunk_of at most
  void (*product)(const Product&);
  void (*gate)(const Gate&);
  void (*norm)(const Norm&);
  void (*attention)(const Attention&);
  void (*vocabulary)(const Vocabulary&);
  void (*argmax)(const Argmax&);
  void (*softmax)(const Softmax&);
  void (*dropout)(const Dropout&);
  void (*rotation)(const Rotation&);
  void (*recurrence)(const Recurrence&);
  void (*halve)(const Halving&);
  void (*training_attention)(const TrainingAttention&);
  void (*attention_gradient)(const TrainingAttention&, const AttentionGradient&);
};
const Kernels& in_use();

// A set that multiplies bytes otherwise than another one, whose other functions it has.
struct BytesSet {
  const char* name;
  void (*multiply_bytes)(const Product&);
};

}  // namespace regard
