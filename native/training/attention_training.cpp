// Attention of whole sequences, and its gradient: for training. With S = scale Q K^T + bias, W = softmax(S), C = W V:
//
//   dV = W^T dC     dW = dC V^T     dS = W (dW - sum of W dW over keys)     dQ = scale dS K     dK = scale dS^T Q
//
// One head of one sequence at a time, whose rows are in the cache nearby. Weights are kept for the gradient: a query has
// a row with a weight for each key of its sequence, zero for keys it does not see, and zeros up to a multiple of KEPT.
#include "set.h"

#include "words.h"

namespace regard::REGARD_SET {

namespace {

// Rows [first, last) of an axis over which a sum runs.
struct Span {
  long first, last;
};

// How many keys a query of a sequence sees: all of them, or those up to its own place, the last beside the last.
struct Seen {
  long queries, keys;
  bool causal;
  long of(long query) const { return causal ? query + 1 + keys - queries : keys; }
  Span keys_of(long query, long rows) const { return {0, of(query + rows - 1)}; }
  Span queries_of(long key, long) const { return {causal && key > keys - queries ? key - (keys - queries) : 0, queries}; }
};

// Entries of a matrix by row and by step of the sum: the transposed has both exchanged.
struct Factor {
  const float* at;
  long row, step;
};

// out_RN += a_RK b_KN for some rows and words in registers; of the last word, some lanes.
template <int ROWS, int WORDS, bool WHOLE>
void tile(const Factor& a, Span span, const ConstRows& b, const Rows& out, long row, long place, long some) {
  const long lanes = WHOLE ? LANES : some;
  Word total[ROWS][WORDS];
  for (int r = 0; r < ROWS; r++)
    for (int j = 0; j < WORDS; j++) total[r][j] = load(out.at + (row + r) * out.stride + place + j * LANES, lanes);
  const float* entries = b.at + span.first * b.stride + place;
  const float* factors = a.at + row * a.row + span.first * a.step;
  for (long k = span.first; k < span.last; k++) {
    Word entry[WORDS];
    for (int j = 0; j < WORDS; j++) entry[j] = load(entries + j * LANES, lanes);
    for (int r = 0; r < ROWS; r++) {
      const Word factor = all(factors[r * a.row]);
      for (int j = 0; j < WORDS; j++) total[r][j] = factor * entry[j] + total[r][j];
    }
    entries += b.stride;
    factors += a.step;
  }
  for (int r = 0; r < ROWS; r++)
    for (int j = 0; j < WORDS; j++) store(out.at + (row + r) * out.stride + place + j * LANES, total[r][j], lanes);
}

constexpr int TILE = 6, WIDE = 4;  // rows of a tile of one or two words, and of three

template <int ROWS>
void words(const Factor& a, Span sum, const ConstRows& b, const Rows& out, long row, long columns) {
  long place = 0;
  if constexpr (ROWS <= WIDE)
    for (; place + 4 * LANES < columns; place += 3 * LANES) tile<ROWS, 3, true>(a, sum, b, out, row, place, LANES);
  for (; place + 2 * LANES <= columns; place += 2 * LANES) tile<ROWS, 2, true>(a, sum, b, out, row, place, LANES);
  if (place + LANES <= columns) {
    tile<ROWS, 1, true>(a, sum, b, out, row, place, LANES);
    place += LANES;
  }
  if (place < columns) tile<ROWS, 1, false>(a, sum, b, out, row, place, columns - place);
}

// out_RN += a_RK b_KN; span(row, rows) says over which k the sums of some rows run.
template <class F>
void add_product(long rows, long columns, const Factor& a, const ConstRows& b, const Rows& out, const F& span) {
  const long count = (rows + TILE - 1) / TILE;
  for (long t = 0, row = 0; t < count; t++) {  // rows divide as evenly as they can, so that no tile is thin
    const long some = rows / count + (t < rows % count);
    const Span sum = span(row, some);
    switch (some) {
      case 1: words<1>(a, sum, b, out, row, columns); break;
      case 2: words<2>(a, sum, b, out, row, columns); break;
      case 3: words<3>(a, sum, b, out, row, columns); break;
      case 4: words<4>(a, sum, b, out, row, columns); break;
      case 5: words<5>(a, sum, b, out, row, columns); break;
      default: words<TILE>(a, sum, b, out, row, columns);
    }
    row += some;
  }
}

// out_S = x_K y_SK^T for the first `count` rows of y, whole words: what is beyond is of the last row.
void dots(const float* x, const ConstRows& y, long size, long count, float* out) {
  for (long s = 0; s < count; s += LANES) {
    Word products[LANES];
    const float* row[LANES];
    for (int lane = 0; lane < LANES; lane++) {
      products[lane] = all(0.0f);
      row[lane] = y.at + (s + lane < count ? s + lane : count - 1) * y.stride;
    }
    long place = 0;
    for (; place + LANES <= size; place += LANES) {
      const Word factor = load(x + place);
      for (int lane = 0; lane < LANES; lane++) products[lane] = factor * load(row[lane] + place) + products[lane];
    }
    if (place < size) {
      const Word factor = load_some(x + place, size - place);
      for (int lane = 0; lane < LANES; lane++)
        products[lane] = factor * load_some(row[lane] + place, size - place) + products[lane];
    }
    store(out + s, sums(products));
  }
}

// f(place, lanes) for the words of a row of weights in which `count` entries are; the words behind them become zero.
template <class F> REGARD_INLINE void each_weight(float* weight, long count, long width, F f) {
  long place = 0;
  for (; place < count; place += LANES) f(place, count - place);
  for (; place < width; place += LANES) store(weight + place, all(0.0f));
}

// weight_S = softmax(scale weight_S + bias_S) of the first `count` entries; the others, up to `width`, are zero.
void normalise(float* weight, const float* bias, long count, long width, float scale) {
  Word highest = all(-__builtin_inff());
  each_weight(weight, count, width, [&](long place, long lanes) {
    Word score = load(weight + place) * scale;
    if (bias) score += load(bias + place, lanes < LANES ? lanes : LANES);
    score = first(score, lanes, -__builtin_inff());
    store(weight + place, score);
    highest = most(score, highest);
  });
  const float most_of_all = largest(highest);
  Word total = all(0.0f);
  each_weight(weight, count, count, [&](long place, long lanes) {
    const Word below = load(weight + place) - most_of_all;
    const Word found = first(exp_or_zero(below), lanes, 0.0f);
    store(weight + place, found);
    total += found;
  });
  const float factor = 1.0f / sum(total);
  each_weight(weight, count, count, [&](long place, long) { store(weight + place, load(weight + place) * factor); });
}

// One head of one sequence, its rows near each other; `given` is the context's gradient, if there is one.
struct Head {
  ConstRows query, key, value, given;
  float* weight;
  const float* bias;
  Seen seen;
  long width;  // of a row of weights
};

// Where the copies of a sequence go: all rows of a head, then those of the next. As they were given, heads lie a power
// of two apart and share places in the cache, and a row of all heads is what memory is fast with.
struct Copy {
  float* at;
  long rows, size;
  ConstRows of(long head) const { return {at + head * rows * size, size}; }
};
Copy copy(const ConstRows& from, long first, long rows, long heads, long size, float*& free) {
  const Copy to{free, rows, size};
  for (long row = 0; row < rows; row++) {
    const float* at = from.at + (first + row) * from.stride;
    for (long head = 0; head < heads; head++, at += size)
      each_word(size, [&](long place, long lanes) {
        store(to.at + (head * rows + row) * size + place, load(at + place, lanes), lanes);
      });
  }
  free += rows * heads * size;
  return to;
}

template <class R> R part(const R& rows, long row, long column) {
  return {rows.at + row * rows.stride + column, rows.stride};
}

// f(head, index of the sequence, index of the head) for all of them
template <class F> void each_head(const TrainingAttention& a, const ConstRows* given, const F& f) {
  float* weight = a.weights;
  for (long b = 0; b < a.count; b++) {
    const long from = a.query_start_B[b], to = a.key_start_B[b];
    const Seen seen{a.query_length_B[b], a.key_length_B[b], a.causal};
    const long width = kept(seen.keys);
    float* free = a.nearby;
    const Copy query = copy(a.query, from, seen.queries, a.heads, a.key_size, free),
               key = copy(a.key, to, seen.keys, a.heads, a.key_size, free),
               value = copy(a.value, to, seen.keys, a.heads, a.value_size, free),
               gradient = given ? copy(*given, from, seen.queries, a.heads, a.value_size, free) : Copy{};
    for (long head = 0; head < a.heads; head++, weight += seen.queries * width) {
      const float* bias = a.bias_HLM ? a.bias_HLM + head * a.bias_longest * a.bias_longest : nullptr;
      f(Head{query.of(head), key.of(head), value.of(head), gradient.of(head), weight, bias, seen, width}, b, head);
    }
  }
}

}  // namespace

void training_attention(const TrainingAttention& a) {
  each_head(a, nullptr, [&](const Head& h, long b, long head) {
    for (long l = 0; l < h.seen.queries; l++) {
      float* weight = h.weight + l * h.width;
      dots(h.query.at + l * h.query.stride, h.key, a.key_size, h.seen.of(l), weight);
      normalise(weight, h.bias ? h.bias + l * a.bias_longest : nullptr, h.seen.of(l), h.width, a.scale);
    }
    add_product(h.seen.queries, a.value_size, {h.weight, h.width, 1}, h.value,
                part(a.context, a.query_start_B[b], head * a.value_size),
                [&](long row, long rows) { return h.seen.keys_of(row, rows); });
  });
}

void attention_gradient(const TrainingAttention& a, const AttentionGradient& g) {
  each_head(a, &g.context, [&](const Head& h, long b, long head) {
    const long from = a.query_start_B[b], to = a.key_start_B[b];
    for (long l = 0; l < h.seen.queries; l++) {
      float* score = g.scratch + l * h.width;
      const float* weight = h.weight + l * h.width;
      const long count = h.seen.of(l);
      dots(h.given.at + l * h.given.stride, h.value, a.value_size, count, score);
      Word shared = all(0.0f);
      each_weight(score, count, h.width, [&](long place, long) {
        shared = load(weight + place) * load(score + place) + shared;
      });
      const float whole = sum(shared);
      float* bias = g.bias_HLM ? g.bias_HLM + (head * a.bias_longest + l) * a.bias_longest : nullptr;
      each_weight(score, count, count, [&](long place, long lanes) {
        const Word found = first(load(weight + place) * (load(score + place) - whole), lanes, 0.0f);
        if (bias) {
          const long some = lanes < LANES ? lanes : LANES;
          store(bias + place, load(bias + place, some) + found, some);
        }
        store(score + place, found * a.scale);
      });
    }
    const auto keys = [&](long row, long rows) { return h.seen.keys_of(row, rows); };
    const auto queries = [&](long row, long rows) { return h.seen.queries_of(row, rows); };
    add_product(h.seen.queries, a.key_size, {g.scratch, h.width, 1}, h.key, part(g.query, from, head * a.key_size), keys);
    add_product(h.seen.keys, a.key_size, {g.scratch, 1, h.width}, h.query, part(g.key, to, head * a.key_size), queries);
    add_product(h.seen.keys, a.value_size, {h.weight, 1, h.width}, h.given, part(g.value, to, head * a.value_size), queries);
  });
}

}  // namespace regard::REGARD_SET
