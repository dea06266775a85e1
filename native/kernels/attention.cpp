// context_THU = softmax(scale query_THK key_SHK^T + bias) value_SHU, without padding.
//
// Each query has keys of its own: neighbours from first_T on (a sentence, a beam's shared memory), or scattered ones
// that the ancestor table places_TS names (a hypothesis in a beam, whose past is never copied). A causal query simply
// has fewer keys. One head at a time of one query, or of a few that have the same keys, which are read once for all:
// LANES scores, softmax, then the sum of values in registers.
#include "set.h"

#include "words.h"

namespace regard::REGARD_SET {

namespace {

template <class T> struct HeadKeys {  // T: float, or the upper half of one
  const T *key, *value;
  long key_stride, value_stride, length;
  HeadKeys(const Attention& a, long row, long head)
      : key(static_cast<const T*>(a.key.at) + head * a.key_size),
        value(static_cast<const T*>(a.value.at) + head * a.value_size),
        key_stride(a.key.stride), value_stride(a.value.stride), length(a.length_T[row]) {}
};
template <class T> struct Neighbours : HeadKeys<T> {
  long first;
  Neighbours(const Attention& a, long row, long head) : HeadKeys<T>(a, row, head), first(a.first_T[row]) {}
  const T* key_of(long s) const { return this->key + (first + s) * this->key_stride; }
  const T* value_of(long s) const { return this->value + (first + s) * this->value_stride; }
};
template <class T> struct Scattered : HeadKeys<T> {
  const int32_t* place_S;
  Scattered(const Attention& a, long row, long head)
      : HeadKeys<T>(a, row, head), place_S(a.places_TS + row * a.places_stride) {}
  const T* key_of(long s) const { return this->key + place_S[s] * this->key_stride; }
  const T* value_of(long s) const { return this->value + place_S[s] * this->value_stride; }
};

// Entries that are read next come from memory while others are computed.
template <class T> REGARD_INLINE void ask_for(const T* at, long entries) {
  const char* const line = reinterpret_cast<const char*>(at);
  for (long byte = 0; byte < entries * static_cast<long>(sizeof(T)); byte += 64) __builtin_prefetch(line + byte);
}

struct Queries {  // of one head, which have the same keys
  const float* query;
  float *context, *score;
  long room, length;  // of a query's scores, and how many there are
};

// score_RS = scale query_RK key_SK^T + bias_S; only one query has a bias. Each key is read once for all queries.
template <int QUERIES, class Keys>
void scores(const Attention& a, const Queries& rows, const Keys& keys, const Keys& next, const float* bias) {
  constexpr int TOGETHER = LANES / QUERIES;  // keys
  for (long s = 0; s < rows.length; s += TOGETHER) {
    Word products[LANES];
#pragma GCC unroll 16
    for (int lane = 0; lane < LANES; lane++) products[lane] = all(0.0f);
#pragma GCC unroll 16
    for (int n = 0; n < TOGETHER; n++) {
      if (s + n >= rows.length) break;
      const auto* key = keys.key_of(s + n);
      if (s + n < next.length) {
        ask_for(next.key_of(s + n), a.key_size);
        ask_for(next.value_of(s + n), a.value_size);
      }
      each_word(a.key_size, [&](long place, long lanes) {
        const Word entries = load(key + place, lanes);
#pragma GCC unroll 4
        for (int r = 0; r < QUERIES; r++)
          products[r * TOGETHER + n] =
              load(rows.query + r * a.query.stride + place, lanes) * entries + products[r * TOGETHER + n];
      });
    }
    Word found = sums(products) * a.scale;
    if (bias) found += load(bias + s, rows.length - s < LANES ? rows.length - s : LANES);
    for (int r = 0; r < QUERIES; r++)
      __builtin_memcpy(rows.score + r * rows.room + s, reinterpret_cast<float*>(&found) + r * TOGETHER, 4 * TOGETHER);
  }
}

// The largest score; the last word is filled up with minus infinity.
float highest_score(float* score, long length) {
  Word highest = all(-__builtin_inff());
  for (long s = 0; s < length; s += LANES) {
    const Word word = first(load(score + s), length - s, -__builtin_inff());
    store(score + s, word);
    highest = most(word, highest);
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

// context_RU from word `begin` on: weight_RS value_SU / total_R.
template <int QUERIES, int WORDS, class Keys>
void weighted(const Attention& a, const Queries& rows, const Keys& keys, const float* factor, long begin) {
  Word part[QUERIES][WORDS];
#pragma GCC unroll 4
  for (int r = 0; r < QUERIES; r++)
#pragma GCC unroll 8
    for (int j = 0; j < WORDS; j++) part[r][j] = all(0.0f);
  for (long s = 0; s < rows.length; s++) {
    const auto* value = keys.value_of(s) + begin;
#pragma GCC unroll 8
    for (int j = 0; j < WORDS; j++) {
      const Word entries = load(value + j * LANES);
#pragma GCC unroll 4
      for (int r = 0; r < QUERIES; r++) part[r][j] = rows.score[r * rows.room + s] * entries + part[r][j];
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < QUERIES; r++)
#pragma GCC unroll 8
    for (int j = 0; j < WORDS; j++)
      store(rows.context + r * a.context.stride + begin + j * LANES, part[r][j] * factor[r]);
}

template <int QUERIES, class Keys>
void values(const Attention& a, const Queries& rows, const Keys& keys, const float* factor) {
  constexpr int MOST = QUERIES == 1 ? 8 : LANES == 16 ? 4 : 2;  // words of a value in registers at once
  long place = 0;
  for (; place + MOST * LANES <= a.value_size; place += MOST * LANES)
    weighted<QUERIES, MOST>(a, rows, keys, factor, place);
  for (; place + 4 * LANES <= a.value_size; place += 4 * LANES) weighted<QUERIES, 4>(a, rows, keys, factor, place);
  for (; place + 2 * LANES <= a.value_size; place += 2 * LANES) weighted<QUERIES, 2>(a, rows, keys, factor, place);
  for (; place + LANES <= a.value_size; place += LANES) weighted<QUERIES, 1>(a, rows, keys, factor, place);
  const long rest = a.value_size - place;
  for (int r = 0; rest && r < QUERIES; r++) {
    Word part = all(0.0f);
    for (long s = 0; s < rows.length; s++)
      part = rows.score[r * rows.room + s] * load_some(keys.value_of(s) + place, rest) + part;
    store_some(rows.context + r * a.context.stride + place, part * factor[r], rest);
  }
}

void write_weights(const Attention& a, long row, long head, const float* score, float factor) {
  float* weight = a.weight_THS + row * a.weight_stride + head * a.weight_columns;
  const long length = a.length_T[row];
  for (long s = 0; s < a.weight_columns; s++) weight[s] = s < length ? score[s] * factor : 0.0f;
}

template <int QUERIES, class Keys>
void one_head(const Attention& a, const Keys& keys, const Keys& next, long row, long head) {
  const long length = a.length_T[row], room = (length + LANES - 1) / LANES * LANES;
  const Queries rows{a.query.at + row * a.query.stride + head * a.key_size,
                     a.context.at + row * a.context.stride + head * a.value_size, a.scratch, room, length};
  const float* bias = a.bias_HX ? a.bias_HX + head * a.bias_stride + a.ahead - a.place_T[row] : nullptr;
  scores<QUERIES>(a, rows, keys, next, bias);
  float factor[QUERIES];
  for (int r = 0; r < QUERIES; r++) {
    float* score = rows.score + r * room;
    factor[r] = 1.0f / exponentials(score, length, highest_score(score, length));
    if (a.weight_THS) write_weights(a, row + r, head, score, factor[r]);
  }
  values<QUERIES>(a, rows, keys, factor);
}

// Queries from this one on that have the same keys, as those of a beam have its memory.
bool alike(const Attention& a, long row) {
  if (a.places_TS || a.bias_HX || row + ATTENDED_TOGETHER > a.rows) return false;
  for (long other = row + 1; other < row + ATTENDED_TOGETHER; other++)
    if (a.first_T[other] != a.first_T[row] || a.length_T[other] != a.length_T[row]) return false;
  return true;
}

template <class Keys> void all_rows(const Attention& a) {
  for (long row = 0; row < a.rows;) {
    if (a.length_T[row] <= 0) {
      for (long entry = 0; entry < a.heads * a.value_size; entry++) a.context.at[row * a.context.stride + entry] = 0;
      for (long head = 0; a.weight_THS && head < a.heads; head++) write_weights(a, row, head, a.scratch, 0.0f);
      row++;
      continue;
    }
    const bool together = alike(a, row);
    const long behind = row + (together ? ATTENDED_TOGETHER : 1);
    for (long head = 0; head < a.heads; head++) {
      const Keys keys(a, row, head);
      const Keys next = head + 1 < a.heads ? Keys(a, row, head + 1) : Keys(a, behind < a.rows ? behind : row, 0);
      together ? one_head<ATTENDED_TOGETHER>(a, keys, next, row, head) : one_head<1>(a, keys, next, row, head);
    }
    row = behind;
  }
}

template <class T> void all_rows_of(const Attention& a) {
  return a.places_TS ? all_rows<Scattered<T>>(a) : all_rows<Neighbours<T>>(a);
}

}  // namespace

void attention(const Attention& a) { return a.halves ? all_rows_of<uint16_t>(a) : all_rows_of<float>(a); }

}  // namespace regard::REGARD_SET
