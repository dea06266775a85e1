// The kernels for Python: NumPy arrays in and out. Every shape, stride and index is checked here, so that a kernel
// never reads or writes outside of its arrays; the kernels themselves check nothing.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>

#include "arrays.h"
#include "dispatch.h"

namespace regard {
namespace {

void py_pack(const Floats2& weight, const Maybe<Floats1>& bias,
             const nb::ndarray<nb::ndim<3>, nb::device::cpu>& packed, long column) {
  const long count = rows_of(weight), inner = columns_of(weight);
  const Precision precision = expect_panels(packed, inner, column + count);
  expect(column >= 0, "there is no such column");
  pack({rows(weight), bias ? line(*bias, count) : nullptr, static_cast<char*>(packed.data()), precision, count, inner,
        column});
}

// What a product needs to work in; nothing where the matrix is of floats.
std::unique_ptr<char[]> scratch_of(const Matrix& matrix, long bytes) {
  return std::unique_ptr<char[]>(new char[matrix.precision == Precision::int8 ? static_cast<size_t>(bytes) : 0]);
}

void py_product(const Floats2& x, const AnyPanels& packed, const Out2& out, int activation) {
  const Matrix matrix = matrix_of(packed, columns_of(x), columns_of(out));
  expect(rows_of(x) == rows_of(out), "shapes of a product do not fit");
  const auto scratch = scratch_of(matrix, product_scratch(rows_of(x), matrix.inner));
  in_use().product({rows(x), matrix, rows(out), rows_of(x), columns_of(out), activation_of(activation), scratch.get()});
}

void py_gate(const Floats2& x, const Out2& out, int activation) {
  expect(columns_of(x) == 2 * columns_of(out) && rows_of(x) == rows_of(out), "shapes of a gate do not fit");
  in_use().gate({rows(x), rows(out), rows_of(x), columns_of(out), activation_of(activation)});
}

void py_norm(const Floats2& x, const Maybe<Floats2>& y, const Maybe<Out2>& sum, const Out2& out, const Floats1& gain,
             const Maybe<Floats1>& bias, int kind, long groups, float epsilon) {
  const long count = rows_of(out), columns = columns_of(out);
  expect(rows_of(x) == count && columns_of(x) == columns, "shapes of a norm do not fit");
  expect(!y || (rows_of(*y) == count && columns_of(*y) == columns), "shapes of a norm do not fit");
  expect(!sum || (y && rows_of(*sum) == count && columns_of(*sum) == columns), "shapes of a norm do not fit");
  expect(groups >= 1 && columns % groups == 0, "a row does not divide into its groups");
  in_use().norm({rows(x), y ? rows(*y) : ConstRows{}, sum ? rows(*sum) : Rows{}, rows(out), line(gain, columns),
                 bias ? line(*bias, columns) : nullptr, count, columns, groups, norm_of(kind), epsilon});
}

// Keys of every query, checked against the number there is; the most keys of a query.
long most_keys(const Ints1& first, const Maybe<Ints2>& places, const Ints1& length, long keys) {
  long most = 0;
  for (long row = 0; row < rows_of(length); row++) {
    const long count = length.data()[row];
    expect(count >= 0, "a query has a negative number of keys");
    if (places) {
      expect(count <= columns_of(*places), "a query has more keys than its row of the table");
      const int32_t* place = places->data() + row * places->stride(0);
      for (long s = 0; s < count; s++) expect(place[s] >= 0 && place[s] < keys, "a key is outside of its array");
    } else {
      const long begin = first.data()[row];
      expect(count == 0 || (begin >= 0 && begin + count <= keys), "a key is outside of its array");
    }
    most = count > most ? count : most;
  }
  return most;
}

void py_attention(const Floats2& query, const AnyConstRows& key, const AnyConstRows& value, const Out2& context,
                  long heads, float scale, const Ints1& length, const Ints1& first, const Maybe<Ints2>& places,
                  const Maybe<Floats2>& bias, const Maybe<Ints1>& place) {
  const long count = rows_of(query);
  expect(heads >= 1 && columns_of(query) % heads == 0 && columns_of(context) % heads == 0,
         "entries do not divide into heads");
  expect(columns_of(key) == columns_of(query) && columns_of(value) == columns_of(context) &&
             rows_of(key) == rows_of(value) && rows_of(context) == count,
         "shapes of attention do not fit");
  line(length, count);
  if (places) {
    expect_rows(*places);
    expect(rows_of(*places) == count, "the table of ancestors has another number of rows");
  } else {
    line(first, count);
  }
  const long most = most_keys(first, places, length, rows_of(key));
  long ahead = 0;
  if (bias) {
    expect(place.has_value() && rows_of(*bias) == heads, "a bias needs a row for each head, and places");
    expect_rows(*bias);
    line(*place, count);
    ahead = columns_of(*bias) / 2;
    for (long row = 0; row < count; row++) {
      const long lowest = ahead - place->data()[row], keys = length.data()[row];
      expect(keys == 0 || (lowest >= 0 && lowest + keys <= columns_of(*bias)), "the bias has no such distance");
    }
  }
  const std::unique_ptr<float[]> scratch(new float[static_cast<size_t>(attention_scratch(most))]);
  const bool of_bf16 = halves(key);
  expect(halves(value) == of_bf16, "keys and values have different types");
  in_use().attention({rows(query), {key.data(), static_cast<long>(key.stride(0))},
                      {value.data(), static_cast<long>(value.stride(0))}, of_bf16, rows(context), first.data(),
                      places ? places->data() : nullptr, places ? static_cast<long>(places->stride(0)) : 0,
                      length.data(), bias ? bias->data() : nullptr, bias ? static_cast<long>(bias->stride(0)) : 0,
                      ahead, place ? place->data() : nullptr, count, heads, columns_of(query) / heads,
                      columns_of(context) / heads, scale, scratch.get()});
}

void py_vocabulary(const Floats2& hidden, const AnyPanels& packed, long columns,
                   const Maybe<Array<const uint8_t, 1>>& without, const Array<int32_t, 2>& ids, const Out2& score,
                   const Array<double, 1>& log_sum) {
  const Matrix matrix = matrix_of(packed, columns_of(hidden), columns);
  const long count = rows_of(hidden), k = columns_of(ids);
  expect(rows_of(ids) == count && rows_of(score) == count && columns_of(score) == k,
         "shapes of the vocabulary's product do not fit");
  expect(k >= 1, "at least one token is chosen");
  expect(k == 1 || (ids.stride(1) == 1 && score.stride(1) == 1), "results must lie in one piece");
  expect(count <= 1 || (ids.stride(0) == k && score.stride(0) == k), "results must lie in one piece");
  const long together = vocabulary_together(columns);
  const std::unique_ptr<float[]> scratch(new float[static_cast<size_t>(vocabulary_scratch(count, together))]);
  const auto quantised = scratch_of(matrix, quantised_scratch(count, matrix.inner));
  in_use().vocabulary({{rows(hidden), matrix, without ? line(*without, columns) : nullptr, count, columns, together,
                        scratch.get(), quantised.get()}, ids.data(), score.data(), line(log_sum, count), k});
}

void py_argmax(const Floats2& hidden, const AnyPanels& screen, const AnyPanels& exact, long columns,
               const Maybe<Array<const uint8_t, 1>>& without, const Array<int32_t, 1>& ids) {
  const long count = rows_of(hidden), inner = columns_of(hidden), together = vocabulary_together(columns);
  const Matrix matrix = matrix_of(screen, inner, columns), other = matrix_of(exact, inner, columns);
  expect_screen(matrix, other);
  const std::unique_ptr<float[]> scratch(new float[static_cast<size_t>(argmax_scratch(count, columns, together))]);
  const auto quantised = scratch_of(matrix, quantised_scratch(count, inner));
  in_use().argmax({{rows(hidden), matrix, without ? line(*without, columns) : nullptr, count, columns, together,
                    scratch.get(), quantised.get()}, other, line(ids, count)});
}

void py_rotation(const Out2& x, long heads, const Floats2& cos, const Floats2& sin, const Ints1& place) {
  const long count = rows_of(x);
  expect(heads >= 1 && columns_of(x) % heads == 0 && columns_of(x) / heads == 2 * columns_of(cos),
         "entries do not divide into heads of two halves");
  expect(columns_of(sin) == columns_of(cos) && rows_of(sin) == rows_of(cos), "shapes of sine and cosine differ");
  expect_rows(cos);
  expect_rows(sin);
  expect(rows_of(cos) <= 1 || (cos.stride(0) == columns_of(cos) && sin.stride(0) == columns_of(cos)),
         "sine and cosine must lie in one piece");
  line(place, count);
  for (long row = 0; row < count; row++)
    expect(place.data()[row] >= 0 && place.data()[row] < rows_of(cos), "a place has no angles");
  in_use().rotation({rows(x), cos.data(), sin.data(), place.data(), count, heads, columns_of(x) / heads});
}

void py_halve(const Floats2& x, const Array<uint16_t, 2>& out) {
  expect_rows(out);
  expect(rows_of(out) == rows_of(x) && columns_of(out) == columns_of(x), "shapes of a rounding do not fit");
  in_use().halve({rows(x), out.data(), static_cast<long>(out.stride(0)), rows_of(x), columns_of(x)});
}

std::vector<std::string> sets() {
  std::vector<std::string> names;
  for (const Kernels* kernels : supported()) names.push_back(kernels->name);
  return names;
}

}  // namespace
}  // namespace regard

