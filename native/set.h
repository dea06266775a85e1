// The kernels of one instruction set, by name; table.cpp puts them into its table.
#pragma once

#include "kernels.h"

namespace regard::REGARD_SET {

void product(const Product&);
void gate(const Gate&);
void norm(const Norm&);
void attention(const Attention&);
void vocabulary(const Vocabulary&);
void rotation(const Rotation&);

// Rows of x as bytes, quantised_bytes(inner) each: a scale, what a zero byte stands for, and the entries.
void quantise(ConstRows x, long rows, long inner, char* to);
void multiply_bytes(const Product&);       // whose scratch holds the rows of x, CHUNK at most
void product_of_quantised(const Product&);  // the same of any number of rows; where the matrix is of floats, product

}  // namespace regard::REGARD_SET
