// The product of bytes. A row of x becomes bytes when a product starts, on its own, between its lowest and its highest
// entry; a column of W is bytes already. Their sums are exact whole numbers, and only then come scales and bias:
//
//   x_k = low + s q_k,  w_k = t v_k:   sum_k x_k w_k = s t sum_k q_k v_k + low t sum_k v_k
#include "set.h"

#include "bytes.h"
#include "tiles.h"
#ifdef __AMX_INT8__
#include "amx.h"
#endif

namespace regard::REGARD_SET {

namespace {

typedef uint8_t Bytes __attribute__((vector_size(LANES), aligned(1), may_alias));
typedef int32_t LooseInts __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
REGARD_INLINE Ints load_ints(const char* from) { return *reinterpret_cast<const LooseInts*>(from); }
REGARD_INLINE Word floats(Ints x) { return __builtin_convertvector(x, Word); }

struct Head {  // of a quantised row; its bytes follow
  float scale, low;
};

struct Extent {  // of the words of a row
  Word high = all(-__builtin_inff()), low = all(__builtin_inff()), none = all(0.0f);
  REGARD_INLINE void add(Word entry) {
    high = most(entry, high);
    low = least(entry, low);
    none += entry * 0.0f;  // no number where an entry is none, or infinite
  }
};

REGARD_INLINE const Head& head_of(const char* row) { return *reinterpret_cast<const Head*>(row); }

// Of a word of a panel: t, t sum_k v_k and the bias. Each addition has one product, so that all tiles round alike.
struct Columns {
  Word scale, sum, bias;
  explicit Columns(const char* at)
      : scale(load(reinterpret_cast<const float*>(at))),
        sum(load(reinterpret_cast<const float*>(at + 2 * PANEL_LINE)) * scale),
        bias(load(reinterpret_cast<const float*>(at + PANEL_LINE))) {}
  REGARD_INLINE Word entries(Ints total, const Head& row) const {
    return floats(total) * (scale * row.scale) + (sum * row.low + bias);
  }
};

constexpr long AHEAD = 16;  // lines of a panel that are asked for before they are needed, where rows keep the loads busy

struct Fours {
  static constexpr int MOST_ROWS = LANES == 16 ? 12 : 4;
  static constexpr long INNER = 1L << 62;  // sums of bytes become floats once: K is whole
  static constexpr int wide(long rows) { return rows <= 2 && LANES < 16 ? 4 : 2; }

