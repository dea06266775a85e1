// Every kernel beside plain loops in double, without Python: for processors that are only emulated (scripts/arm).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "dispatch.h"

using namespace regard;

namespace {

using Floats = std::vector<float>;
int failures = 0;

Floats drawn(long size, float scale = 1.0f) {
  static std::mt19937 random(1);
  Floats found(static_cast<size_t>(size));
  for (float& x : found) x = scale * (static_cast<float>(random() >> 8) / (1 << 23) - 1.0f);
  return found;
}

void expect(const char* what, long size, const Floats& found, const std::vector<double>& wanted, double tolerance) {
  double worst = found.size() < wanted.size() ? INFINITY : 0.0;
  for (size_t i = 0; i < std::min(found.size(), wanted.size()); i++) {
    const double apart = std::fabs(static_cast<double>(found[i]) - wanted[i]);
    worst = std::isnan(apart) ? INFINITY : std::max(worst, apart);
  }
  if (worst <= tolerance) return;
  std::printf("%s: %s of size %ld is %g off, more than %g\n", in_use().name, what, size, worst, tolerance);
  failures++;
}

double active(Activation activation, double x) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return std::max(x, 0.0);
    case Activation::gelu: return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::gelu_tanh: return x * 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::swish: return x / (1 + std::exp(-x));
  }
  return NAN;
}

// Whole numbers that every precision holds as they are: each of `size` entries begins with the ends, lowest and most.
Floats whole(long rows, long size, int lowest, int most) {
  Floats found = drawn(rows * size);
  for (size_t i = 0; i < found.size(); i++) {
    const size_t place = i % static_cast<size_t>(size);
    const float between = std::floor((found[i] + 1.0f) / 2 * static_cast<float>(most - lowest));
    found[i] = static_cast<float>(place == 0 ? most : place == 1 ? lowest : lowest + static_cast<int>(between));
  }
  return found;
}

// The same for weights: the four that one 16-bit number adds up come to 254 at most beside the ends, and to 256 with them.
Floats whole_weights(long rows, long inner) {
  Floats found = whole(rows, inner, -63, 63);
  for (long n = 0; n < rows; n++)
    for (long k = 0; k < inner && k < 6; k++)
      if (k % 4 < 2) found[static_cast<size_t>(n * inner + k)] = static_cast<float>((k < 4 ? MOST_W : 1) * (k % 2 ? -1 : 1));
  return found;
}

// A packed matrix, and the same as rows.
struct Weights {
  Floats weight_NK, bias_N;
  std::vector<char> packed;
  long inner;
  Precision precision;
  Weights(long rows, long inner, Precision precision = Precision::fp32)
      : weight_NK(precision == Precision::fp32 ? drawn(rows * inner) : whole_weights(rows, inner)),
        bias_N(drawn(rows)),
        packed(static_cast<size_t>((rows + PANEL - 1) / PANEL * panel_bytes(precision, inner))),
        inner(inner),
        precision(precision) {
    pack({{weight_NK.data(), inner}, bias_N.data(), packed.data(), precision, rows, inner, 0});
  }
  Matrix matrix() const { return {packed.data(), inner, precision}; }
  double at(const float* x, long n) const {
    double total = static_cast<double>(bias_N[static_cast<size_t>(n)]);
    for (long k = 0; k < inner; k++)
      total += static_cast<double>(x[k]) * static_cast<double>(weight_NK[static_cast<size_t>(n * inner + k)]);
    return total;
  }
};

void check_product(long rows, long inner, long columns, Activation activation, Precision precision) {
  const Weights w(columns, inner, precision);
  const bool fp32 = precision == Precision::fp32;
  const Floats x = fp32 ? drawn(rows * inner) : whole(rows, inner, 0, MOST_X);
  Floats out(static_cast<size_t>(rows * columns));
  std::vector<char> scratch(static_cast<size_t>(product_scratch(rows, inner)));
  std::vector<double> wanted;
  for (long t = 0; t < rows; t++)
    for (long n = 0; n < columns; n++) wanted.push_back(active(activation, w.at(&x[static_cast<size_t>(t * inner)], n)));
  in_use().product({{x.data(), inner}, w.matrix(), {out.data(), columns}, rows, columns, activation, scratch.data()});
  const double most = fp32 ? 2e-5 + 1e-7 * static_cast<double>(inner) : 0.1;
  expect(fp32 ? "product" : "product of fewer bits", columns, out, wanted, most);
}

