#include "team.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace regard {

namespace {

constexpr std::chrono::microseconds AWAKE{300};  // that a helper waits for the next call before it sleeps
constexpr int LOOKS = 64;                        // at the state, between two looks at the clock
constexpr long TRIAL = 128;                      // calls by the caller alone, and as many by the team, to compare
constexpr long HOLD = 32 * TRIAL;                // calls by the faster, before they are compared again

void relax() {
#if defined __x86_64__
  __builtin_ia32_pause();
#elif defined __aarch64__
  asm volatile("yield");
#else
  std::this_thread::yield();
#endif
}

void alone(long parts, void (*part)(const void*, long), const void* about) {
  for (long n = 0; n < parts; n++) part(about, n);
}

using Clock = std::chrono::steady_clock;

// Whether the team is faster than the caller alone, found by trying both now and then: with other programs on the cores
// a helper is late, or takes the caller's own core. Only the caller that has the team asks.
class Choice {
 public:
  bool together() {
    const long call = calls_++;
    if (call == 0) alone_ = together_ = Rate{};
    if (call == TRIAL + HOLD) calls_ = 0;
    if (call < 2 * TRIAL) return call >= TRIAL;
    return together_.seconds * alone_.work < alone_.seconds * together_.work;
  }
  bool measures() const { return calls_ <= 2 * TRIAL; }
  void took(bool together, double seconds, double work) {
    Rate& rate = together ? together_ : alone_;
    rate.seconds += seconds;
    rate.work += work;
  }

 private:
  struct Rate {
    double seconds = 0.0, work = 0.0;
  };
  Rate together_, alone_;
  long calls_ = 0;
};

// Never destroyed, since a call may be in it; ended, it has the caller alone.
class Team {
 public:
  explicit Team(long helpers) {
    sigset_t all, before;  // signals are for the threads of the program
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      while (count() <= helpers) helpers_.emplace_back([this] { help(); });
    } catch (const std::system_error&) {  // the system allows no more
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  long count() const { return static_cast<long>(helpers_.size()) + 1; }

  void end() {
    {
      const std::lock_guard<std::mutex> lock(sleep_);
      ended_.store(true);
    }
    woken_.notify_all();
    for (std::thread& helper : helpers_) helper.join();
  }

  void divide(long parts, double work, void (*part)(const void*, long), const void* about) {
    const std::unique_lock<std::mutex> one_call(one_call_, std::try_to_lock);
    if (!one_call.owns_lock()) return alone(parts, part, about);
    const bool together = choice_.together();
    const auto begun = Clock::now();
    if (together) this->together(parts, part, about);
    else alone(parts, part, about);
    if (choice_.measures()) choice_.took(together, std::chrono::duration<double>(Clock::now() - begun).count(), work);
  }

 private:
  // Does a part that nobody has taken. Only then are part_ and about_ those of the call: it waits for what is taken.
  bool take() {
    uint64_t state = state_.load(std::memory_order_acquire);
    do {
      if (static_cast<uint32_t>(state) == 0) return false;
    } while (!state_.compare_exchange_weak(state, state - 1, std::memory_order_acq_rel));
    part_(about_, static_cast<long>(static_cast<uint32_t>(state)) - 1);
    done_.fetch_add(1, std::memory_order_release);
    return true;
  }

  void together(long parts, void (*part)(const void*, long), const void* about) {
    part_ = part;
    about_ = about;
    done_.store(0, std::memory_order_relaxed);
    const uint64_t call = (state_.load(std::memory_order_relaxed) >> 32) + 1;
    state_.store(call << 32 | static_cast<uint64_t>(parts));
    if (asleep_.load() > 0) {
      { const std::lock_guard<std::mutex> lock(sleep_); }
      woken_.notify_all();
    }
    while (take()) {}
    for (int looks = 1; done_.load(std::memory_order_acquire) != parts; looks++)
      if (looks % LOOKS == 0) std::this_thread::yield();
      else relax();
  }

  void help() {
    while (!ended_.load()) {
      auto until = Clock::now() + AWAKE;
      while (Clock::now() < until)
        for (int look = 0; look < LOOKS; look++) {
          if (take()) until = Clock::now() + AWAKE;
          relax();
        }
      std::unique_lock<std::mutex> lock(sleep_);
      asleep_.fetch_add(1);
      woken_.wait(lock, [this] { return static_cast<uint32_t>(state_.load()) != 0 || ended_.load(); });
      asleep_.fetch_sub(1);
    }
  }

  std::mutex one_call_, sleep_;
  std::condition_variable woken_;
  std::atomic<bool> ended_{false};
  std::atomic<long> asleep_{0}, done_{0};
  Choice choice_;
  std::atomic<uint64_t> state_{0};  // number of the call, and how many of its parts nobody has taken
  void (*part_)(const void*, long) = nullptr;
  const void* about_ = nullptr;
  std::vector<std::thread> helpers_;
};

std::atomic<Team*>& team() {
  static std::atomic<Team*> team{[] {
    pthread_atfork(nullptr, nullptr, [] { regard::team().store(nullptr); });
    return nullptr;
  }()};
  return team;
}

}  // namespace

void set_threads(long count) {
  if (count == threads()) return;
  Team* before = team().exchange(count > 1 ? new Team(count - 1) : nullptr);
  if (before) before->end();
}

long threads() {
  const Team* now = team().load(std::memory_order_acquire);
  return now ? now->count() : 1;
}

void divide(long parts, double work, void (*part)(const void*, long), const void* about) {
  Team* now = team().load(std::memory_order_acquire);
  if (now && parts > 1) now->divide(parts, work, part, about);
  else alone(parts, part, about);
}

}  // namespace regard
