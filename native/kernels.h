// What the kernels compute, as plain structs of pointers and sizes; one table of functions for each instruction set.
// Letters of shapes are those of ARCHITECTURE.md. Strides are in floats, between rows; a row's entries are neighbours.
#pragma once

#include <cstdint>

namespace regard {

constexpr int PANEL = 32;  // columns of a packed panel, the same for all instruction sets

enum class Activation : int { none, relu, gelu, gelu_tanh, swish };
enum class NormKind : int { layer, rms, affine };

struct Rows {  // of floats, read or written
  float* at;
  long stride;
};
struct ConstRows {
  const float* at;
  long stride;
};

// Columns of a packed matrix from those of linear layers
struct Pack {
  ConstRows weight_NK;  // a row for each column
  const float* bias_N;  // may be null: zeros
  float* packed;
  long rows, inner, column;  // columns to write, from this one on
};
void pack(const Pack&);  // once a model, by no instruction set in particular

// out_TN = activation(x_TK W_KN + b_N)
struct Product {
  ConstRows x;
  const float* packed;  // panels of W, each of 1 + inner rows of PANEL columns; the first row is the bias
  Rows out;
  long rows, inner, columns;
  Activation activation;
};

// out_TF = activation(x_TF) * gate_TF, where x_T2F holds both side by side
struct Gate {
  ConstRows x;
  Rows out;
  long rows, columns;
  Activation activation;
};

// sum_TD = x_TD + y_TD, out_TD = norm(sum_TD)
struct Norm {
  ConstRows x, y;  // y.at may be null: nothing is added
  Rows sum, out;   // sum.at may be null: not wanted; it may be x
  const float *gain, *bias;  // bias may be null
  long rows, columns, groups;
  NormKind kind;
  float epsilon;
};

// context_THU = softmax(scale query_THK key_SHK^T + bias) value_SHU, each query over keys of its own
struct Attention {
  ConstRows query, key, value;
  Rows context;
  const int32_t* first_T;    // where the keys of a query begin, if they are neighbours ...
  const int32_t* places_TS;  // ... else (not null) where each of them is: the ancestor table
  long places_stride;
  const int32_t* length_T;  // how many keys a query has; with none its context is zero
  const float* bias_HX;     // null, or for each head the addend by distance: key place - query place + ahead
  long bias_stride, ahead;
  const int32_t* place_T;  // of the query among its keys, for the bias
  long rows, heads, key_size, value_size;
  float scale;
  float* scratch;  // as many floats as the most keys of a query, and LANES more
};

// The k largest of score_NV = hidden_ND W_DV, ties to the smaller id, and log sum exp score_NV
struct Vocabulary {
  ConstRows hidden;
  const float* packed;
  const uint8_t* without_V;  // null, or not zero where a token must not be among the k
  int32_t* ids_Nk;           // -1 where there is none
  float* score_Nk;
  double* log_sum_N;
  long rows, inner, columns, k;
  float* scratch;  // rows * (VOCABULARY_STRIDE + 1) floats
};
constexpr long VOCABULARY_BLOCK = 512;  // columns whose scores are in the cache when they are looked at
constexpr long VOCABULARY_STRIDE = VOCABULARY_BLOCK + 16;  // rows a power of two apart would share places in a cache

// x_THK turned in place by the angles of its rows' places
struct Rotation {
  Rows x;
  const float *cos_SX, *sin_SX;  // of each place, size / 2 entries
  const int32_t* place_T;
  long rows, heads, size;
};

struct Kernels {
  const char* name;
  void (*product)(const Product&);
  void (*gate)(const Gate&);
  void (*norm)(const Norm&);
  void (*attention)(const Attention&);
  void (*vocabulary)(const Vocabulary&);
  void (*rotation)(const Rotation&);
};

}  // namespace regard
