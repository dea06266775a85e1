#include "search.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "dispatch.h"

namespace regard {

namespace {

struct Candidate {
  long row;
  int64_t token;
  double log_probability, total;  // of the token; of the row with it
};

// Scores of the next token, and the choice among them.
class Chooser {
 public:
  Chooser(const Search& search, const SearchRows& rows)
      : search_(search), rows_(rows), k_(std::min(search.width, search.pieces)),
        together_(vocabulary_together(search.pieces)),
        ids_(size(rows.most * k_)), score_(size(rows.most * k_)), log_sum_(size(rows.most)),
        scratch_(size(std::max(vocabulary_scratch(rows.most, together_),
                               argmax_scratch(rows.most, search.pieces, together_)))),
        quantised_(size(quantised_scratch(rows.most, search.exact.inner))) {}

  // False where the choice is for Python.
  bool choose(std::vector<Candidate>& chosen) {
    chosen.clear();
    if (search_.width == 1 && !search_.scored) return choose_largest(chosen);
    in_use().vocabulary({scores(search_.exact), ids_.data(), score_.data(), log_sum_.data(), k_});
    for (long begin = 0, end; begin < rows_.rows; begin = end) {
      end = begin + 1;
      while (end < rows_.rows && rows_.sentence.at[end] == rows_.sentence.at[begin]) end++;
      if (!choose_of_sentence(begin, end, chosen)) return false;
    }
    return true;
  }

 private:
  static size_t size(long count) { return static_cast<size_t>(count); }
  int32_t name(int32_t column) const { return search_.names_V && column >= 0 ? search_.names_V[column] : column; }
  Scores scores(const Matrix& matrix) {
    const long columns = search_.program.width(search_.result);
    return {{search_.hidden_RD, columns}, matrix, search_.without_V, rows_.rows, search_.pieces, together_,
            scratch_.data(), quantised_.data()};
  }

  bool choose_largest(std::vector<Candidate>& chosen) {
    in_use().argmax({scores(search_.screen), search_.exact, ids_.data()});
    for (long row = 0; row < rows_.rows; row++) {
      const int32_t id = name(ids_[size(row)]);
      if (id < 0 || id == search_.end) return false;
      chosen.push_back({row, id, NAN, NAN});
    }
    return true;
  }

  // The best of rows begin to end - 1; of equal ones that of the earlier row, in which ids are in order.
  bool choose_of_sentence(long begin, long end, std::vector<Candidate>& chosen) {
    const auto first = static_cast<std::ptrdiff_t>(chosen.size());
    for (long row = begin; row < end; row++)
      for (long place = row * k_; place < (row + 1) * k_; place++) {
        const double found = static_cast<double>(score_[size(place)]) - log_sum_[size(row)];
        if (!std::isfinite(found)) return false;
        const Candidate candidate{row, name(ids_[size(place)]), found, rows_.log_probability.at[row] + found};
        auto behind = chosen.end();
        while (behind - chosen.begin() > first && (behind - 1)->total < candidate.total) --behind;
        if (behind - chosen.begin() < first + search_.width) chosen.insert(behind, candidate);
        if (static_cast<std::ptrdiff_t>(chosen.size()) > first + search_.width) chosen.pop_back();
      }
    for (auto one = chosen.begin() + first; one != chosen.end(); ++one)
      if (one->token == search_.end || !(one->total / rows_.penalty.at[begin] > rows_.bar.at[begin])) return false;
    return true;
  }

  const Search& search_;
  const SearchRows& rows_;
  long k_, together_;
  std::vector<int32_t> ids_;
  std::vector<float> score_;
  std::vector<double> log_sum_;
  std::vector<float> scratch_;
  std::vector<char> quantised_;
};

// Each row becomes what its candidate's row was.
template <class T> void reorder(Column<T> column, long rows, const std::vector<Candidate>& chosen) {
  const std::vector<T> before(column.at, column.at + rows * column.stride);
  for (size_t row = 0; row < chosen.size(); row++)
    std::copy_n(&before[static_cast<size_t>(chosen[row].row * column.stride)], column.stride,
                column.at + static_cast<long>(row) * column.stride);
}

void take(SearchRows& r, long step, const std::vector<Candidate>& chosen, bool in_order) {
  if (!in_order) {
    const auto all = [&](auto... columns) { (reorder(columns, r.rows, chosen), ...); };
    all(r.sentence, r.origin, r.length, r.memory_first, r.memory_length, r.ancestors, r.log_probabilities, r.tokens);
    all(r.bar, r.penalty);
    r.rows = static_cast<long>(chosen.size());
  }
  for (long row = 0; row < r.rows; row++) {
    const Candidate& one = chosen[static_cast<size_t>(row)];
    r.token.at[row] = r.tokens.at[row * r.tokens.stride + step] = one.token;
    r.log_probability.at[row] = one.total;
    r.log_probabilities.at[row * r.log_probabilities.stride + step] = one.log_probability;
  }
}

}  // namespace

Searched search(const Search& search, SearchRows& r) {
  Pass pass = search.pass;
  Chooser chooser(search, r);
  std::vector<int32_t> place_R(static_cast<size_t>(r.most));
  std::vector<Candidate> chosen;
  pass.id_T = r.token.at;
  pass.place_T = place_R.data();
  pass.length_T = r.length.at;
  pass.ancestors_TS = r.ancestors.at;
  pass.ancestors_columns = pass.ancestors_stride = r.ancestors.stride;
  pass.memory_first_T = r.memory_first.at;
  pass.memory_length_T = r.memory_length.at;
  Searched done{0, 0};
  for (;; done.steps++) {
    pass.rows = r.rows;
    pass.slot_T = search.slots + done.slots;
    for (long row = 0; row < r.rows; row++) {
      const int32_t place = place_R[static_cast<size_t>(row)] = r.length.at[row]++;
      if (place < 0 || place >= r.ancestors.stride) throw std::invalid_argument("a row is too long");
      r.ancestors.at[row * r.ancestors.stride + place] = search.slots[done.slots++];
    }
    search.program.run(pass, search.result, search.hidden_RD, search.program.width(search.result));
    if (done.steps == search.steps || !chooser.choose(chosen)) return done;
    const bool in_order = search.width == 1;
    const long rows = static_cast<long>(chosen.size());
    if (in_order ? rows != r.rows : rows > r.most) throw std::invalid_argument("rows of a sentence are not side by side");
    take(r, done.steps, chosen, in_order);
  }
}

}  // namespace regard