void check_gate(long rows, long columns) {
  const Floats x = drawn(2 * rows * columns, 3.0f);
  Floats out(static_cast<size_t>(rows * columns));
  std::vector<double> wanted;
  for (long t = 0; t < rows; t++)
    for (long n = 0; n < columns; n++) {
      const float* row = &x[static_cast<size_t>(2 * t * columns)];
      wanted.push_back(active(Activation::swish, static_cast<double>(row[n])) * static_cast<double>(row[columns + n]));
    }
  in_use().gate({{x.data(), 2 * columns}, {out.data(), columns}, rows, columns, Activation::swish});
  expect("gate", columns, out, wanted, 1e-5);
}

void check_norm(long columns, NormKind kind) {
  const Floats x = drawn(columns), y = drawn(columns), gain = drawn(columns), bias = drawn(columns);
  Floats out(static_cast<size_t>(columns));
  double mean = 0, squares = 0;
  const auto added = [&](long d) {
    return static_cast<double>(x[static_cast<size_t>(d)]) + static_cast<double>(y[static_cast<size_t>(d)]);
  };
  for (long d = 0; d < columns && kind == NormKind::layer; d++) mean += added(d) / static_cast<double>(columns);
  for (long d = 0; d < columns; d++) squares += (added(d) - mean) * (added(d) - mean) / static_cast<double>(columns);
  const double factor = kind == NormKind::affine ? 1.0 : 1.0 / std::sqrt(squares + 1e-5);
  std::vector<double> wanted;
  for (size_t d = 0; d < out.size(); d++)
    wanted.push_back((added(static_cast<long>(d)) - mean) * factor * static_cast<double>(gain[d]) +
                     static_cast<double>(bias[d]));
  in_use().norm({{x.data(), columns}, {y.data(), columns}, {nullptr, 0}, {out.data(), columns}, gain.data(),
                 bias.data(), 1, columns, 1, kind, 1e-5f});
  expect("norm", columns, out, wanted, 2e-5);
}

void check_attention(long heads, long size, int32_t length, bool of_bf16) {
  const long width = heads * size;
  const long rows = ATTENDED_TOGETHER + 1;  // of which so many have their keys read once
  const Floats query = drawn(rows * width);
  Floats key = drawn(length * width), value = drawn(length * width);
  std::vector<uint16_t> key_halves(key.size()), value_halves(key.size());
  const auto halve = [&](Floats& x, std::vector<uint16_t>& halves) {
    in_use().halve({{x.data(), width}, halves.data(), width, length, width});
    for (size_t i = 0; i < x.size(); i++) {
      const uint32_t bits = static_cast<uint32_t>(halves[i]) << 16;
      std::memcpy(&x[i], &bits, sizeof bits);
    }
  };
  if (of_bf16) halve(key, key_halves), halve(value, value_halves);
  const void* const kept_key = of_bf16 ? static_cast<const void*>(key_halves.data()) : key.data();
  const void* const kept_value = of_bf16 ? static_cast<const void*>(value_halves.data()) : value.data();
  Floats context(query.size()), scratch(static_cast<size_t>(attention_scratch(length)));
  const long room = length + 3;
  Floats found(static_cast<size_t>(rows * heads * room), 7.0f);
  std::vector<double> weights(found.size(), 0.0);
  std::vector<int32_t> places;
  for (long row = 0; row < rows; row++)
    for (int32_t s = 0; s < length; s++) places.push_back(length - 1 - s);
  std::vector<double> wanted(context.size(), 0.0);
  for (long row = 0; row < rows; row++)
    for (long h = 0; h < heads; h++) {
      std::vector<double> weight;
      double total = 0;
      const auto entry = [&](const Floats& of, long s, long u) {
        return static_cast<double>(of[static_cast<size_t>(s * width + h * size + u)]);
      };
      for (long s = 0; s < length; s++) {
        double score = 0;
        for (long u = 0; u < size; u++) score += 0.3 * entry(query, row, u) * entry(key, s, u);
        weight.push_back(std::exp(score));
        total += weight.back();
      }
      for (long s = 0; s < length; s++) {
        const double share = weight[static_cast<size_t>(s)] / total;
        weights[static_cast<size_t>((row * heads + h) * room + s)] = share;
        for (long u = 0; u < size; u++)
          wanted[static_cast<size_t>(row * width + h * size + u)] += share * entry(value, s, u);
      }
    }
  const std::vector<int32_t> first(static_cast<size_t>(rows), 0), lengths(first.size(), length);
  for (const int32_t* table : {static_cast<const int32_t*>(nullptr), static_cast<const int32_t*>(places.data())}) {
    in_use().attention({{query.data(), width}, {kept_key, width}, {kept_value, width}, of_bf16,
                        {context.data(), width}, first.data(), table, length, lengths.data(), nullptr, 0, 0, nullptr, rows,
                        heads, size, size, 0.3f, scratch.data(), table ? nullptr : found.data(), heads * room, room});
    expect("attention", length, context, wanted, 1e-5);
    expect("weights of attention", length, found, weights, 1e-5);
  }
}

