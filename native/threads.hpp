// Work shared among XLA's threads, and the scratch memory of each.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "xla/ffi/api/ffi.h"

inline std::atomic<std::int64_t> thread_limit{std::numeric_limits<std::int64_t>::max()};

// Runs work(index) for every index below count, on the pool and on the calling thread, and waits for all.
// The caller takes part, so that a pool without a free thread cannot stall it. Lack of memory on any thread is thrown
// on the caller's, after all have ended.
template <class Work>
void share(xla::ffi::ThreadPool& pool, std::int64_t count, const Work& work) {
  struct State {
    std::atomic<std::int64_t> next{0}, done{0};
    std::atomic<bool> out_of_memory{false};
    std::mutex mutex;
    std::condition_variable finished;
  };
  auto state = std::make_shared<State>();
  auto run = [state, count, &work] {  // `work` is touched only while an index is left, so while the caller waits
    for (std::int64_t index; (index = state->next.fetch_add(1)) < count;) {
      try {
        work(index);
      } catch (const std::bad_alloc&) {
        state->out_of_memory = true;
      }
      if (state->done.fetch_add(1) + 1 == count) {
        std::lock_guard<std::mutex> lock(state->mutex);
        state->finished.notify_all();
      }
    }
  };
  const std::int64_t helpers = std::min({(std::int64_t)pool.num_threads(), thread_limit.load(), count}) - 1;
  for (std::int64_t i = 0; i < helpers; ++i) {
    auto copy = run;
    pool.Schedule(std::move(copy));
  }
  run();
  std::unique_lock<std::mutex> lock(state->mutex);
  state->finished.wait(lock, [&] { return state->done.load() == count; });
  if (state->out_of_memory) throw std::bad_alloc();
}

// Scratch memory of the calling thread, kept from call to call.
inline void* scratch(std::size_t bytes) {
  thread_local std::vector<unsigned char> memory;
  if (memory.size() < bytes) memory.resize(bytes);
  return memory.data();
}
