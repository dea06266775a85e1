// The table of one instruction set.
#include "set.h"

#define REGARD_TEXT(name) #name
#define REGARD_NAME(name) REGARD_TEXT(name)

namespace regard {

// Constants need no code when the program starts, which would be compiled for a processor that may be another one.
#ifdef REGARD_BYTES
extern const BytesSet REGARD_BYTES;
constexpr BytesSet REGARD_BYTES = {REGARD_NAME(REGARD_SET), REGARD_SET::multiply_bytes};
#else
extern const Kernels REGARD_TABLE;
constexpr Kernels REGARD_TABLE = {REGARD_NAME(REGARD_SET),
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
