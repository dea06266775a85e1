// Programs for Python: recorded with the arrays of a model, run with those of a batch.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "arrays.h"
#include "search.h"

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
    for (const AnyRows& array : *arrays) {
      const bool of_bf16 = halves(array);
      found.push_back({array.data(), of_bf16, rows_of(array), columns_of(array), static_cast<long>(array.stride(0))});
    }
  return found;
}

template <class A> auto maybe_line(const Maybe<A>& array, long size) {
  return array ? line(*array, size) : nullptr;
}


void add_tables(Pass& pass, const Maybe<Layers>& past, const Maybe<Layers>& memory, const Maybe<Floats2>& positions,
                const Maybe<Floats2>& bias, const Maybe<Floats2>& cos, const Maybe<Floats2>& sin) {
  pass.past = layers(past);
  pass.memory = layers(memory);
  pass.positions = table(positions);
  pass.bias = table(bias);
  pass.cos = table(cos);
  pass.sin = table(sin);
}

template <class T> Column<T> column(const Array<T, 1>& array, long rows) { return {line(array, rows), 1}; }
template <class T> Column<T> columns(const Array<T, 2>& array, long rows, long least) {
  const long size = columns_of(array);
  expect(rows_of(array) == rows && size >= least, "a table of rows has another size");
  expect((rows <= 1 || array.stride(0) == size) && (size <= 1 || array.stride(1) == 1), "an array must lie in one piece");
  return {array.data(), size};
}

std::tuple<long, long, long> search_(
    Program& program, int result, const Out2& hidden, const AnyPanels& screen, const AnyPanels& exact, long pieces,
    const Maybe<Array<const uint8_t, 1>>& without, int64_t end, long width, long steps, bool scored, long count,
    const Ints1& slots, const Array<int64_t, 1>& token, const Array<int64_t, 1>& sentence,
    const Array<int64_t, 1>& origin, const Array<int32_t, 1>& length, const Array<int32_t, 2>& ancestors,
    const Array<int32_t, 1>& memory_first, const Array<int32_t, 1>& memory_length,
    const Array<double, 1>& log_probability, const Array<double, 1>& bar, const Array<double, 1>& penalty,
    const Array<int64_t, 2>& tokens, const Array<double, 2>& log_probabilities,
    const Maybe<Layers>& past, const Maybe<Layers>& memory, const Maybe<Floats2>& positions,
    const Maybe<Floats2>& bias, const Maybe<Floats2>& cos, const Maybe<Floats2>& sin, const Maybe<Ints1>& names) {
  const long most = rows_of(hidden), inner = program.width(result);
  expect(columns_of(hidden) == inner && (most <= 1 || hidden.stride(0) == inner), "the result has another size");
  expect(width >= 1 && pieces >= 1 && steps >= 0 && count >= 1 && count <= most, "there is no such search");
  line(sentence, most);
  long sentences = 1;
  for (long row = 1, of_sentence = 1; row < count; row++) {
    const bool another = sentence.data()[row] != sentence.data()[row - 1];
    of_sentence = another ? 1 : of_sentence + 1;
    sentences += another;
    expect(of_sentence <= width, "a sentence has more rows than the search is wide");
  }
  expect(width <= most / sentences, "there is no room for the rows of the search");
  SearchRows rows{count, most, column(token, most), column(sentence, most), column(origin, most), column(length, most),
                  column(memory_first, most), column(memory_length, most), columns(ancestors, most, 1),
                  column(log_probability, most), columns(log_probabilities, most, steps), column(bar, most), column(penalty, most),
                  columns(tokens, most, steps)};
  for (long row = 0; row < count; row++)
    expect(length.data()[row] >= 0 && length.data()[row] + steps < columns_of(ancestors), "rows are too long");
  const Matrix screening = matrix_of(screen, inner, pieces), output = matrix_of(exact, inner, pieces);
  expect_screen(screening, output);
  Search given{program, {}, result, screening, output,
               without ? line(*without, pieces) : nullptr, maybe_line(names, pieces), pieces, width, steps, end, scored,
               line(slots, (steps + 1) * most), hidden.data()};
  add_tables(given.pass, past, memory, positions, bias, cos, sin);
  const Searched found = search(given, rows);
  return {rows.rows, found.steps, found.slots};
}

void run(Program& program, int result, const Out2& out, const Longs1& ids, const Ints1& place, const Ints1& length,
         const Maybe<Ints1>& first, const Maybe<Ints1>& slot, const Maybe<Ints2>& ancestors,
         const Maybe<Layers>& past, const Maybe<Layers>& memory, const Maybe<Ints1>& memory_first,
         const Maybe<Ints1>& memory_length, const Maybe<Floats2>& positions, const Maybe<Floats2>& bias,
         const Maybe<Floats2>& cos, const Maybe<Floats2>& sin, const Maybe<Floats2>& added, const Maybe<Out3>& weights) {
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
  pass.memory_first_T = maybe_line(memory_first, pass.rows);
  pass.memory_length_T = maybe_line(memory_length, pass.rows);
  add_tables(pass, past, memory, positions, bias, cos, sin);
  pass.added = table(added);
  if (weights) {
    pass.weight_heads = columns_of(*weights);
    pass.weight_columns = static_cast<long>(weights->shape(2));
    expect(rows_of(*weights) == pass.rows && weights->stride(2) == 1 && weights->stride(1) == pass.weight_columns &&
               weights->stride(0) == pass.weight_heads * pass.weight_columns,
           "the room for weights has a row for each token, and lies in one piece");
    pass.weight_THS = weights->data();
  }
  const Rows to = rows(out);
  program.run(pass, result, to.at, to.stride);
}

}  // namespace

void bind_program(nb::module_& m) {
  using namespace nb::literals;
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
      .def("recur", &Program::recur, "projected"_a, "out"_a, "layer"_a)
      .def("attend_memory", [](Program& p, int query, int out, long heads, long d_k, long d_v, float scale,
                               long layer) {
        p.attend_memory(query, out, {heads, d_k, d_v, scale, false}, layer);
      }, "query"_a, "out"_a, "heads"_a, "d_k"_a, "d_v"_a, "scale"_a, "layer"_a)
      .def("run", run, nb::call_guard<nb::gil_scoped_release>(), "result"_a, array("out"), array("ids"),
           array("place"), array("length"), array("first") = nb::none(), array("slot") = nb::none(), array("ancestors") = nb::none(),
           array("past") = nb::none(), array("memory") = nb::none(), array("memory_first") = nb::none(), array("memory_length") = nb::none(),
           array("positions") = nb::none(), array("bias") = nb::none(), array("cos") = nb::none(), array("sin") = nb::none(),
           array("added") = nb::none(), array("weights") = nb::none())
      .def("search", search_, nb::call_guard<nb::gil_scoped_release>(), "result"_a, array("hidden"), array("screen"),
           array("exact"), "pieces"_a, array("without").none(), "end"_a, "width"_a, "steps"_a, "scored"_a, "count"_a,
           array("slots"), array("token"), array("sentence"), array("origin"), array("length"), array("ancestors"),
           array("memory_first"), array("memory_length"), array("log_probability"), array("bar"), array("penalty"), array("tokens"),
           array("log_probabilities"), array("past") = nb::none(), array("memory") = nb::none(),
           array("positions") = nb::none(), array("bias") = nb::none(), array("cos") = nb::none(), array("sin") = nb::none(), array("names") = nb::none());
}

}  // namespace regard
