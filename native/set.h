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

}  // namespace regard::REGARD_SET
