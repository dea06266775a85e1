// Threads that compute one call together, so that one sentence is done sooner.
//
// A call is divided into parts. Whoever is free takes the next: a thread that has no core at the moment takes none and
// delays nobody, and the caller alone would do them all. Between calls the others wait awake for a moment, then asleep.
#pragma once

namespace regard {

void set_threads(long count);  // the caller among them; 1 to MOST_THREADS
long threads();
constexpr long MOST_THREADS = 8;  // more wait for the same memory

// part(about, 0 ... parts - 1), each once, in any order and at the same time; `work` is what time is proportional to.
// While the team works for one thread, another that comes is served by itself. After fork() the child has one thread.
void divide(long parts, double work, void (*part)(const void* about, long number), const void* about);

}  // namespace regard
