#include "program.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "dispatch.h"

namespace regard {

namespace {

constexpr long LINE = 16;  // floats of a cache line, at which rooms begin

void expect(bool holds, const char* sentence) {
  if (!holds) throw std::invalid_argument(sentence);
}

void expect_within(const int32_t* value_T, long rows, long limit, const char* sentence) {
  expect(rows == 0 || value_T != nullptr, "a pass lacks what a call of its program needs");
  for (long t = 0; t < rows; t++) expect(value_T[t] >= 0 && value_T[t] < limit, sentence);
}

// Spans of keys that lie in one piece.
void expect_spans(const int32_t* first_T, const int32_t* length_T, long rows, long limit) {
  expect(rows == 0 || (first_T && length_T), "a pass lacks what a call of its program needs");
  for (long t = 0; t < rows; t++) {
    const long first = first_T[t], length = length_T[t];
    expect(length >= 0 && (length == 0 || (first >= 0 && first + length <= limit)), "a key is outside of its array");
  }
}

void expect_bias(const Pass& pass, long heads) {
  const long ahead = pass.bias.columns / 2;
  expect(pass.bias.at && pass.bias.rows == heads && pass.place_T, "a bias needs a row for each head, and places");
  for (long t = 0; t < pass.rows; t++) {
    const long lowest = ahead - pass.place_T[t], length = pass.length_T[t];
    expect(length <= 0 || (lowest >= 0 && lowest + length <= pass.bias.columns), "the bias has no such distance");
  }
}

void expect_heads(const Heads& heads, long layer = 0) {
  expect(heads.heads >= 1 && heads.d_k >= 1 && heads.d_v >= 1 && layer >= 0, "attention has heads, each of some size");
}

const KeysAndValues& of_layer(const std::vector<KeysAndValues>& layers, long layer) {
  expect(layer < static_cast<long>(layers.size()), "keys and values are of fewer layers");
  return layers[static_cast<size_t>(layer)];
}

// Slots of new tokens, and where what all tokens of a row left is.
void expect_past(const Pass& pass, const KeysAndValues& past) {
  expect_within(pass.slot_T, pass.rows, past.rows, "a slot is outside of the past");
  expect(pass.rows == 0 || (pass.ancestors_TS && pass.length_T), "a pass lacks what a call of its program needs");
  for (long t = 0; t < pass.rows; t++) {
    expect(pass.length_T[t] <= pass.ancestors_columns, "a query has more keys than its row of the table");
    for (long s = 0; s < pass.length_T[t]; s++) {
      const int32_t place = pass.ancestors_TS[t * pass.ancestors_stride + s];
      expect(place >= 0 && place < past.rows, "a key is outside of its array");
    }
  }
}

long most(const int32_t* length_T, long rows) {
  long found = 0;
  for (long t = 0; length_T && t < rows; t++) found = std::max<long>(found, length_T[t]);
  return found;
}

}  // namespace

int Program::room(long width) {
  expect(width >= 1, "a room holds something");
  widths_.push_back(width);
  return static_cast<int>(widths_.size()) - 1;
}

long Program::width(int room) const {
  expect(room >= 0 && room < static_cast<int>(widths_.size()), "there is no such room");
  return widths_[static_cast<size_t>(room)];
}

void Program::embed(Table table, std::shared_ptr<void> owner, float scale, int out) {
  expect(table.columns == width(out), "shapes of an embedding do not fit");
  checks_.push_back([=](const Pass& pass) {
    expect(pass.rows == 0 || pass.id_T, "a pass lacks what a call of its program needs");
    for (long t = 0; t < pass.rows; t++)
      expect(pass.id_T[t] >= 0 && pass.id_T[t] < table.rows, "an id is outside of its table");
    if (pass.added.at)
      expect(pass.added.rows == pass.rows && pass.added.columns == table.columns, "what is added has another size");
    if (!pass.positions.at) return;
    expect(pass.positions.columns == table.columns, "positions have another size");
    expect_within(pass.place_T, pass.rows, pass.positions.rows, "a place has no position");
  });
  calls_.push_back([=, owner = std::move(owner)](const Run& run) {
    const Rows x = rows(run, out);
    const Table &positions = run.pass.positions, &added = run.pass.added;
    for (long t = 0; t < run.pass.rows; t++) {
      const float* from = table.at + run.pass.id_T[t] * table.stride;
      const float* place = positions.at ? positions.at + run.pass.place_T[t] * positions.stride : nullptr;
      const float* more = added.at ? added.at + t * added.stride : nullptr;
      float* to = x.at + t * x.stride;
      for (long d = 0; d < table.columns; d++) to[d] = from[d] * scale;
      for (long d = 0; place && d < table.columns; d++) to[d] += place[d];
      for (long d = 0; more && d < table.columns; d++) to[d] += more[d];
    }
  });
}

void Program::product(int x, Matrix matrix, std::shared_ptr<void> owner, int out, Activation activation) {
  const long columns = width(out);
  expect(width(x) == matrix.inner && x != out, "shapes of a product do not fit");
  if (matrix.precision == Precision::int8) quantised_.insert(matrix.inner);
  calls_.push_back([=, owner = std::move(owner)](const Run& run) {
    in_use().product({read(run, x), matrix, rows(run, out), run.pass.rows, columns, activation, run.quantised});
  });
}

void Program::gate(int x, int out, Activation activation) {
  expect(width(x) == 2 * width(out), "shapes of a gate do not fit");
  calls_.push_back([=](const Run& run) {
    in_use().gate({read(run, x), rows(run, out), run.pass.rows, width(out), activation});
  });
}

void Program::norm(int x, int y, int sum, int out, Weight gain, Weight bias, NormKind kind, long groups,
                   float epsilon) {
  const long columns = width(out);
  for (int other : {x, y, sum}) expect(other < 0 || width(other) == columns, "shapes of a norm do not fit");
  expect(groups >= 1 && columns % groups == 0, "a row does not divide into its groups");
  calls_.push_back([=](const Run& run) {
    in_use().norm({read(run, x), y < 0 ? ConstRows{} : read(run, y), sum < 0 ? Rows{} : rows(run, sum), rows(run, out),
                   gain.at, bias.at, run.pass.rows, columns, groups, kind, epsilon});
  });
}

void Program::rotate(int x, long heads, long size) {
  expect(heads >= 1 && size >= 2 && heads * size <= width(x) && size % 2 == 0, "entries do not divide into heads of two halves");
  checks_.push_back([=](const Pass& pass) {
    const Table &cos = pass.cos, &sin = pass.sin;
    expect(cos.at && sin.at && cos.columns == size / 2 && sin.columns == size / 2 && cos.stride == size / 2 &&
               sin.stride == size / 2,
           "sine and cosine have another size");
    expect_within(pass.place_T, pass.rows, std::min(cos.rows, sin.rows), "a place has no angles");
  });
  calls_.push_back([=](const Run& run) {
    in_use().rotation({rows(run, x), run.pass.cos.at, run.pass.sin.at, run.pass.place_T, run.pass.rows, heads, size});
  });
}

void Program::attend(int projected, int out, Heads heads) {
  expect_heads(heads);
  expect(width(projected) == 2 * heads.keys() + heads.values() && width(out) == heads.values(),
         "shapes of attention do not fit");
  checks_.push_back([=](const Pass& pass) {
    expect_spans(pass.first_T, pass.length_T, pass.rows, pass.rows);
    if (heads.biased) expect_bias(pass, heads.heads);
  });
  calls_.push_back([=](const Run& run) {
    const Pass& pass = run.pass;
    const ConstRows key = read(run, projected, heads.keys()), value = read(run, projected, 2 * heads.keys());
    in_use().attention({read(run, projected), {key.at, key.stride}, {value.at, value.stride}, false, rows(run, out),
                        pass.first_T, nullptr, 0, pass.length_T,
                        heads.biased ? pass.bias.at : nullptr, pass.bias.stride, pass.bias.columns / 2, pass.place_T,
                        pass.rows, heads.heads, heads.d_k, heads.d_v, heads.scale, run.scratch});
  });
}

void Program::recur(int projected, int out, long layer) {
  const long size = width(out);
  expect(width(projected) == 2 * size && layer >= 0, "shapes of a recurrence do not fit");
  checks_.push_back([=](const Pass& pass) {
    const KeysAndValues& past = of_layer(pass.past, layer);
    expect(past.columns == size && !past.halves, "the past has another size");
    expect_past(pass, past);
  });
  calls_.push_back([=](const Run& run) {
    const Pass& pass = run.pass;
    const KeysAndValues& past = of_layer(pass.past, layer);
    in_use().recurrence({read(run, projected), {static_cast<float*>(past.at), past.stride}, rows(run, out), pass.slot_T,
                         pass.ancestors_TS, pass.ancestors_stride, pass.length_T, pass.rows, size});
  });
}

void Program::attend_past(int projected, int out, Heads heads, long layer) {
  expect_heads(heads, layer);
  const long own = heads.keys() + heads.values();
  expect(width(projected) == heads.keys() + own && width(out) == heads.values(), "shapes of attention do not fit");
  checks_.push_back([=](const Pass& pass) {
    const KeysAndValues& past = of_layer(pass.past, layer);
    expect(past.columns == own, "the past has another size");
    expect_past(pass, past);
    if (heads.biased) expect_bias(pass, heads.heads);
  });
  calls_.push_back([=](const Run& run) {
    const Pass& pass = run.pass;
    const ConstRows written = read(run, projected, heads.keys());
    const KeysAndValues& past = of_layer(pass.past, layer);
    for (long t = 0; t < pass.rows; t++) {
      const ConstRows one = {written.at + t * written.stride, own};
      const long place = pass.slot_T[t] * past.stride;
      if (past.halves) in_use().halve({one, static_cast<uint16_t*>(past.at) + place, own, 1, own});
      else std::memcpy(static_cast<float*>(past.at) + place, one.at, static_cast<size_t>(own) * sizeof(float));
    }
    in_use().attention({read(run, projected), past.from(0), past.from(heads.keys()), past.halves, rows(run, out),
                        nullptr, pass.ancestors_TS, pass.ancestors_stride, pass.length_T,
                        heads.biased ? pass.bias.at : nullptr, pass.bias.stride, pass.bias.columns / 2, pass.place_T,
                        pass.rows, heads.heads, heads.d_k, heads.d_v, heads.scale, run.scratch});
  });
}

void Program::attend_memory(int query, int out, Heads heads, long layer) {
  expect_heads(heads, layer);
  expect(width(query) == heads.keys() && width(out) == heads.values(), "shapes of attention do not fit");
  checks_.push_back([=](const Pass& pass) {
    const KeysAndValues& memory = of_layer(pass.memory, layer);
    expect(memory.columns == heads.keys() + heads.values(), "the memory has another size");
    expect_spans(pass.memory_first_T, pass.memory_length_T, pass.rows, memory.rows);
    expect(!pass.weight_THS || ((layer + 1) * heads.heads <= pass.weight_heads &&
                                most(pass.memory_length_T, pass.rows) <= pass.weight_columns),
           "there is no room for the weights");
  });
  calls_.push_back([=](const Run& run) {
    const Pass& pass = run.pass;
    const KeysAndValues& memory = of_layer(pass.memory, layer);
    float* weights = pass.weight_THS ? pass.weight_THS + layer * heads.heads * pass.weight_columns : nullptr;
    in_use().attention({read(run, query), memory.from(0), memory.from(heads.keys()), memory.halves, rows(run, out),
                        pass.memory_first_T, nullptr, 0, pass.memory_length_T, nullptr, 0, 0, nullptr,
                        pass.rows, heads.heads, heads.d_k, heads.d_v, heads.scale, run.scratch,
                        weights, pass.weight_heads * pass.weight_columns, pass.weight_columns});
  });
}

std::unique_ptr<Program::Rooms> Program::take(long count) {
  std::unique_ptr<Rooms> rooms;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      rooms = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (!rooms) rooms = std::make_unique<Rooms>();
  long size = LINE;
  for (long width : widths_) size += (count * width + LINE - 1) / LINE * LINE;
  if (static_cast<long>(rooms->memory.size()) < size) rooms->memory = std::vector<float>(static_cast<size_t>(size));
  const auto address = reinterpret_cast<uintptr_t>(rooms->memory.data());
  float* at = rooms->memory.data() + (-(address / sizeof(float)) % LINE);
  rooms->at.clear();
  for (long width : widths_) {
    rooms->at.push_back(at);
    at += (count * width + LINE - 1) / LINE * LINE;
  }
  return rooms;
}

void Program::run(const Pass& pass, int result, float* out_TD, long stride) {
  for (const auto& check : checks_) check(pass);
  std::unique_ptr<Rooms> rooms = take(pass.rows);
  const long longest = std::max(most(pass.length_T, pass.rows), most(pass.memory_length_T, pass.rows));
  std::vector<float> scratch(static_cast<size_t>(attention_scratch(longest)));
  long bytes = 0;
  for (long inner : quantised_) bytes = std::max(bytes, product_scratch(pass.rows, inner));
  std::vector<char> quantised(static_cast<size_t>(bytes));
  const Run now{pass, *rooms, scratch.data(), quantised.data()};
  for (const auto& call : calls_) call(now);
  for (long t = 0; t < pass.rows; t++)
    std::memcpy(out_TD + t * stride, rooms->at[static_cast<size_t>(result)] + t * width(result),
                static_cast<size_t>(width(result)) * sizeof(float));
  const std::lock_guard<std::mutex> lock(mutex_);
  free_.push_back(std::move(rooms));
}

}  // namespace regard