// Context and gradients of one sequence of one head.
void check_training_attention(long size, int64_t length, bool causal) {
  const Floats query = drawn(length * size), key = drawn(length * size), value = drawn(length * size),
               given = drawn(length * size);
  const size_t entries = query.size();
  Floats weights(static_cast<size_t>(length * kept(length))), scratch = weights, nearby(4 * entries);
  Floats context(entries, 0.0f), to_query = context, to_key = context, to_value = context;
  std::vector<double> wanted(entries, 0.0), query_wanted = wanted, key_wanted = wanted, value_wanted = wanted;
  const auto at = [&](long row, long u) { return static_cast<size_t>(row * size + u); };
  const auto dot = [&](const Floats& a, long l, const Floats& b, long m) {
    double total = 0;
    for (long u = 0; u < size; u++) total += static_cast<double>(a[at(l, u)]) * static_cast<double>(b[at(m, u)]);
    return total;
  };
  for (long l = 0; l < length; l++) {
    const long seen = causal ? l + 1 : length;
    std::vector<double> weight;
    double total = 0, shared = 0;
    for (long m = 0; m < seen; m++) {
      weight.push_back(std::exp(0.3 * dot(query, l, key, m)));
      total += weight.back();
    }
    for (long m = 0; m < seen; m++) shared += (weight[static_cast<size_t>(m)] /= total) * dot(given, l, value, m);
    for (long m = 0; m < seen; m++) {
      const double w = weight[static_cast<size_t>(m)], score = 0.3 * w * (dot(given, l, value, m) - shared);
      for (long u = 0; u < size; u++) {
        wanted[at(l, u)] += w * static_cast<double>(value[at(m, u)]);
        value_wanted[at(m, u)] += w * static_cast<double>(given[at(l, u)]);
        query_wanted[at(l, u)] += score * static_cast<double>(key[at(m, u)]);
        key_wanted[at(m, u)] += score * static_cast<double>(query[at(l, u)]);
      }
    }
  }
  const int64_t start = 0;
  const TrainingAttention of{{query.data(), size}, {key.data(), size}, {value.data(), size}, {context.data(), size},
                             &start, &length, &start, &length, nullptr, 0, weights.data(), 1, 1, size, size, causal,
                             0.3f, nearby.data()};
  in_use().training_attention(of);
  in_use().attention_gradient(of, {{given.data(), size}, {to_query.data(), size}, {to_key.data(), size},
                                   {to_value.data(), size}, nullptr, scratch.data()});
  expect("attention in training", length, context, wanted, 1e-5);
  expect("its gradient of queries", length, to_query, query_wanted, 3e-5);
  expect("its gradient of keys", length, to_key, key_wanted, 3e-5);
  expect("its gradient of values", length, to_value, value_wanted, 3e-5);
}

