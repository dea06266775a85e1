// A pass through a stack of layers: calls of kernels over rooms, recorded once and run for every batch of rows, so that
// a step of a small model costs one call from Python and not a hundred.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "kernels.h"

namespace regard {

struct KeysAndValues {  // of one layer, side by side in a row for each token; floats, or bf16
  void* at = nullptr;
  bool halves = false;
  long rows = 0, columns = 0, stride = 0;
  KeptRows from(long column) const {
    return {static_cast<const char*>(at) + column * (halves ? 2 : 4), stride};
  }
};
struct Table {
  const float* at = nullptr;
  long rows = 0, columns = 0, stride = 0;
};

// What a run knows of its rows, T of them. What a program does not use may be missing.
struct Pass {
  long rows = 0;
  const int64_t* id_T = nullptr;
  const int32_t *place_T = nullptr, *length_T = nullptr;  // its place, and how many keys it has
  const int32_t* first_T = nullptr;                       // where its sentence begins among the rows
  const int32_t* slot_T = nullptr;                        // where its own key and value go in the past
  const int32_t* ancestors_TS = nullptr;                  // where those of all its tokens are
  long ancestors_columns = 0, ancestors_stride = 0;
  const int32_t *memory_first_T = nullptr, *memory_length_T = nullptr;
  std::vector<KeysAndValues> past, memory;  // of each layer
  Table positions, added, bias, cos, sin;  // added: a row for each token
  float* weight_THS = nullptr;  // null, or where the weights on the memory go: heads of all layers, 0 behind a sentence
  long weight_heads = 0, weight_columns = 0;
};

struct Heads {
  long heads, d_k, d_v;
  float scale;
  bool biased;
  long keys() const { return heads * d_k; }
  long values() const { return heads * d_v; }
};

// A matrix or vector of a model; `owner` keeps it in memory.
struct Weight {
  const float* at = nullptr;
  std::shared_ptr<void> owner;
};

class Program {
 public:
  int room(long width);  // room for a row of numbers for each token; its number
  void embed(Table table, std::shared_ptr<void> owner, float scale, int out);
  void product(int x, Matrix matrix, std::shared_ptr<void> owner, int out, Activation activation);
  void gate(int x, int out, Activation activation);
  void norm(int x, int y, int sum, int out, Weight gain, Weight bias, NormKind kind, long groups, float epsilon);
  void rotate(int x, long heads, long size);
  void attend(int projected, int out, Heads heads);                   // to the sentence among the rows
  void attend_past(int projected, int out, Heads heads, long layer);  // to the row's tokens, the new one too
  void recur(int projected, int out, long layer);  // from the state of the row's token before, which the past holds
  void attend_memory(int query, int out, Heads heads, long layer);    // to the sentence in the memory
  void run(const Pass& pass, int result, float* out_TD, long stride);
  long width(int room) const;

 private:
  struct Rooms {  // of one run; several threads may run at once
    std::vector<float> memory;
    std::vector<float*> at;
  };
  struct Run {
    const Pass& pass;
    const Rooms& rooms;
    float* scratch;   // for attention
    char* quantised;  // for products of bytes
  };
  void check(const Pass& pass) const;
  Rows rows(const Run& run, int room) const { return {run.rooms.at[static_cast<size_t>(room)], width(room)}; }
  ConstRows read(const Run& run, int room, long begin = 0) const {
    return {run.rooms.at[static_cast<size_t>(room)] + begin, width(room)};
  }
  std::unique_ptr<Rooms> take(long rows);

  std::vector<long> widths_;
  std::set<long> quantised_;  // entries of the rows of products of bytes
  std::vector<std::function<void(const Run&)>> calls_;
  std::vector<std::function<void(const Pass&)>> checks_;  // what must hold of a pass, for each kind of call that is in it
  std::mutex mutex_;
  std::vector<std::unique_ptr<Rooms>> free_;
};

}  // namespace regard