NB_MODULE(_native, m) {
  using namespace nb::literals;
  using namespace regard;
  m.attr("PANEL") = PANEL;
  m.def("sets", sets);
  m.def("in_use", [] { return std::string(in_use().name); });
  m.def("use", use, "name"_a);
  m.def("threads", threads);
  m.def("set_threads", [](long count) {
    expect(count >= 1 && count <= MOST_THREADS, "there are 1 to 8 threads");
    set_threads(count);
  }, unlocked, "count"_a);
  m.def("pack", py_pack, unlocked, array("weight"), array("bias").none(), array("packed"), "column"_a);
  m.def("product", py_product, unlocked, array("x"), array("packed"), array("out"), "activation"_a);
  m.def("gate", py_gate, unlocked, array("x"), array("out"), "activation"_a);
  m.def("norm", py_norm, unlocked, array("x"), array("y").none(), array("sum").none(), array("out"), array("gain"),
        array("bias").none(), "kind"_a, "groups"_a, "epsilon"_a);
  m.def("attention", py_attention, unlocked, array("query"), array("key"), array("value"), array("context"), "heads"_a,
        "scale"_a, array("length"), array("first"), array("places").none(), array("bias").none(),
        array("place").none());
  m.def("vocabulary", py_vocabulary, unlocked, array("hidden"), array("packed"), "columns"_a, array("without").none(),
        array("ids"), array("score"), array("log_sum"));
  m.def("argmax", py_argmax, unlocked, array("hidden"), array("screen"), array("exact"), "columns"_a,
        array("without").none(), array("ids"));
  m.def("rotation", py_rotation, unlocked, array("x"), "heads"_a, array("cos"), array("sin"), array("place"));
  m.def("halve", py_halve, unlocked, array("x"), array("out"));
  bind_training(m);
  bind_program(m);
}