void check_vocabulary(long rows, long inner, long columns, long k) {
  const Weights w(columns, inner);
  const Floats hidden = drawn(rows * inner);
  const long together = vocabulary_together(columns);
  Floats score(static_cast<size_t>(rows * k)), scratch(static_cast<size_t>(vocabulary_scratch(rows, together)));
  std::vector<char> quantised(static_cast<size_t>(quantised_scratch(rows, inner)));
  std::vector<int32_t> ids(score.size());
  std::vector<double> log_sum(static_cast<size_t>(rows)), wanted, wanted_sum;
  for (long n = 0; n < rows; n++) {
    std::vector<double> all;
    double total = 0;
    for (long v = 0; v < columns; v++) {
      all.push_back(w.at(&hidden[static_cast<size_t>(n * inner)], v));
      total += std::exp(all.back());
    }
    std::sort(all.rbegin(), all.rend());
    wanted.insert(wanted.end(), all.begin(), all.begin() + k);
    wanted_sum.push_back(std::log(total));
  }
  in_use().vocabulary({{{hidden.data(), inner}, w.matrix(), nullptr, rows, columns, together, scratch.data(),
                        quantised.data()}, ids.data(), score.data(), log_sum.data(), k});
  expect("vocabulary", columns, score, wanted, 2e-5);
  expect("log sum", columns, Floats(log_sum.begin(), log_sum.end()), wanted_sum, 2e-5);
}

void check_argmax(long rows, long inner, long columns) {
  Weights w(columns, inner);
  w.bias_N.assign(w.bias_N.size(), 0.0f);
  const Floats hidden = drawn(rows * inner);
  const long together = vocabulary_together(columns), panels = (columns + PANEL - 1) / PANEL;
  std::vector<char> screen(static_cast<size_t>(panels * panel_bytes(Precision::int8, inner)));
  pack({{w.weight_NK.data(), inner}, nullptr, w.packed.data(), Precision::fp32, columns, inner, 0});
  pack({{w.weight_NK.data(), inner}, nullptr, screen.data(), Precision::int8, columns, inner, 0});
  Floats scratch(static_cast<size_t>(argmax_scratch(rows, columns, together))), score;
  std::vector<char> quantised(static_cast<size_t>(quantised_scratch(rows, inner)));
  std::vector<int32_t> ids(static_cast<size_t>(rows));
  std::vector<double> wanted;
  in_use().argmax({{{hidden.data(), inner}, {screen.data(), inner, Precision::int8}, nullptr, rows, columns, together,
                    scratch.data(), quantised.data()}, w.matrix(), ids.data()});
  for (long n = 0; n < rows; n++) {
    const float* x = &hidden[static_cast<size_t>(n * inner)];
    double most = -INFINITY;
    for (long v = 0; v < columns; v++) most = std::max(most, w.at(x, v));
    score.push_back(static_cast<float>(w.at(x, std::max(ids[static_cast<size_t>(n)], 0))));
    wanted.push_back(most);
  }
  expect("argmax", columns, score, wanted, 1e-6);
}

void check_softmax(long columns) {
  Floats score = drawn(columns), log_sum(1);
  std::vector<double> wanted;
  double total = 0;
  for (float each : score) wanted.push_back(std::exp(static_cast<double>(each))), total += wanted.back();
  for (double& each : wanted) each /= total;
  in_use().softmax({score.data(), nullptr, nullptr, log_sum.data(), columns, 1, columns});
  expect("softmax", columns, score, wanted, 1e-6);
  expect("its log sum", columns, log_sum, {std::log(total)}, 1e-6);
}

void check_dropout(long size) {
  Floats x = drawn(size), out(x.size()), stream = drawn(size), sum(x.size());
  std::vector<uint8_t> bytes;
  std::vector<double> wanted, wanted_sum;
  for (size_t i = 0; i < x.size(); i++) {
    bytes.push_back(static_cast<uint8_t>(i * 97));
    wanted.push_back(bytes[i] >= 26 && x[i] > 0 ? 1.25 * static_cast<double>(x[i]) : 0.0);
    wanted_sum.push_back(static_cast<double>(stream[i]) + (bytes[i] >= 26 ? 1.25 * static_cast<double>(x[i]) : 0.0));
  }
  in_use().dropout({x.data(), x.data(), bytes.data(), nullptr, nullptr, out.data(), size, 26, 1.25f, false});
  in_use().dropout({x.data(), nullptr, bytes.data(), stream.data(), sum.data(), nullptr, size, 26, 1.25f, false});
  expect("dropout behind ReLU", size, out, wanted, 1e-6);
  expect("dropout into a stream", size, sum, wanted_sum, 1e-6);
}

