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

[[maybe_unused]] Isa isa() {  // elsewhere than on x86 there is nothing to choose
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
  std::int64_t entries;              // numbers in a set of parameters
  Shape shape;
};

// Parameters are (sets, 2, layers, heads, size, size) for FULL and (sets, layers, 2, 2) for DIAG; the Gram matrices
// (sets or 1, batch, size, size).
template <ffi::DataType D>
Sizes sizes_of(const ffi::Buffer<D>& parameters, const ffi::Buffer<D>& gram) {
  const auto p = parameters.dimensions(), g = gram.dimensions();
  const bool full = p.size() == 6;
  const std::int64_t sets = p[0], entries = sets ? (std::int64_t)parameters.element_count() / sets : 0;
  return {sets, g[1], (g[1] + kChunk - 1) / kChunk, entries,
          {(int)(full ? p[2] : p[1]), full ? (int)p[3] : 1, (int)g[2]}};
}

// One chunk of one set, and the places of its data
template <class T>
struct Chunk {
  const Sizes& sizes;
  std::int64_t index, set, first, count;

  // Data that all sets share has a first axis of 1
  template <class Buffer>
  const T* data(const Buffer& all, std::int64_t numbers) const {
    return all.typed_data() + (all.dimensions()[0] == 1 ? first : set * sizes.batch + first) * numbers;
  }
  template <class Result>
  T* place(Result& all, std::int64_t numbers) const {
    return all->typed_data() + (set * sizes.batch + first) * numbers;
  }
  template <class Buffer>
  const T* parameters(const Buffer& all) const {
    return all.typed_data() + set * sizes.entries;
  }
};

// Runs work(chunk) for all chunks of all sets.
template <class T, class Work>
void share_chunks(ffi::ThreadPool& pool, const Sizes& s, const Work& work) {
  share(pool, s.sets * s.chunks, [&](std::int64_t index) {
    const std::int64_t first = index % s.chunks * kChunk;
    work(Chunk<T>{s, index, index / s.chunks, first, std::min(kChunk, s.batch - first)});
  });
}

template <class T>
using Member = Family<T> Kernel<T>::*;

template <class T>
void* scratch_of(const Family<T>& family, Shape shape) {
  return scratch(sizeof(T) * family.scratch(shape));
}

template <ffi::DataType D, class T, Member<T> member>
ffi::Error forward(ffi::ThreadPool pool, ffi::Buffer<D> parameters, ffi::Buffer<D> gram,
                   ffi::ResultBuffer<D> weights) {
  const Sizes s = sizes_of(parameters, gram);
  const auto& family = kernel<T>().*member;
  const int size = s.shape.size;
  share_chunks<T>(pool, s, [&](const Chunk<T>& chunk) {
    family.forward(s.shape, chunk.count, chunk.parameters(parameters), chunk.data(gram, size * size),
                   chunk.place(weights, size - 1), scratch_of(family, s.shape));
  });
  return ffi::Error::Success();
}

template <ffi::DataType D, class T>
ffi::Error full_states(ffi::ThreadPool pool, ffi::Buffer<D> parameters, ffi::Buffer<D> gram,
                       ffi::ResultBuffer<D> states) {
  const Sizes s = sizes_of(parameters, gram);
  const int square = s.shape.size * s.shape.size;
  share_chunks<T>(pool, s, [&](const Chunk<T>& chunk) {
    kernel<T>().full_states(s.shape, chunk.count, chunk.parameters(parameters), chunk.data(gram, square),
                            chunk.place(states, s.shape.layers * square), scratch_of(kernel<T>().full, s.shape));
  });
  return ffi::Error::Success();
}

// Slopes in the parameters, from work(chunk, slopes): one set a sequence for DIAG, sums over all sequences for FULL.
template <class T, Member<T> member, class Result, class Work>
void slopes(ffi::ThreadPool& pool, const Sizes& s, Result& result, const Work& work) {
  if (member == &Kernel<T>::diagonal)
    return share_chunks<T>(pool, s, [&](const Chunk<T>& chunk) { work(chunk, chunk.place(result, s.entries)); });
  std::vector<T> parts(s.sets * s.chunks * s.entries);
  share_chunks<T>(pool, s, [&](const Chunk<T>& chunk) { work(chunk, parts.data() + chunk.index * s.entries); });
  std::fill_n(result->typed_data(), s.sets * s.entries, T(0));
  for (std::int64_t index = 0; index < s.sets * s.chunks; ++index)
    for (std::int64_t i = 0; i < s.entries; ++i)
      result->typed_data()[index / s.chunks * s.entries + i] += parts[index * s.entries + i];
}

