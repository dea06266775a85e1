// Steps of a search in which nothing ends, many at once: with few rows a step takes microseconds, and Python as many.
//
// They are those of decoding/strategies.py, bit by bit: the `width` best continuations of each sentence survive, or with
// a width of one the most probable token. The steps end before the first choice that has an end of a sentence in it, or
// lacks candidates, has a score that is not a number, or a row below its bar: that choice is Python's, by the same scores.
#pragma once

#include "program.h"

namespace regard {

// A row of a table for each row of the search.
template <class T> struct Column {
  T* at;
  long stride;  // entries of a row
};

// Rows of the search, those of a sentence side by side; there is room for `most` of them. Everything is changed in place.
struct SearchRows {
  long rows, most;
  Column<int64_t> token, sentence, origin;  // origin: the row, before the steps, that this one continues
  Column<int32_t> length, memory_first, memory_length, ancestors;
  Column<double> log_probability, log_probabilities;  // of all its tokens; of those of these steps
  Column<double> bar, penalty;  // above the bar log_probability / penalty must stay
  Column<int64_t> tokens;                             // of these steps
};

struct Search {
  Program& program;
  Pass pass;  // without what SearchRows has
  int result;
  Matrix screen, exact;  // of the output, as Argmax has them
  const uint8_t* without_V;
  const int32_t* names_V;  // null, or the tokens whose scores the columns of the output are
  long pieces, width, steps;  // steps that may be taken
  int64_t end;                // token that ends a sentence
  bool scored;                // log-probabilities are wanted
  const int32_t* slots;       // where new keys and values go: most rows, for each step and one more
  float* hidden_RD;           // of the last pass, whose tokens' choice is not made yet
};
struct Searched {
  long steps, slots;  // taken, used
};
Searched search(const Search&, SearchRows&);

}  // namespace regard
