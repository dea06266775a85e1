// context_THU = softmax(scale query_THK key_SHK^T + bias) value_SHU, without padding.
//
// Each query has keys of its own: neighbours from first_T on (a sentence, a beam's shared memory), or scattered ones
// that the ancestor table places_TS names (a hypothesis in a beam, whose past is never copied). A causal query simply
// has fewer keys. One head of one query at a time: LANES scores, softmax, then the sum of values in registers.
#include "set.h"

#include "words.h"

namespace regard::REGARD_SET {

namespace {

constexpr int MOST_WORDS = 8;  // of a value's entries that are summed in registers at once

template <class T> struct Neighbours {  // T: float, or the upper half of one
  const T *key, *value;
  long key_stride, value_stride;
  const T* key_of(long s) const { return key + s * key_stride; }
  const T* value_of(long s) const { return value + s * value_stride; }
};
template <class T> struct Scattered {
  const T *key, *value;
  long key_stride, value_stride;
  const int32_t* place_S;
  const T* key_of(long s) const { return key + place_S[s] * key_stride; }
  const T* value_of(long s) const { return value + place_S[s] * value_stride; }
};

// score_S = scale query_K key_SK^T + bias_S; the last word is filled up with minus infinity. Its largest entry.
template <class Keys>
float scores(const Attention& a, const float* query, const Keys& keys, long length, const float* bias, float* score) {
  Word highest = all(-__builtin_inff());
  for (long s = 0; s < length; s += LANES) {
    Word products[LANES];
    for (int lane = 0; lane < LANES; lane++) {
      products[lane] = all(0.0f);
      if (s + lane < length) {
        const auto* key = keys.key_of(s + lane);
        each_word(a.key_size, [&](long place, long lanes) {
          products[lane] = load(query + place, lanes) * load(key + place, lanes) + products[lane];
        });
      }
    }
    Word found = sums(products) * a.scale;
    const long lanes = length - s < LANES ? length - s : LANES;
    if (bias) found += load(bias + s, lanes);
    if (lanes < LANES) found = load_some(reinterpret_cast<const float*>(&found), lanes, -__builtin_inff());
    store(score + s, found);
    highest = most(found, highest);
  }
  return largest(highest);
}

// score_S becomes e^(score - highest); their sum.
float exponentials(float* score, long length, float highest) {
  Word total = all(0.0f);
  for (long s = 0; s < length; s += LANES) {
    const Word weight = exp(load(score + s) - highest);
    store(score + s, weight);
    total += weight;
  }
  return sum(total);
}

// context_U from word `begin` on: weight_S value_SU / total.
template <int WORDS, class Keys>
void weighted(const Keys& keys, const float* weight, long length, float factor, long begin, float* context) {
  Word part[WORDS];
  for (int j = 0; j < WORDS; j++) part[j] = all(0.0f);
  for (long s = 0; s < length; s++) {
    const auto* value = keys.value_of(s) + begin;
#pragma GCC unroll 8
    for (int j = 0; j < WORDS; j++) part[j] = weight[s] * load(value + j * LANES) + part[j];
  }
  for (int j = 0; j < WORDS; j++) store(context + begin + j * LANES, part[j] * factor);
}

template <class Keys>
void values(const Attention& a, const Keys& keys, const float* weight, long length, float factor, float* context) {
  long place = 0;
  for (; place + MOST_WORDS * LANES <= a.value_size; place += MOST_WORDS * LANES)
    weighted<MOST_WORDS>(keys, weight, length, factor, place, context);
  for (; place + 4 * LANES <= a.value_size; place += 4 * LANES)
    weighted<4>(keys, weight, length, factor, place, context);
  for (; place + 2 * LANES <= a.value_size; place += 2 * LANES)
    weighted<2>(keys, weight, length, factor, place, context);
  for (; place + LANES <= a.value_size; place += LANES) weighted<1>(keys, weight, length, factor, place, context);
  const long rest = a.value_size - place;
  if (!rest) return;
  Word part = all(0.0f);
  for (long s = 0; s < length; s++) part = weight[s] * load_some(keys.value_of(s) + place, rest) + part;
  store_some(context + place, part * factor, rest);
}

void write_weights(const Attention& a, long row, long head, float factor) {
  float* weight = a.weight_THS + row * a.weight_stride + head * a.weight_columns;
  const long length = a.length_T[row];
  for (long s = 0; s < a.weight_columns; s++) weight[s] = s < length ? a.scratch[s] * factor : 0.0f;
}

template <class Keys> void one_head(const Attention& a, const float* query, const Keys& keys, long row, long head) {
  float* context = a.context.at + row * a.context.stride + head * a.value_size;
  const long length = a.length_T[row];
  const float* bias = a.bias_HX ? a.bias_HX + head * a.bias_stride + a.ahead - a.place_T[row] : nullptr;
  const float highest = scores(a, query, keys, length, bias, a.scratch);
  const float total = exponentials(a.scratch, length, highest);
  if (a.weight_THS) write_weights(a, row, head, 1.0f / total);
  values(a, keys, a.scratch, length, 1.0f / total, context);
}

template <class T> void all_rows(const Attention& a) {
  for (long row = 0; row < a.rows; row++) {
    const float* query = a.query.at + row * a.query.stride;
    if (a.length_T[row] <= 0) {
      for (long entry = 0; entry < a.heads * a.value_size; entry++) a.context.at[row * a.context.stride + entry] = 0;
      for (long head = 0; a.weight_THS && head < a.heads; head++) write_weights(a, row, head, 0.0f);
      continue;
    }
    for (long head = 0; head < a.heads; head++) {
      const T* key = static_cast<const T*>(a.key.at) + head * a.key_size;
      const T* value = static_cast<const T*>(a.value.at) + head * a.value_size;
      if (a.places_TS)
        one_head(a, query + head * a.key_size,
                 Scattered<T>{key, value, a.key.stride, a.value.stride, a.places_TS + row * a.places_stride}, row, head);
      else
        one_head(a, query + head * a.key_size,
                 Neighbours<T>{key + a.first_T[row] * a.key.stride, value + a.first_T[row] * a.value.stride,
                               a.key.stride, a.value.stride}, row, head);
    }
  }
}

}  // namespace

void attention(const Attention& a) { return a.halves ? all_rows<uint16_t>(a) : all_rows<float>(a); }

}  // namespace regard::REGARD_SET
