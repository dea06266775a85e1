// One call of a hot kernel with made-up numbers, for whoever counts its instructions: hot SET KERNEL (no kernel: the
// names of all). The shapes are those of the base model, d_model 512, of one sentence and of a batch.
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "dispatch.h"

using namespace regard;

namespace {

constexpr long D = 512, HEADS = 8, KEYS = 32, PIECES = 8192, BEST = 4;
constexpr int32_t LENGTH = KEYS;

constexpr Precision FP32 = Precision::fp32, BF16 = Precision::bf16, INT8 = Precision::int8;

std::vector<float> numbers(long size) {
  std::vector<float> found(static_cast<size_t>(size));
  for (size_t i = 0; i < found.size(); i++) found[i] = static_cast<float>(i % 17) / 16 - 0.5f;
  return found;
}

// A packed matrix of zeros, for which a kernel does all the same.
struct Zeros {
  std::vector<char> packed;
  Matrix matrix;
  Zeros(Precision precision, long columns)
      : packed(static_cast<size_t>((columns + PANEL - 1) / PANEL * panel_bytes(precision, D))),
        matrix{packed.data(), D, precision} {}
};

void run_product(Precision precision, long rows) {
  const Zeros w(precision, 4 * D);
  const auto x = numbers(rows * D);
  auto out = numbers(rows * 4 * D);
  std::vector<char> scratch(static_cast<size_t>(product_scratch(rows, D)));
  in_use().product({{x.data(), D}, w.matrix, {out.data(), 4 * D}, rows, 4 * D, Activation::relu, scratch.data()});
}

void run_norm(long rows) {
  const auto x = numbers(rows * D), gain = numbers(D);
  auto sum = x, out = x;
  in_use().norm({{x.data(), D}, {x.data(), D}, {sum.data(), D}, {out.data(), D}, gain.data(), gain.data(), rows, D, 1,
                 NormKind::layer, 1e-5f});
}

void run_attention(bool scattered) {
  const auto query = numbers(D), keys = numbers(KEYS * D);
  auto context = query, scratch = numbers(KEYS + 64);
  std::vector<int32_t> places;
  for (int32_t s = 0; s < LENGTH; s++) places.push_back(LENGTH - 1 - s);
  const int32_t first = 0;
  in_use().attention({{query.data(), D}, {keys.data(), D}, {keys.data(), D}, false, {context.data(), D}, &first,
                      scattered ? places.data() : nullptr, KEYS, &LENGTH, nullptr, 0, 0, nullptr, 1, HEADS, D / HEADS,
                      D / HEADS, 0.125f, scratch.data()});
}

void run_vocabulary(Precision precision, long rows) {
  const Zeros w(precision, PIECES);
  const auto hidden = numbers(rows * D);
  auto score = numbers(rows * BEST), scratch = numbers(vocabulary_scratch(rows, 1));
  std::vector<int32_t> ids(score.size());
  std::vector<double> log_sum(static_cast<size_t>(rows));
  std::vector<char> quantised(static_cast<size_t>(quantised_scratch(rows, D)));
  in_use().vocabulary({{{hidden.data(), D}, w.matrix, nullptr, rows, PIECES, 1, scratch.data(), quantised.data()},
                       ids.data(), score.data(), log_sum.data(), BEST});
}

// Of random weights, one row of which is like the hidden vectors: a model that is sure of its next token.
void run_argmax(long rows) {
  Zeros exact(FP32, PIECES), screen(INT8, PIECES);
  std::mt19937 random(1);
  std::vector<float> weights(static_cast<size_t>(PIECES * D)), hidden;
  for (float& w : weights) w = static_cast<float>(random() >> 8) / (1 << 24) - 0.5f;
  for (long row = 0; row < rows; row++) hidden.insert(hidden.end(), weights.begin() + D, weights.begin() + 2 * D);
  pack({{weights.data(), D}, nullptr, exact.packed.data(), FP32, PIECES, D, 0});
  pack({{weights.data(), D}, nullptr, screen.packed.data(), INT8, PIECES, D, 0});
  auto scratch = numbers(argmax_scratch(rows, PIECES, 1));
  std::vector<int32_t> ids(static_cast<size_t>(rows));
  std::vector<char> quantised(static_cast<size_t>(quantised_scratch(rows, D)));
  in_use().argmax({{{hidden.data(), D}, screen.matrix, nullptr, rows, PIECES, 1, scratch.data(), quantised.data()},
                   exact.matrix, ids.data()});
}

struct Call {
  const char *name, *kernel;
  void (*run)();
};
const Call CALLS[] = {
    {"product, 1 row", "product", [] { run_product(FP32, 1); }},
    {"product, 4 rows", "product", [] { run_product(FP32, 4); }},
    {"product, 72 rows", "product", [] { run_product(FP32, 72); }},
    {"product, bf16, 1 row", "product", [] { run_product(BF16, 1); }},
    {"product, int8, 1 row", "product", [] { run_product(INT8, 1); }},
    {"product, int8, 72 rows", "product", [] { run_product(INT8, 72); }},
    {"norm, 1 row", "norm", [] { run_norm(1); }},
    {"attention, 32 neighbours", "attention", [] { run_attention(false); }},
    {"attention, 32 ancestors", "attention", [] { run_attention(true); }},
    {"vocabulary, 1 row", "vocabulary", [] { run_vocabulary(FP32, 1); }},
    {"vocabulary, 4 rows", "vocabulary", [] { run_vocabulary(FP32, 4); }},
    {"vocabulary, int8, 4 rows", "vocabulary", [] { run_vocabulary(INT8, 4); }},
    {"argmax, 1 row", "argmax", [] { run_argmax(1); }},
};

}  // namespace

int main(int count, char** words) {
  if (count == 1) {
    for (const Kernels* kernels : supported()) std::printf("set\t%s\n", kernels->name);
    for (const Call& call : CALLS) std::printf("call\t%s\t%s\n", call.name, call.kernel);
    return 0;
  }
  if (count == 3 && use(words[1]))
    for (const Call& call : CALLS)
      if (!std::strcmp(call.name, words[2])) return call.run(), 0;
  std::fprintf(stderr, "usage: hot SET CALL, as hot alone lists them\n");
  return 2;
}
