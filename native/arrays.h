// NumPy arrays as kernels take them: what their shapes and strides must be.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>

#include "kernels.h"

namespace nb = nanobind;

namespace regard {

template <class T, int N> using Array = nb::ndarray<T, nb::ndim<N>, nb::device::cpu>;
using Floats1 = Array<const float, 1>;
using Floats2 = Array<const float, 2>;
using Floats3 = Array<const float, 3>;
using Out2 = Array<float, 2>;
using Ints1 = Array<const int32_t, 1>;
using Ints2 = Array<const int32_t, 2>;
template <class T> using Maybe = std::optional<T>;

inline void expect(bool holds, const char* sentence) {
  if (!holds) throw nb::value_error(sentence);
}

template <class A> long rows_of(const A& a) { return static_cast<long>(a.shape(0)); }
template <class A> long columns_of(const A& a) { return static_cast<long>(a.shape(1)); }

// Rows whose entries are neighbours, which may lie apart.
template <class A> void expect_rows(const A& a) {
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
template <class A> auto line(const A& a, long size) {
  expect(rows_of(a) == size, "an array has another length than its axis");
  expect(size <= 1 || a.stride(0) == 1, "an array must lie in one piece");
  return a.data();
}

// A packed matrix: its panels, the rows of each with that of the bias, 32 columns.
struct Packed {
  const float* at;
  long inner;
};
inline Packed panels(const Floats3& packed, long columns) {
  expect(packed.shape(1) >= 1 && packed.shape(2) == PANEL, "is no packed matrix");
  expect(packed.stride(2) == 1 && packed.stride(1) == PANEL &&
             (packed.shape(0) <= 1 || packed.stride(0) == static_cast<int64_t>(packed.shape(1)) * PANEL),
         "a packed matrix must lie in one piece");
  expect(columns >= 0 && (columns + PANEL - 1) / PANEL <= static_cast<long>(packed.shape(0)),
         "a packed matrix has fewer columns");
  return {packed.data(), static_cast<long>(packed.shape(1)) - 1};
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
