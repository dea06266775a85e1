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
namespace set = REGARD_SET;
constexpr Kernels REGARD_TABLE = {
    REGARD_NAME(REGARD_SET), set::multiply_bytes, set::product,  set::gate,  set::norm,
    set::attention,          set::vocabulary,     set::argmax,   set::softmax, set::dropout,
    set::rotation,           set::recurrence,     set::halve,    set::training_attention, set::attention_gradient};
#endif

}  // namespace regard
