// What the kernels of finished models compute, as plain structs of pointers and sizes; sets/table.h has the functions.
// Letters of shapes are those of ARCHITECTURE.md. Strides are in floats, between rows; a row's entries are neighbours.
#pragma once

#include <cstdint>

#include "team.h"

namespace regard {

constexpr int PANEL = 32;  // columns of a packed panel, the same for all instruction sets

enum class Activation : int { none, relu, gelu, gelu_tanh, swish };
enum class NormKind : int { layer, rms, affine };
enum class Precision : int { fp32, bf16, int8 };  // of a matrix; sums, biases and results are fp32

struct Rows {  // of floats, read or written
  float* at;
  long stride;
};
struct ConstRows {
  const float* at;
  long stride;
};

// A packed matrix W_KN with its bias, in panels of PANEL columns: what each is made of, packing.cpp and README.md say.
struct Matrix {
  const char* at;
  long inner;  // K
  Precision precision;
};
constexpr long PANEL_LINE = 128;  // bytes of PANEL floats, and of PANEL columns of four bytes: rows of a panel
constexpr long BYTES_HEAD = 4;    // lines before the bytes: scales, biases, sums of a column's bytes, norms of it
constexpr long groups_of(long inner) { return (inner + 7) / 8 * 2; }  // of four bytes, two of which go together
constexpr long panel_bytes(Precision precision, long inner) {
  return precision == Precision::fp32   ? PANEL_LINE + inner * PANEL_LINE        // biases, then a row for every k
         : precision == Precision::bf16 ? PANEL_LINE + inner * (PANEL_LINE / 2)  // the same, rows of half the size
                                        : (BYTES_HEAD + groups_of(inner)) * PANEL_LINE;  // heads of columns, fours of k
}
constexpr int MOST_X = 127, MOST_W = 127;  // of an entry that is a byte: 0 to 127 in x, -127 to 127 in W
constexpr int MOST_FOUR = 258;  // of the bytes of W, without signs, whose products one 16-bit number adds up; see bytes.h
constexpr float SMALLEST = 1e-30f;         // what is nearer to zero is zero as a byte; rows and columns have one scale
constexpr long MOST_INNER = 1L << 17;      // a sum of so many products of bytes is a 32-bit number

// Columns of a packed matrix from those of linear layers
struct Pack {
  ConstRows weight_NK;  // a row for each column
  const float* bias_N;  // may be null: zeros
  char* packed;
  Precision precision;
  long rows, inner, column;  // columns to write, from this one on
};
void pack(const Pack&);  // once a model, by no instruction set in particular

// out_TN = activation(x_TK W_KN + b_N)
struct Product {
  ConstRows x;
  Matrix matrix;
  Rows out;
  long rows, columns;
  Activation activation;
  char* scratch;  // product_scratch bytes; where the matrix is of bytes, so are the rows of x
};
// Rows, and entries of each, that stay in the second cache while panels pass.
constexpr long chunk_of(long inner) { return inner > 512 ? 108 : 144; }
constexpr long NEAR_INNER = 768;
// Of a row: scale and lowest, then entries, both in whole lines of the cache
constexpr long QUANTISED_HEAD = 64;
constexpr long quantised_bytes(long inner) { return QUANTISED_HEAD + (inner + 63) / 64 * 64; }
// Room for rows of bytes that begin at a line, wherever it begins itself.
constexpr long quantised_scratch(long rows, long inner) { return rows * quantised_bytes(inner) + QUANTISED_HEAD; }
inline char* at_line(char* scratch) { return scratch + -reinterpret_cast<uintptr_t>(scratch) % QUANTISED_HEAD; }
constexpr long product_scratch(long rows, long inner) {
  return quantised_scratch(rows < chunk_of(inner) ? rows : chunk_of(inner), inner);
}

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

// Rows of floats, or of bf16: their upper halves, rounded to the nearest, ties to even. Strides are in entries.
struct KeptRows {
  const void* at;
  long stride;
};

// out_TK = x_TK in bf16
struct Halving {
  ConstRows x;
  uint16_t* out;
  long out_stride, rows, columns;
};

// context_THU = softmax(scale query_THK key_SHK^T + bias) value_SHU, each query over keys of its own
struct Attention {
  ConstRows query;
  KeptRows key, value;
  bool halves;  // keys and values are of bf16
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
  float* scratch;  // attention_scratch floats
  float* weight_THS = nullptr;  // null, or where the softmax goes: of each query, then of each head; 0 behind its keys
  long weight_stride = 0, weight_columns = 0;  // of a query, and of a head
};

constexpr int ATTENDED_TOGETHER = 4;  // queries that have the same keys; their scores are filled up to words
constexpr long attention_scratch(long longest) { return ATTENDED_TOGETHER * (longest + 16); }

// score_NV = hidden_ND W_DV, in blocks of columns that are looked at while they are in the cache
struct Scores {
  ConstRows hidden;
  Matrix matrix;
  const uint8_t* without_V;  // null, or not zero where a token must not be chosen
  long rows, columns;
  long together;    // blocks that are computed side by side, at least one
  float* scratch;   // vocabulary_scratch or argmax_scratch floats
  char* quantised;  // quantised_scratch bytes
};
constexpr long VOCABULARY_BLOCK = 512;
constexpr long VOCABULARY_STRIDE = VOCABULARY_BLOCK + 16;  // rows a power of two apart would share places in a cache
inline long vocabulary_together(long columns) {  // for the threads that there are
  const long blocks = (columns + VOCABULARY_BLOCK - 1) / VOCABULARY_BLOCK, several = 4 * threads();
  return threads() == 1 ? 1 : blocks < several ? blocks : several;
}

// The k largest of each row, ties to the smaller id, and log sum exp score_NV
struct Vocabulary {
  Scores scores;
  int32_t* ids_Nk;  // -1 where there is none
  float* score_Nk;
  double* log_sum_N;
  long k;
};
constexpr long vocabulary_scratch(long rows, long together) {
  return together * rows * (VOCABULARY_STRIDE + 4) + rows + 1;
}

// The largest of hidden_ND W_DV in each row, ties to the smaller id; only few of its entries are computed where
// `scores` are of the same W in bytes, with the same biases.
struct Argmax {
  Scores scores;
  Matrix exact;   // W
  int32_t* id_N;  // -1 where there is none, or a score that was computed is not finite
};
constexpr long argmax_scratch(long rows, long columns, long together) {
  return together * rows * VOCABULARY_STRIDE + ((columns + PANEL - 1) / PANEL) * (rows + 3) + PANEL;
}

// state c = f c_before + (1 - f) x and out_TD = max(0, c) with f = sigmoid(g), where x_T2D holds x and g side by side
struct Recurrence {
  ConstRows x;
  Rows state, out;           // states of all tokens
  const int32_t* slot_T;     // where the new token's goes
  const int32_t* places_TS;  // where those of a row's tokens are, the new one last: the ancestor table
  long places_stride;
  const int32_t* length_T;  // tokens of a row
  long rows, columns;
};

// x_THK turned in place by the angles of its rows' places
struct Rotation {
  Rows x;
  const float *cos_SX, *sin_SX;  // of each place, size / 2 entries
  const int32_t* place_T;
  long rows, heads, size;
};

}  // namespace regard