void check_rotation(long size) {
  const Floats x = drawn(size), angle = drawn(size / 2, 3.0f);
  Floats out = x, cos, sin;
  std::vector<double> wanted(x.begin(), x.end());
  for (long i = 0; i < size / 2; i++) {
    const size_t a = static_cast<size_t>(i), b = static_cast<size_t>(i + size / 2);
    cos.push_back(std::cos(angle[a]));
    sin.push_back(std::sin(angle[a]));
    const double c = static_cast<double>(cos[a]), s = static_cast<double>(sin[a]);
    wanted[a] = static_cast<double>(x[a]) * c - static_cast<double>(x[b]) * s;
    wanted[b] = static_cast<double>(x[b]) * c + static_cast<double>(x[a]) * s;
  }
  const int32_t place = 0;
  in_use().rotation({{out.data(), size}, cos.data(), sin.data(), &place, 1, 1, size});
  expect("rotation", size, out, wanted, 1e-6);
}

void check_recurrence(long columns) {
  const Floats x = drawn(2 * columns, 3.0f), before = drawn(columns);
  Floats state(static_cast<size_t>(2 * columns)), out(static_cast<size_t>(columns));
  std::copy(before.begin(), before.end(), state.begin() + columns);
  const int32_t places[] = {1, 0}, slot = 0, length = 2;
  std::vector<double> wanted;
  for (size_t d = 0; d < out.size(); d++) {
    const double keep = 1 / (1 + std::exp(-static_cast<double>(x[out.size() + d])));
    wanted.push_back(std::max(0.0, keep * static_cast<double>(before[d]) + (1 - keep) * static_cast<double>(x[d])));
  }
  in_use().recurrence({{x.data(), 2 * columns}, {state.data(), columns}, {out.data(), columns}, &slot, places, 2,
                       &length, 1, columns});
  expect("recurrence", columns, out, wanted, 1e-6);
}

}  // namespace

int main() {
  for (const Kernels* kernels : supported()) {
    use(kernels->name);
    for (long rows : {1, 2, 3, 4, 7, 13, 80})
      for (long columns : {1, 31, 32, 97})
        for (Activation activation : {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh,
                                      Activation::swish})
          for (Precision precision : {Precision::fp32, Precision::bf16, Precision::int8})
            check_product(rows, 19, columns, activation, precision);
    for (Precision precision : {Precision::fp32, Precision::bf16, Precision::int8})
      check_product(150, 800, 33, Activation::relu, precision);  // rows and entries beyond what is kept near
    for (long columns : {1, 5, 16, 67}) {
      check_gate(3, columns);
      for (NormKind kind : {NormKind::layer, NormKind::rms, NormKind::affine}) check_norm(columns, kind);
    }
    for (int32_t length : {1, 3, 16, 50})
      for (bool of_bf16 : {false, true}) check_attention(2, 20, length, of_bf16);
    for (int64_t length : {1, 3, 16, 50})
      for (long size : {5, 16, 67})
        for (bool causal : {false, true}) check_training_attention(size, length, causal);
    for (long columns : {7, 512, 1300}) check_vocabulary(3, 24, columns, 5);
    for (long columns : {7, 512, 1300}) check_argmax(5, 48, columns);
    for (long columns : {1, 7, 16, 1300}) check_softmax(columns);
    for (long size : {1, 16, 67}) check_dropout(size);
    for (long size : {2, 6, 64}) check_rotation(size);
    for (long size : {1, 16, 67}) check_recurrence(size);
    set_threads(3);
    for (long rows : {1, 5})
      for (Precision precision : {Precision::fp32, Precision::bf16, Precision::int8})
        check_product(rows, 300, 1000, Activation::relu, precision);
    check_vocabulary(3, 24, 5300, 5);
    set_threads(1);
    std::printf("%s: %s\n", kernels->name, failures ? "failed" : "every kernel equals its plain loop");
  }
  return failures != 0;
}
