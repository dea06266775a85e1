// Programs for Python: recorded with the arrays of a model, run with those of a batch.
#include "program_module.h"

#include <nanobind/stl/string.h>

#include "arrays.h"
#include "program.h"

namespace regard {
namespace {

template <class A> std::shared_ptr<void> kept(const A& array) { return std::make_shared<A>(array); }

Weight vector_of(const Floats1& array, long size) { return {line(array, size), kept(array)}; }

template <class A> Table table(const Maybe<A>& array) {
  if (!array) return {};
  const auto at = rows(*array);
  return {at.at, rows_of(*array), columns_of(*array), at.stride};
}

using Layers = std::vector<AnyRows>;
std::vector<KeysAndValues> layers(const Maybe<Layers>& arrays) {
  std::vector<KeysAndValues> found;
  if (arrays)
    for (const AnyRows& array : *arrays)
      found.push_back({array.data(), halves(array), rows_of(array), columns_of(array),
                       static_cast<long>(array.stride(0))});
  return found;
}

template <class A> auto maybe_line(const Maybe<A>& array, long size) {
  return array ? line(*array, size) : nullptr;
}

using Ids = Array<const int64_t, 1>;

void run(Program& program, int result, const Out2& out, const Ids& ids, const Ints1& place, const Ints1& length,
         const Maybe<Ints1>& first, const Maybe<Ints1>& slot, const Maybe<Ints2>& ancestors,
         const Maybe<Layers>& past, const Maybe<Layers>& memory, const Maybe<Ints1>& memory_first,
         const Maybe<Ints1>& memory_length, const Maybe<Floats2>& positions, const Maybe<Floats2>& bias,
         const Maybe<Floats2>& cos, const Maybe<Floats2>& sin, const Maybe<Floats2>& added) {
  Pass pass;
  pass.rows = rows_of(out);
  expect(columns_of(out) == program.width(result), "the result has another size");
  pass.id_T = line(ids, pass.rows);
  pass.place_T = line(place, pass.rows);
  pass.length_T = line(length, pass.rows);
  pass.first_T = maybe_line(first, pass.rows);
  pass.slot_T = maybe_line(slot, pass.rows);
  if (ancestors) {
    expect_rows(*ancestors);
    expect(rows_of(*ancestors) == pass.rows, "the table of ancestors has another number of rows");
    pass.ancestors_TS = ancestors->data();
    pass.ancestors_columns = columns_of(*ancestors);
    pass.ancestors_stride = static_cast<long>(ancestors->stride(0));
  }
  pass.past = layers(past);
  pass.memory = layers(memory);
  pass.memory_first_T = maybe_line(memory_first, pass.rows);
  pass.memory_length_T = maybe_line(memory_length, pass.rows);
  pass.positions = table(positions);
  pass.bias = table(bias);
  pass.cos = table(cos);
  pass.sin = table(sin);
  pass.added = table(added);
  const Rows to = rows(out);
  program.run(pass, result, to.at, to.stride);
}

}  // namespace

void bind_program(nb::module_& m) {
  using namespace nb::literals;
  const auto array = [](const char* name) { return nb::arg(name).noconvert(); };  // never a copy
  nb::class_<Program>(m, "Program")
      .def(nb::init<>())
      .def("room", &Program::room, "width"_a)
      .def("embed", [](Program& p, const Floats2& weights, float scale, int out) {
        const ConstRows at = rows(weights);
        p.embed({at.at, rows_of(weights), columns_of(weights), at.stride}, kept(weights), scale, out);
      }, array("table"), "scale"_a, "out"_a)
      .def("product", [](Program& p, int x, const AnyPanels& weights, int out, int activation) {
        expect(rows_of(weights) == (p.width(out) + PANEL - 1) / PANEL, "shapes of a product do not fit");
        p.product(x, matrix_of(weights, p.width(x), p.width(out)), kept(weights), out, activation_of(activation));
      }, "x"_a, array("packed"), "out"_a, "activation"_a)
      .def("gate", [](Program& p, int x, int out, int activation) { p.gate(x, out, activation_of(activation)); },
           "x"_a, "out"_a, "activation"_a)
      .def("norm", [](Program& p, int x, int y, int sum, int out, const Floats1& gain, const Maybe<Floats1>& bias,
                      int kind, long groups, float epsilon) {
        const long size = p.width(out);
        p.norm(x, y, sum, out, vector_of(gain, size), bias ? vector_of(*bias, size) : Weight{}, norm_of(kind), groups,
               epsilon);
      }, "x"_a, "y"_a, "sum"_a, "out"_a, array("gain"), array("bias").none(), "kind"_a, "groups"_a, "epsilon"_a)
      .def("rotate", &Program::rotate, "x"_a, "heads"_a, "size"_a)
      .def("attend", [](Program& p, int projected, int out, long heads, long d_k, long d_v, float scale, bool biased) {
        p.attend(projected, out, {heads, d_k, d_v, scale, biased});
      }, "projected"_a, "out"_a, "heads"_a, "d_k"_a, "d_v"_a, "scale"_a, "biased"_a)
      .def("attend_past", [](Program& p, int projected, int out, long heads, long d_k, long d_v, float scale,
                             bool biased, long layer) {
        p.attend_past(projected, out, {heads, d_k, d_v, scale, biased}, layer);
      }, "projected"_a, "out"_a, "heads"_a, "d_k"_a, "d_v"_a, "scale"_a, "biased"_a, "layer"_a)
      .def("attend_memory", [](Program& p, int query, int out, long heads, long d_k, long d_v, float scale,
                               long layer) {
        p.attend_memory(query, out, {heads, d_k, d_v, scale, false}, layer);
      }, "query"_a, "out"_a, "heads"_a, "d_k"_a, "d_v"_a, "scale"_a, "layer"_a)
      .def("run", run, nb::call_guard<nb::gil_scoped_release>(), "result"_a, array("out"), array("ids"),
           array("place"), array("length"), array("first") = nb::none(), array("slot") = nb::none(), array("ancestors") = nb::none(),
           array("past") = nb::none(), array("memory") = nb::none(), array("memory_first") = nb::none(), array("memory_length") = nb::none(),
           array("positions") = nb::none(), array("bias") = nb::none(), array("cos") = nb::none(), array("sin") = nb::none(),
           array("added") = nb::none());
}

}  // namespace regard