  template <int ROWS, int WORDS> static void tile(const Product& p, long row, long word, Part) {
    const long groups = groups_of(p.matrix.inner);
    const char *panel[WORDS], *x[ROWS];
    Ints total[ROWS][WORDS];
#pragma GCC unroll 16
    for (int j = 0; j < WORDS; j++)
      panel[j] = p.matrix.at + (word + j) / PER_PANEL * panel_bytes(Precision::int8, p.matrix.inner) +
                 (word + j) % PER_PANEL * LANES * 4;
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++) {
      x[i] = p.scratch + (row + i) * quantised_bytes(p.matrix.inner);
#pragma GCC unroll 16
      for (int j = 0; j < WORDS; j++) total[i][j] = Ints{};
    }
    for (long g = 0; g < groups; g += 2) {
      Ints column[WORDS], next[WORDS];
#pragma GCC unroll 16
      for (int j = 0; j < WORDS; j++) {
        const char* at = panel[j] + (BYTES_HEAD + g) * PANEL_LINE;
        column[j] = load_ints(at);
        next[j] = load_ints(at + PANEL_LINE);
        if (ROWS > 1 && j * LANES % 16 == 0) {  // once for each line of the cache
          __builtin_prefetch(at + AHEAD * PANEL_LINE);
          __builtin_prefetch(at + (AHEAD + 1) * PANEL_LINE);
        }
      }
#pragma GCC unroll 16
      for (int i = 0; i < ROWS; i++) {
        const int32_t* fours = reinterpret_cast<const int32_t*>(x[i] + QUANTISED_HEAD) + g;
        const Ints four = Ints{} + fours[0], other = Ints{} + fours[1];
#pragma GCC unroll 16
        for (int j = 0; j < WORDS; j++) total[i][j] = dot(total[i][j], four, column[j], other, next[j]);
      }
    }
#pragma GCC unroll 16
    for (int j = 0; j < WORDS; j++) {
      const Columns columns(panel[j]);
#pragma GCC unroll 16
      for (int i = 0; i < ROWS; i++) write(p, row + i, word + j, columns.entries(total[i][j], head_of(x[i])));
    }
  }
};

#ifdef __AMX_INT8__

constexpr long NEAR_BYTES = 1L << 19;  // of panels that stay in the second cache while rows pass

// Fewer rows, or rows of few entries, are as fast by words, which also wait less for weights beyond the second cache.
bool worth_amx(const Product& p) { return p.rows >= (p.matrix.inner < 256 ? 8 : 5); }

// Entries of out from sums of `rows` rows and one panel.
void finish(const Product& p, long row, long rows, long panel, const int32_t (*sums)[PANEL]) {
  const char* at = p.matrix.at + panel * panel_bytes(Precision::int8, p.matrix.inner);
  const Columns left(at), right(at + LANES * 4);
  const long bytes = quantised_bytes(p.matrix.inner), stride = p.out.stride, columns = p.columns - panel * PANEL;
  const char* x = p.scratch + row * bytes;
  float* out = p.out.at + row * stride + panel * PANEL;
  for (long i = 0; i < rows; i++, x += bytes, out += stride) {
    const Head head = head_of(x);
    const char* sum = reinterpret_cast<const char*>(sums[i]);
    const Word first = left.entries(load_ints(sum), head), second = right.entries(load_ints(sum + LANES * 4), head);
    store(out, first, columns < LANES ? columns : LANES);
    if (columns > LANES) store(out + LANES, second, columns < PANEL ? columns - LANES : LANES);
  }
}

// Blocks of at most two tiles of rows are alike, so that the shapes are set once: the last may begin before the one
// above it ends, and computes some rows again.
void multiply_by_amx(const Product& p) {
  const long inner = p.matrix.inner, lines = groups_of(inner), bytes = panel_bytes(Precision::int8, inner);
  const long blocks = (p.rows + 2 * AMX_ROWS - 1) / (2 * AMX_ROWS), rows = (p.rows + blocks - 1) / blocks;
  const long upper = rows > AMX_ROWS ? (rows + 1) / 2 : rows, lower = rows - upper, across = lower > 0 ? 1 : 2;
  const long panels = (p.columns + PANEL - 1) / PANEL, near = (NEAR_BYTES / bytes + across) / across * across;
  const long steps = lines / AMX_LINES, left = lines % AMX_LINES;
  alignas(64) int32_t sums[2 * AMX_ROWS][PANEL];
  alignas(64) char rest[2][AMX_LINES][PANEL_LINE] = {};
  const AmxShapes shapes(upper, lower);
  AmxBlock block{nullptr, nullptr, quantised_bytes(inner), steps, {}, left > 0 ? rest : nullptr};
  const auto one_block = [&](long row, long panel) {
    const long place = panel * PANEL, end = place + across * PANEL, count = panel + 1 < panels ? across : 1;
    block.x = p.scratch + row * block.x_stride + QUANTISED_HEAD;
    block.below = lower > 0 ? block.x + upper * block.x_stride : nullptr;
    for (long n = 0; n < 2; n++) {  // where there is but one panel it stands for the other, too
      block.panel[n] = p.matrix.at + (panel + (n < count ? n : 0)) * bytes + BYTES_HEAD * PANEL_LINE;
      if (left > 0) __builtin_memcpy(rest[n], block.panel[n] + steps * AMX_LINES * PANEL_LINE, left * PANEL_LINE);
    }
    amx_sums(block, sums, lower > 0 ? upper : AMX_ROWS);
    for (long n = 0; n < count; n++) finish(p, row, rows, panel + n, sums + n * AMX_ROWS);
    apply(p.activation, {p.out.at + row * p.out.stride + place, p.out.stride}, rows,
          (end < p.columns ? end : p.columns) - place);
  };
  amx_begin(shapes);
  for (long first = 0; first < panels; first += near)
    for (long n = 0; n < blocks; n++)
      for (long panel = first; panel < panels && panel < first + near; panel += across)
        one_block(n < blocks - 1 ? n * rows : p.rows - rows, panel);
  _tile_release();
}

#endif

}  // namespace

void multiply_bytes(const Product& p) {
#ifdef __AMX_INT8__
  if (worth_amx(p)) return multiply_by_amx(p);
#endif
  all_tiles<Fours>(p);
}

void quantise(ConstRows x, long rows, long inner, char* to) {
  for (long row = 0; row < rows; row++, to += quantised_bytes(inner)) {
    const float* from = x.at + row * x.stride;
    Extent odd, even;  // two, since each waits for itself
    long k = 0;
    for (; k + 2 * LANES <= inner; k += 2 * LANES) {
      even.add(load(from + k));
      odd.add(load(from + k + LANES));
    }
    each_word(inner - k, [&](long place, long lanes) { even.add(load(from + k + place, lanes, from[k])); });
    const Word none = even.none + odd.none;
    const float lowest = -largest(-least(even.low, odd.low)), range = largest(most(even.high, odd.high)) - lowest;
    const float factor = range > SMALLEST ? MOST_X / range : 0.0f;
    Head& head = *reinterpret_cast<Head*>(to);
    head.scale = (factor > 0.0f ? range / MOST_X : 0.0f) + sum(none);
    head.low = inner > 0 ? lowest : 0.0f;
    uint8_t* bytes = reinterpret_cast<uint8_t*>(to + QUANTISED_HEAD);
    each_word(inner, [&](long place, long lanes) {
      const Word scaled = least((load(from + place, lanes) - lowest) * factor + 0.5f, all(MOST_X));
      const Bytes entry = __builtin_convertvector(__builtin_convertvector(scaled, Ints), Bytes);
      if (lanes == LANES) *reinterpret_cast<Bytes*>(bytes + place) = entry;
      else
        for (long lane = 0; lane < lanes; lane++) bytes[place + lane] = entry[lane];
    });
    for (k = inner; k < quantised_bytes(inner) - QUANTISED_HEAD; k++) bytes[k] = 0;
  }
}

}  // namespace regard::REGARD_SET
