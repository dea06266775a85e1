// NumPy arrays as kernels take them: what their shapes and strides must be.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <vector>

#include "kernels.h"

namespace nb = nanobind;

namespace regard {

inline auto array(const char* name) { return nb::arg(name).noconvert(); }  // an argument that is never a copy
inline const nb::call_guard<nb::gil_scoped_release> unlocked;                 // other threads of Python run meanwhile
void bind_training(nb::module_& m);
void bind_program(nb::module_& m);

template <class T, int N> using Array = nb::ndarray<T, nb::ndim<N>, nb::device::cpu>;
using Floats1 = Array<const float, 1>;
using Floats2 = Array<const float, 2>;
using Out2 = Array<float, 2>;
using Out3 = Array<float, 3>;
using Ints1 = Array<const int32_t, 1>;
using Ints2 = Array<const int32_t, 2>;
using Longs1 = Array<const int64_t, 1>;
template <class T> using Maybe = std::optional<T>;

inline void expect(bool holds, const char* sentence) {
  if (!holds) throw nb::value_error(sentence);
}

template <class A> long rows_of(const A& a) { return static_cast<long>(a.shape(0)); }
template <class A> long columns_of(const A& a) { return static_cast<long>(a.shape(1)); }

// Rows whose entries are neighbours, which may lie apart. In a list of arrays None is one without shape and memory.
template <class A> void expect_rows(const A& a) {
  expect(a.is_valid(), "an array is missing");
  expect(a.size() == 0 || a.shape(1) == 1 || a.stride(1) == 1, "the entries of a row must be neighbours in memory");
  expect(a.shape(0) <= 1 || a.stride(0) >= static_cast<int64_t>(a.shape(1)), "rows must not overlap");
}
inline ConstRows rows(const Floats2& a) {
  expect_rows(a);
  return {a.data(), static_cast<long>(a.stride(0))};
}
inline Rows rows(const Out2& a) {
  expect_rows(a);
  return {a.data(), static_cast<long>(a.stride(0))};
}
// Rows of keys or values: float32, or uint16, which is bf16.
using AnyRows = nb::ndarray<nb::ndim<2>, nb::device::cpu>;
using AnyConstRows = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;
template <class A> bool halves(const A& a) {
  expect_rows(a);
  expect(a.dtype() == nb::dtype<float>() || a.dtype() == nb::dtype<uint16_t>(), "keys and values are float32 or uint16");
  return a.dtype() == nb::dtype<uint16_t>();
}
template <class A> auto line(const A& a, long size) {
  expect(rows_of(a) == size, "an array has another length than its axis");
  expect(size <= 1 || a.stride(0) == 1, "an array must lie in one piece");
  return a.data();
}

// A packed matrix by the type of its numbers: float32 is fp32, uint16 bf16, int8 int8. Panels, the lines of each, and
// 32 columns (of fours, if they are bytes); the first lines belong to the columns, the others to `inner` entries.
using AnyPanels = nb::ndarray<nb::ro, nb::ndim<3>, nb::device::cpu>;
inline Precision precision_of(const nb::dlpack::dtype& type) {
  if (type == nb::dtype<float>()) return Precision::fp32;
  if (type == nb::dtype<uint16_t>()) return Precision::bf16;
  expect(type == nb::dtype<int8_t>(), "is no packed matrix");
  return Precision::int8;
}
template <class A> Precision expect_panels(const A& packed, long inner, long columns) {
  const Precision precision = precision_of(packed.dtype());
  const long width = precision == Precision::int8 ? PANEL_LINE : PANEL;
  const long size = static_cast<long>(packed.dtype().bits / 8), lines = static_cast<long>(packed.shape(1));
  expect(static_cast<long>(packed.shape(2)) == width, "is no packed matrix");
  expect(inner >= 0 && lines * width * size == panel_bytes(precision, inner), "a packed matrix has another inner size");
  expect(precision != Precision::int8 || inner <= MOST_INNER, "so many products of bytes cannot be added up");
  expect(packed.stride(2) == 1 && packed.stride(1) == width &&
             (packed.shape(0) <= 1 || packed.stride(0) == static_cast<int64_t>(lines) * width),
         "a packed matrix must lie in one piece");
  expect(columns >= 0 && (columns + PANEL - 1) / PANEL <= static_cast<long>(packed.shape(0)),
         "a packed matrix has fewer columns");
  return precision;
}
inline Matrix matrix_of(const AnyPanels& packed, long inner, long columns) {
  const Precision precision = expect_panels(packed, inner, columns);
  return {static_cast<const char*>(packed.data()), inner, precision};
}

inline void expect_screen(const Matrix& screen, const Matrix& exact) {
  expect((screen.at == exact.at && screen.precision == exact.precision) ||
             (screen.at != exact.at && screen.precision == Precision::int8 && exact.precision == Precision::fp32),
         "int8 screens for fp32; else both are one matrix");
}

inline Activation activation_of(int number) {
  expect(number >= 0 && number <= static_cast<int>(Activation::swish), "no such activation");
  return static_cast<Activation>(number);
}
inline NormKind norm_of(int number) {
  expect(number >= 0 && number <= static_cast<int>(NormKind::affine), "no such norm");
  return static_cast<NormKind>(number);
}

}  // namespace regard
