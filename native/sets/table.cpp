// The table of one instruction set.
#include "set.h"

#define REGARD_TEXT(name) #name
#define REGARD_NAME(name) REGARD_TEXT(name)

namespace regard {

extern const Kernels REGARD_TABLE;
#ifdef REGARD_BASE
extern const Kernels REGARD_BASE;
const Kernels REGARD_TABLE = [] {
  Kernels table = REGARD_BASE;
  table.name = REGARD_NAME(REGARD_SET);
  table.multiply_bytes = REGARD_SET::multiply_bytes;
  return table;
}();
#else
const Kernels REGARD_TABLE = {REGARD_NAME(REGARD_SET),
                              REGARD_SET::multiply_bytes,
                              REGARD_SET::product,
                              REGARD_SET::gate,
                              REGARD_SET::norm,
                              REGARD_SET::attention,
                              REGARD_SET::vocabulary,
                              REGARD_SET::argmax,
                              REGARD_SET::softmax,
                              REGARD_SET::dropout,
                              REGARD_SET::rotation,
                              REGARD_SET::halve,
                              REGARD_SET::training_attention,
                              REGARD_SET::attention_gradient};
#endif

}  // namespace regard
