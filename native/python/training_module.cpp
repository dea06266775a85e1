// The kernels of training for Python, checked as those of module.cpp are.
#include <algorithm>
#include <memory>
#include <utility>

#include "arrays.h"
#include "dispatch.h"

namespace regard {
namespace {

// Sequences of an axis lie inside of it; the most tokens of one.
long longest_of(const Longs1& start, const Longs1& length, long count, long size) {
  line(start, count);
  line(length, count);
  long longest = 0;
  for (long b = 0; b < count; b++) {
    const int64_t begin = start.data()[b], tokens = length.data()[b];
    expect(tokens >= 0 && begin >= 0 && begin <= size && tokens <= size - begin, "a sequence is outside of its array");
    longest = tokens > longest ? static_cast<long>(tokens) : longest;
  }
  return longest;
}

using Maybe3 = Maybe<Array<const float, 3>>;

// A bias of each head, query and key, or its gradient: in one piece.
template <class A> auto square(const A& bias, long heads, long size) {
  const auto lies = [&](size_t axis, long stride) { return bias.shape(axis) <= 1 || bias.stride(axis) == stride; };
  expect(static_cast<long>(bias.shape(0)) == heads && static_cast<long>(bias.shape(1)) == size &&
             static_cast<long>(bias.shape(2)) == size,
         "the bias has another shape than the scores");
  expect(lies(0, size * size) && lies(1, size) && lies(2, 1), "the bias must lie in one piece");
  return bias.data();
}

// What both directions are given, checked, and what they work in.
struct Training {
  TrainingAttention attention;
  std::unique_ptr<float[]> nearby;
  long weights;  // the most of one head of a sequence
};
Training training_attention_of(
    const Floats2& query, const Floats2& key, const Floats2& value, long heads, float scale, bool causal,
    const Longs1& query_start, const Longs1& query_length, const Longs1& key_start, const Longs1& key_length,
    const Maybe3& bias, const Array<float, 1>& weights) {
  const long count = rows_of(query_start);
  expect(heads >= 1 && columns_of(query) % heads == 0 && columns_of(value) % heads == 0,
         "entries do not divide into heads");
  expect(columns_of(key) == columns_of(query) && rows_of(key) == rows_of(value), "shapes of attention do not fit");
  const long queries_of_one = longest_of(query_start, query_length, count, rows_of(query));
  const long keys_of_one = longest_of(key_start, key_length, count, rows_of(key));
  long most = 0, all = 0;
  for (long b = 0; b < count; b++) {
    const long queries = query_length.data()[b], keys = key_length.data()[b];
    expect(queries == 0 || (keys >= 1 && (!causal || keys >= queries)), "a query has no keys");
    expect(queries == 0 || kept(keys) <= (rows_of(weights) - all) / heads / queries,
           "there is no room for exactly the weights");
    all += heads * queries * kept(keys);
    most = std::max(most, queries * kept(keys));
  }
  expect(rows_of(weights) == all, "there is no room for exactly the weights");
  const long size = bias ? static_cast<long>(bias->shape(1)) : 0;
  expect(!bias || size >= std::max(queries_of_one, keys_of_one), "the bias has another shape than the scores");
  const long key_size = columns_of(query) / heads, value_size = columns_of(value) / heads;
  std::unique_ptr<float[]> nearby(new float[static_cast<size_t>((queries_of_one + keys_of_one) * heads * (key_size + value_size))]);
  const TrainingAttention found{rows(query), rows(key), rows(value), {}, query_start.data(), query_length.data(),
                                key_start.data(), key_length.data(), bias ? square(*bias, heads, size) : nullptr, size,
                                line(weights, all), count, heads, key_size, value_size, causal, scale, nearby.get()};
  return {found, std::move(nearby), most};
}

void py_training_attention(const Floats2& query, const Floats2& key, const Floats2& value, const Out2& context,
                           long heads, float scale, bool causal, const Longs1& query_start, const Longs1& query_length,
                           const Longs1& key_start, const Longs1& key_length, const Maybe3& bias,
                           const Array<float, 1>& weights) {
  auto given = training_attention_of(query, key, value, heads, scale, causal, query_start, query_length, key_start,
                                     key_length, bias, weights);
  expect(rows_of(context) == rows_of(query) && columns_of(context) == columns_of(value), "shapes of attention do not fit");
  given.attention.context = rows(context);
  in_use().training_attention(given.attention);
}

void py_attention_gradient(const Floats2& query, const Floats2& key, const Floats2& value, const Floats2& gradient,
                           const Out2& query_gradient, const Out2& key_gradient, const Out2& value_gradient, long heads,
                           float scale, bool causal, const Longs1& query_start, const Longs1& query_length,
                           const Longs1& key_start, const Longs1& key_length, const Maybe3& bias,
                           const Array<float, 1>& weights, const Maybe<Array<float, 3>>& bias_gradient) {
  const auto given = training_attention_of(query, key, value, heads, scale, causal, query_start, query_length,
                                                   key_start, key_length, bias, weights);
  const auto alike = [](const auto& a, const auto& b) { return rows_of(a) == rows_of(b) && columns_of(a) == columns_of(b); };
  expect(alike(query_gradient, query) && alike(key_gradient, key) && alike(value_gradient, value) &&
             rows_of(gradient) == rows_of(query) && columns_of(gradient) == columns_of(value),
         "shapes of a gradient do not fit");
  expect(!bias_gradient || bias, "there is no bias to have a gradient");
  float* to_bias = bias_gradient ? square(*bias_gradient, heads, given.attention.bias_longest) : nullptr;
  const std::unique_ptr<float[]> scratch(new float[static_cast<size_t>(given.weights)]);
  in_use().attention_gradient(given.attention, {rows(gradient), rows(query_gradient), rows(key_gradient), rows(value_gradient),
                                      to_bias, scratch.get()});
}

template <class T> void py_softmax(const Array<T, 2>& x, const Array<float, 1>& log_sum) {
  expect_rows(x);
  expect(columns_of(x) >= 1, "a softmax needs a score");
  constexpr bool halves = sizeof(T) == sizeof(uint16_t);
  const std::unique_ptr<float[]> scratch(new float[halves ? x.shape(1) : 0]);
  Softmax given{nullptr, nullptr, scratch.get(), line(log_sum, rows_of(x)), static_cast<long>(x.stride(0)), rows_of(x),
                columns_of(x)};
  if constexpr (halves) given.halves = x.data();
  else given.floats = x.data();
  in_use().softmax(given);
}

template <class T>
void py_dropout(const Array<const T, 1>& x, const Array<const uint8_t, 1>& drawn, const Array<T, 1>& out, int threshold,
                float scale, const Maybe<Array<const T, 1>>& gate) {
  const long size = rows_of(x);
  in_use().dropout({line(x, size), gate ? line(*gate, size) : nullptr, line(drawn, size), nullptr, nullptr,
                    line(out, size), size, threshold, scale, sizeof(T) == sizeof(uint16_t)});
}

template <class T>
void py_add_dropout(const Array<const T, 1>& x, const Array<const uint8_t, 1>& drawn, const Floats1& stream,
                    const Array<float, 1>& sum, int threshold, float scale) {
  const long size = rows_of(x);
  in_use().dropout({line(x, size), nullptr, line(drawn, size), line(stream, size), line(sum, size), nullptr, size,
                    threshold, scale, sizeof(T) == sizeof(uint16_t)});
}

}  // namespace

void bind_training(nb::module_& m) {
  using namespace nb::literals;
  m.attr("KEPT") = KEPT;
  m.def("training_attention", py_training_attention, unlocked, array("query"), array("key"), array("value"),
        array("context"), "heads"_a, "scale"_a, "causal"_a, array("query_start"), array("query_length"),
        array("key_start"), array("key_length"), array("bias").none(), array("weights"));
  m.def("attention_gradient", py_attention_gradient, unlocked, array("query"), array("key"), array("value"),
        array("gradient"), array("query_gradient"), array("key_gradient"), array("value_gradient"), "heads"_a,
        "scale"_a, "causal"_a, array("query_start"), array("query_length"), array("key_start"), array("key_length"),
        array("bias").none(), array("weights"), array("bias_gradient").none());
  m.def("softmax", py_softmax<float>, unlocked, array("x"), array("log_sum"));
  m.def("softmax", py_softmax<uint16_t>, unlocked, array("x"), array("log_sum"));
  const auto def_dropout = [&](auto alone, auto add) {
    m.def("dropout", alone, unlocked, array("x"), array("drawn"), array("out"), "threshold"_a, "scale"_a,
          array("gate").none());
    m.def("add_dropout", add, unlocked, array("x"), array("drawn"), array("stream"), array("sum"), "threshold"_a, "scale"_a);
  };
  def_dropout(py_dropout<float>, py_add_dropout<float>);
  def_dropout(py_dropout<uint16_t>, py_add_dropout<uint16_t>);
}

}  // namespace regard