template <ffi::DataType D, class T, Member<T> member>
ffi::Error reverse(ffi::ThreadPool pool, ffi::Buffer<D> parameters, ffi::Buffer<D> gram, ffi::Buffer<D> weights_slope,
                   ffi::ResultBuffer<D> parameters_slope) {
  const Sizes s = sizes_of(parameters, gram);
  const auto& family = kernel<T>().*member;
  const int size = s.shape.size;
  slopes<T, member>(pool, s, parameters_slope, [&](const Chunk<T>& chunk, T* out) {
    family.reverse(s.shape, chunk.count, chunk.parameters(parameters), chunk.data(gram, size * size),
                   chunk.data(weights_slope, size - 1), out, scratch_of(family, s.shape));
  });
  return ffi::Error::Success();
}

template <ffi::DataType D, class T, Member<T> member>
ffi::Error descent(ffi::ThreadPool pool, ffi::Buffer<D> parameters, ffi::Buffer<D> gram, ffi::Buffer<D> target,
                   ffi::Buffer<D> clip, ffi::ResultBuffer<D> losses, ffi::ResultBuffer<D> parameters_slope) {
  const Sizes s = sizes_of(parameters, gram);
  const auto& family = kernel<T>().*member;
  const int size = s.shape.size;
  slopes<T, member>(pool, s, parameters_slope, [&](const Chunk<T>& chunk, T* out) {
    family.descent(s.shape, chunk.count, chunk.parameters(parameters), chunk.data(gram, size * size),
                   chunk.data(target, size - 1), clip.typed_data()[chunk.set], chunk.place(losses, 1), out,
                   scratch_of(family, s.shape));
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

// x is (contexts, examples, d), y (contexts, examples).
template <ffi::DataType D, class T>
ffi::Error gram(ffi::ThreadPool pool, ffi::Buffer<D> x, ffi::Buffer<D> y, ffi::ResultBuffer<D> result) {
  const auto dimensions = x.dimensions();
  const std::int64_t contexts = dimensions[0], examples = dimensions[1], dim = dimensions[2], size = dim + 1;
  share(pool, (contexts + kChunk - 1) / kChunk, [&](std::int64_t index) {
    const std::int64_t first = index * kChunk;
    kernel<T>().gram((int)size, examples, std::min(kChunk, contexts - first), x.typed_data() + first * examples * dim,
                     y.typed_data() + first * examples, result->typed_data() + first * size * size,
                     scratch(sizeof(T) * kernel<T>().gram_scratch((int)size)));
  });
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
#define DOOR(name, bits, handler, binding) XLA_FFI_DEFINE_HANDLER_SYMBOL(lintra_##name##_##bits, handler, BIND binding);
#define FAMILY_DOORS(family, D, T, bits)                                                                \
  DOOR(family##_forward, bits, (forward<ffi::D, T, &Kernel<T>::family>), ARG(D) ARG(D) RET(D))          \
  DOOR(family##_reverse, bits, (reverse<ffi::D, T, &Kernel<T>::family>), ARG(D) ARG(D) ARG(D) RET(D))   \
  DOOR(family##_descent, bits, (descent<ffi::D, T, &Kernel<T>::family>),                                \
       ARG(D) ARG(D) ARG(D) ARG(D) RET(D) RET(D))
#define DOORS(D, T, bits)                                                                               \
  FAMILY_DOORS(full, D, T, bits)                                                                        \
  FAMILY_DOORS(diagonal, D, T, bits)                                                                    \
  DOOR(full_states, bits, (full_states<ffi::D, T>), ARG(D) ARG(D) RET(D))                               \
  DOOR(gram, bits, (gram<ffi::D, T>), ARG(D) ARG(D) RET(D))                                             \
  DOOR(polynomial_descent, bits, (polynomial_descent<ffi::D, T>), ARG(D) ARG(D) ARG(D) ARG(D) RET(D) RET(D))

DOORS(F32, float, f32)
DOORS(F64, double, f64)
