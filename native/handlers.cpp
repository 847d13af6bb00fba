// The doors for XLA: choose the instruction set, share the chunks among threads, add up what they give.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernel.hpp"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

#define LINTRA_DECLARE(isa)                               \
  extern const Kernel<float>* const lintra_##isa##_f32;   \
  extern const Kernel<double>* const lintra_##isa##_f64;

LINTRA_DECLARE(base)
#if defined(LINTRA_X86_LEVELS)
LINTRA_DECLARE(v3)
LINTRA_DECLARE(v4)
#endif

namespace {

enum class Isa { base, v3, v4 };

// The best set this machine has, or a lower one that LINTRA_ISA names.
Isa choose_isa() {
  Isa best = Isa::base;
#if defined(LINTRA_X86_LEVELS)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) best = Isa::v3;
  if (best == Isa::v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd"))
    best = Isa::v4;
#endif
  if (const char* wish = std::getenv("LINTRA_ISA")) {
    if (!std::strcmp(wish, "base")) return Isa::base;
    if (!std::strcmp(wish, "v3")) return std::min(best, Isa::v3);
  }
  return best;
}

Isa isa() {
  static const Isa chosen = choose_isa();
  return chosen;
}

template <class T>
const Kernel<T>& kernel();

#if defined(LINTRA_X86_LEVELS)
#define LINTRA_CHOOSE(bits) \
  *(isa() == Isa::v4 ? lintra_v4_##bits : isa() == Isa::v3 ? lintra_v3_##bits : lintra_base_##bits)
#else
#define LINTRA_CHOOSE(bits) *lintra_base_##bits
#endif
template <>
const Kernel<float>& kernel() { return LINTRA_CHOOSE(f32); }
template <>
const Kernel<double>& kernel() { return LINTRA_CHOOSE(f64); }

std::atomic<std::int64_t> thread_limit{std::numeric_limits<std::int64_t>::max()};

// Runs work(index) for every index below count, on the pool and on the calling thread, and waits for all.
// The caller takes part, so that a pool without a free thread cannot stall it.
template <class Work>
void share(ffi::ThreadPool& pool, std::int64_t count, const Work& work) {
  struct State {
    std::atomic<std::int64_t> next{0}, done{0};
    std::mutex mutex;
    std::condition_variable finished;
  };
  auto state = std::make_shared<State>();
  auto run = [state, count, &work] {  // `work` is touched only while an index is left, so while the caller waits
    for (std::int64_t index; (index = state->next.fetch_add(1)) < count;) {
      work(index);
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
}

// Scratch memory of the calling thread, kept from call to call.
void* scratch(std::size_t bytes) {
  thread_local std::vector<unsigned char> memory;
  if (memory.size() < bytes) memory.resize(bytes);
  return memory.data();
}

struct Sizes {
  std::int64_t sets, batch, chunks;  // sets of parameters, sequences for each, chunks of sequences
  int layers, heads, size;
};

// Parameters are (sets, layers, ...), the Gram matrices (sets or 1, batch, size, size).
template <class Parameters, class Gram>
Sizes sizes_of(const Parameters& parameters, const Gram& gram, bool full) {
  const auto p = parameters.dimensions(), g = gram.dimensions();
  return {p[0], g[1], (g[1] + kChunk - 1) / kChunk, (int)p[1], full ? (int)p[2] : 1, (int)g[2]};
}

template <class T, class Gram>
const T* grams_of(const Gram& gram, const Sizes& s, std::int64_t set, std::int64_t first) {
  const std::int64_t offset = gram.dimensions()[0] == 1 ? first : set * s.batch + first;
  return gram.typed_data() + offset * s.size * s.size;
}

// Runs work(set, chunk, first sequence, how many) for all chunks of all sets.
template <class Work>
void share_chunks(ffi::ThreadPool& pool, const Sizes& s, const Work& work) {
  share(pool, s.sets * s.chunks, [&](std::int64_t index) {
    const std::int64_t set = index / s.chunks, chunk = index % s.chunks, first = chunk * kChunk;
    work(set, chunk, first, std::min(kChunk, s.batch - first));
  });
}

template <ffi::DataType D, class T>
ffi::Error full_forward(ffi::ThreadPool pool, ffi::Buffer<D> p, ffi::Buffer<D> q, ffi::Buffer<D> gram,
                        ffi::ResultBuffer<D> weights) {
  const Sizes s = sizes_of(p, gram, true);
  const std::int64_t entries = (std::int64_t)s.layers * s.heads * s.size * s.size;
  share_chunks(pool, s, [&](std::int64_t set, std::int64_t, std::int64_t first, std::int64_t count) {
    kernel<T>().full_forward(s.layers, s.heads, s.size, count, p.typed_data() + set * entries,
                             q.typed_data() + set * entries, grams_of<T>(gram, s, set, first),
                             weights->typed_data() + (set * s.batch + first) * (s.size - 1),
                             scratch(sizeof(T) * kernel<T>().full_scratch(s.layers, s.heads, s.size)));
  });
  return ffi::Error::Success();
}

template <ffi::DataType D, class T>
ffi::Error full_states(ffi::ThreadPool pool, ffi::Buffer<D> p, ffi::Buffer<D> q, ffi::Buffer<D> gram,
                       ffi::ResultBuffer<D> states) {
  const Sizes s = sizes_of(p, gram, true);
  const std::int64_t entries = (std::int64_t)s.layers * s.heads * s.size * s.size;
  share_chunks(pool, s, [&](std::int64_t set, std::int64_t, std::int64_t first, std::int64_t count) {
    kernel<T>().full_states(s.layers, s.heads, s.size, count, p.typed_data() + set * entries,
                            q.typed_data() + set * entries, grams_of<T>(gram, s, set, first),
                            states->typed_data() + (set * s.batch + first) * s.layers * s.size * s.size,
                            scratch(sizeof(T) * kernel<T>().full_scratch(s.layers, s.heads, s.size)));
  });
  return ffi::Error::Success();
}

// Slopes in p and q: work(set, first sequence, how many, p slope, q slope, scratch) gives those of a chunk.
template <class T, class P, class Work>
void sum_of_chunks(ffi::ThreadPool& pool, const Sizes& s, P& p_slope, P& q_slope, const Work& work) {
  const std::int64_t entries = (std::int64_t)s.layers * s.heads * s.size * s.size;
  std::vector<T> parts(2 * s.sets * s.chunks * entries);
  share_chunks(pool, s, [&](std::int64_t set, std::int64_t chunk, std::int64_t first, std::int64_t count) {
    T* part = parts.data() + 2 * (set * s.chunks + chunk) * entries;
    work(set, first, count, part, part + entries,
         scratch(sizeof(T) * kernel<T>().full_scratch(s.layers, s.heads, s.size)));
  });
  std::fill_n(p_slope->typed_data(), s.sets * entries, T(0));
  std::fill_n(q_slope->typed_data(), s.sets * entries, T(0));
  for (std::int64_t set = 0; set < s.sets; ++set)
    for (std::int64_t chunk = 0; chunk < s.chunks; ++chunk) {
      const T* part = parts.data() + 2 * (set * s.chunks + chunk) * entries;
      for (std::int64_t i = 0; i < entries; ++i) {
        p_slope->typed_data()[set * entries + i] += part[i];
        q_slope->typed_data()[set * entries + i] += part[entries + i];
      }
    }
}

template <ffi::DataType D, class T>
ffi::Error full_reverse(ffi::ThreadPool pool, ffi::Buffer<D> p, ffi::Buffer<D> q, ffi::Buffer<D> gram,
                        ffi::Buffer<D> slope, ffi::ResultBuffer<D> p_slope, ffi::ResultBuffer<D> q_slope) {
  const Sizes s = sizes_of(p, gram, true);
  const std::int64_t entries = (std::int64_t)s.layers * s.heads * s.size * s.size;
  sum_of_chunks<T>(pool, s, p_slope, q_slope,
                   [&](std::int64_t set, std::int64_t first, std::int64_t count, T* p_part, T* q_part, void* memory) {
                     kernel<T>().full_reverse(s.layers, s.heads, s.size, count, p.typed_data() + set * entries,
                                              q.typed_data() + set * entries, grams_of<T>(gram, s, set, first),
                                              slope.typed_data() + (set * s.batch + first) * (s.size - 1), p_part,
                                              q_part, memory);
                   });
  return ffi::Error::Success();
}

// Targets are shared by the sets where the Gram matrices are.
template <class T, class Target>
const T* targets_of(const Target& target, const Sizes& s, std::int64_t set, std::int64_t first) {
  const std::int64_t offset = target.dimensions()[0] == 1 ? first : set * s.batch + first;
  return target.typed_data() + offset * (s.size - 1);
}

template <ffi::DataType D, class T>
ffi::Error full_descent(ffi::ThreadPool pool, ffi::Buffer<D> p, ffi::Buffer<D> q, ffi::Buffer<D> gram,
                        ffi::Buffer<D> target, ffi::Buffer<D> clip, ffi::ResultBuffer<D> losses,
                        ffi::ResultBuffer<D> p_slope, ffi::ResultBuffer<D> q_slope) {
  const Sizes s = sizes_of(p, gram, true);
  const std::int64_t entries = (std::int64_t)s.layers * s.heads * s.size * s.size;
  sum_of_chunks<T>(pool, s, p_slope, q_slope,
                   [&](std::int64_t set, std::int64_t first, std::int64_t count, T* p_part, T* q_part, void* memory) {
                     kernel<T>().full_descent(s.layers, s.heads, s.size, count, p.typed_data() + set * entries,
                                              q.typed_data() + set * entries, grams_of<T>(gram, s, set, first),
                                              targets_of<T>(target, s, set, first), clip.typed_data()[set],
                                              losses->typed_data() + set * s.batch + first, p_part, q_part, memory);
                   });
  return ffi::Error::Success();
}

template <ffi::DataType D, class T>
ffi::Error diagonal_forward(ffi::ThreadPool pool, ffi::Buffer<D> omega, ffi::Buffer<D> gram,
                            ffi::ResultBuffer<D> weights) {
  const Sizes s = sizes_of(omega, gram, false);
  share_chunks(pool, s, [&](std::int64_t set, std::int64_t, std::int64_t first, std::int64_t count) {
    kernel<T>().diagonal_forward(s.layers, s.size, count, omega.typed_data() + set * 4 * s.layers,
                                 grams_of<T>(gram, s, set, first),
                                 weights->typed_data() + (set * s.batch + first) * (s.size - 1),
                                 scratch(sizeof(T) * kernel<T>().diagonal_scratch(s.layers, s.size)));
  });
  return ffi::Error::Success();
}

template <ffi::DataType D, class T>
ffi::Error diagonal_reverse(ffi::ThreadPool pool, ffi::Buffer<D> omega, ffi::Buffer<D> gram, ffi::Buffer<D> slope,
                            ffi::ResultBuffer<D> omega_slope) {
  const Sizes s = sizes_of(omega, gram, false);
  share_chunks(pool, s, [&](std::int64_t set, std::int64_t, std::int64_t first, std::int64_t count) {
    kernel<T>().diagonal_reverse(s.layers, s.size, count, omega.typed_data() + set * 4 * s.layers,
                                 grams_of<T>(gram, s, set, first),
                                 slope.typed_data() + (set * s.batch + first) * (s.size - 1),
                                 omega_slope->typed_data() + (set * s.batch + first) * 4 * s.layers,
                                 scratch(sizeof(T) * kernel<T>().diagonal_scratch(s.layers, s.size)));
  });
  return ffi::Error::Success();
}

template <ffi::DataType D, class T>
ffi::Error diagonal_descent(ffi::ThreadPool pool, ffi::Buffer<D> omega, ffi::Buffer<D> gram, ffi::Buffer<D> target,
                            ffi::Buffer<D> clip, ffi::ResultBuffer<D> losses, ffi::ResultBuffer<D> omega_slope) {
  const Sizes s = sizes_of(omega, gram, false);
  share_chunks(pool, s, [&](std::int64_t set, std::int64_t, std::int64_t first, std::int64_t count) {
    kernel<T>().diagonal_descent(s.layers, s.size, count, omega.typed_data() + set * 4 * s.layers,
                                 grams_of<T>(gram, s, set, first), targets_of<T>(target, s, set, first),
                                 clip.typed_data()[set], losses->typed_data() + set * s.batch + first,
                                 omega_slope->typed_data() + (set * s.batch + first) * 4 * s.layers,
                                 scratch(sizeof(T) * kernel<T>().diagonal_scratch(s.layers, s.size)));
  });
  return ffi::Error::Success();
}

// Rates are (sets, layers, 2); eigenvalues and masses (sets or 1, count), noise_var (sets).
template <ffi::DataType D, class T>
ffi::Error polynomial_descent(ffi::ThreadPool pool, ffi::Buffer<D> rates, ffi::Buffer<D> eigenvalues,
                              ffi::Buffer<D> masses, ffi::Buffer<D> noise_var, ffi::ResultBuffer<D> loss,
                              ffi::ResultBuffer<D> slope) {
  const std::int64_t sets = rates.dimensions()[0], count = eigenvalues.dimensions()[1];
  const int layers = (int)rates.dimensions()[1], entries = 2 * layers;
  const std::int64_t chunks = (count + kEigenvalues - 1) / kEigenvalues;
  std::vector<T> parts(sets * chunks * (1 + entries));  // loss and slope of every chunk
  share(pool, sets * chunks, [&](std::int64_t index) {
    const std::int64_t set = index / chunks, first = index % chunks * kEigenvalues;
    const auto data = [&](const ffi::Buffer<D>& all) {
      return all.typed_data() + (all.dimensions()[0] == 1 ? 0 : set * count) + first;
    };
    T* part = parts.data() + index * (1 + entries);
    kernel<T>().polynomial_descent(layers, std::min(kEigenvalues, count - first), rates.typed_data() + set * entries,
                                   data(eigenvalues), data(masses), noise_var.typed_data()[set], part, part + 1,
                                   scratch(sizeof(T) * kernel<T>().polynomial_scratch(layers)));
  });
  std::fill_n(loss->typed_data(), sets, T(0));
  std::fill_n(slope->typed_data(), sets * entries, T(0));
  for (std::int64_t index = 0; index < sets * chunks; ++index) {
    const T* part = parts.data() + index * (1 + entries);
    loss->typed_data()[index / chunks] += part[0];
    for (int i = 0; i < entries; ++i) slope->typed_data()[index / chunks * entries + i] += part[1 + i];
  }
  return ffi::Error::Success();
}

}  // namespace

extern "C" const char* lintra_isa() {
#if defined(LINTRA_X86_LEVELS)
  return isa() == Isa::v4 ? "v4" : isa() == Isa::v3 ? "v3" : "base";
#else
  return "base";
#endif
}

extern "C" void lintra_limit_threads(std::int64_t count) { thread_limit = count; }

#define ARG(D) .Arg<ffi::Buffer<ffi::D>>()
#define RET(D) .Ret<ffi::Buffer<ffi::D>>()
#define BIND ffi::Ffi::Bind().Ctx<ffi::ThreadPool>()
#define LINTRA_DOORS(D, T, bits)                                                                                      \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(lintra_full_forward_##bits, (full_forward<ffi::D, T>),                                \
                                BIND ARG(D) ARG(D) ARG(D) RET(D));                                                    \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(lintra_full_states_##bits, (full_states<ffi::D, T>),                                  \
                                BIND ARG(D) ARG(D) ARG(D) RET(D));                                                    \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(lintra_full_reverse_##bits, (full_reverse<ffi::D, T>),                                \
                                BIND ARG(D) ARG(D) ARG(D) ARG(D) RET(D) RET(D));                                      \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(lintra_diagonal_forward_##bits, (diagonal_forward<ffi::D, T>),                        \
                                BIND ARG(D) ARG(D) RET(D));                                                           \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(lintra_diagonal_reverse_##bits, (diagonal_reverse<ffi::D, T>),                        \
                                BIND ARG(D) ARG(D) ARG(D) RET(D));                                                    \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(lintra_full_descent_##bits, (full_descent<ffi::D, T>),                                \
                                BIND ARG(D) ARG(D) ARG(D) ARG(D) ARG(D) RET(D) RET(D) RET(D));                        \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(lintra_diagonal_descent_##bits, (diagonal_descent<ffi::D, T>),                        \
                                BIND ARG(D) ARG(D) ARG(D) ARG(D) RET(D) RET(D));                                      \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(lintra_polynomial_descent_##bits, (polynomial_descent<ffi::D, T>),                    \
                                BIND ARG(D) ARG(D) ARG(D) ARG(D) RET(D) RET(D));

LINTRA_DOORS(F32, float, f32)
LINTRA_DOORS(F64, double, f64)
