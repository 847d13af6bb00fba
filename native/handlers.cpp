// The doors for XLA: choose the instruction set, share the chunks among threads, add up what they give.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "arguments.hpp"
#include "kernel.hpp"
#include "threads.hpp"

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

struct Sizes {
  std::int64_t sets, batch, chunks;  // sets of parameters, sequences for each, chunks of sequences
  std::int64_t entries;              // numbers in a set of parameters
  Shape shape;
};

template <class T>
using Member = Family<T> Kernel<T>::*;

// Parameters are (sets, 2, layers, heads, size, size) for FULL and (sets, layers, 2, 2) for DIAG; ranges (sets, layers,
// 3); the Gram matrices (sets or 1, batch, size, size). Tells whether they are.
template <class T, Member<T> member, ffi::DataType D>
bool read_sizes(Arguments& arguments, const ffi::Buffer<D>& parameters, const ffi::Buffer<D>& ranges,
                const ffi::Buffer<D>& gram, Sizes& s) {
  constexpr bool full = member == &Kernel<T>::full;
  if (!arguments.rank("parameters", parameters, full ? 6 : 4) || !arguments.rank("gram", gram, 4)) return false;
  const auto p = parameters.dimensions(), g = gram.dimensions();
  const std::int64_t sets = p[0], layers = full ? p[2] : p[1], heads = full ? p[3] : 1, batch = g[1], size = g[2];
  if (!arguments.sizes(layers, heads, size)) return false;
  s = {sets, batch, (batch + kChunk - 1) / kChunk, full ? 2 * layers * heads * size * size : 4 * layers,
       {(int)layers, (int)heads, (int)size}};
  return (full ? arguments.shape("parameters", parameters, {sets, 2, layers, heads, size, size})
               : arguments.shape("parameters", parameters, {sets, layers, 2, 2})) &&
         arguments.shape("ranges", ranges, {sets, layers, 3}) &&
         arguments.data("gram", gram, {sets, batch, size, size});
}

// Gradients in the parameters are summed over sequences for FULL, and one set a sequence for DIAG.
template <class T, Member<T> member, class Buffer>
bool check_gradient(Arguments& arguments, const Buffer& gradient, const Sizes& s) {
  const std::int64_t layers = s.shape.layers, heads = s.shape.heads, size = s.shape.size;
  return member == &Kernel<T>::full
             ? arguments.shape("parameters_gradient", gradient, {s.sets, 2, layers, heads, size, size})
             : arguments.shape("parameters_gradient", gradient, {s.sets, s.batch, layers, 2, 2});
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
  template <class Buffer>
  const T* ranges(const Buffer& all) const {
    return all.typed_data() + set * 3 * sizes.shape.layers;
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
void* scratch_of(const Family<T>& family, Shape shape) {
  return scratch(sizeof(T) * family.scratch(shape));
}

template <ffi::DataType D, class T, Member<T> member>
ffi::Error forward(ffi::ThreadPool pool, ffi::Buffer<D> parameters, ffi::Buffer<D> ranges, ffi::Buffer<D> gram,
                   ffi::ResultBuffer<D> weights) {
  Arguments arguments;
  Sizes s;
  if (!read_sizes<T, member>(arguments, parameters, ranges, gram, s) ||
      !arguments.shape("weights", *weights, {s.sets, s.batch, s.shape.size - 1}))
    return arguments.error();
  const auto& family = kernel<T>().*member;
  const int size = s.shape.size;
  share_chunks<T>(pool, s, [&](const Chunk<T>& chunk) {
    family.forward(s.shape, chunk.count, chunk.parameters(parameters), chunk.ranges(ranges), chunk.data(gram, size * size),
                   chunk.place(weights, size - 1), scratch_of(family, s.shape));
  });
  return ffi::Error::Success();
}

template <ffi::DataType D, class T>
ffi::Error full_states(ffi::ThreadPool pool, ffi::Buffer<D> parameters, ffi::Buffer<D> ranges, ffi::Buffer<D> gram,
                       ffi::ResultBuffer<D> states) {
  Arguments arguments;
  Sizes s;
  if (!read_sizes<T, &Kernel<T>::full>(arguments, parameters, ranges, gram, s) ||
      !arguments.shape("states", *states, {s.sets, s.batch, s.shape.layers, s.shape.size, s.shape.size}))
    return arguments.error();
  const int square = s.shape.size * s.shape.size;
  share_chunks<T>(pool, s, [&](const Chunk<T>& chunk) {
    kernel<T>().full_states(s.shape, chunk.count, chunk.parameters(parameters), chunk.ranges(ranges), chunk.data(gram, square),
                            chunk.place(states, s.shape.layers * square), scratch_of(kernel<T>().full, s.shape));
  });
  return ffi::Error::Success();
}

// Gradients in the parameters, from work(chunk, gradients): one set a sequence for DIAG, sums over
// all sequences for FULL.
template <class T, Member<T> member, class Result, class Work>
void gradients(ffi::ThreadPool& pool, const Sizes& s, Result& result, const Work& work) {
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
ffi::Error vjp(ffi::ThreadPool pool, ffi::Buffer<D> parameters, ffi::Buffer<D> ranges, ffi::Buffer<D> gram,
               ffi::Buffer<D> weights_cotangent, ffi::ResultBuffer<D> parameters_gradient) {
  Arguments arguments;
  Sizes s;
  if (!read_sizes<T, member>(arguments, parameters, ranges, gram, s) ||
      !arguments.data("weights_cotangent", weights_cotangent, {s.sets, s.batch, s.shape.size - 1}) ||
      !check_gradient<T, member>(arguments, *parameters_gradient, s))
    return arguments.error();
  const auto& family = kernel<T>().*member;
  const int size = s.shape.size;
  gradients<T, member>(pool, s, parameters_gradient, [&](const Chunk<T>& chunk, T* out) {
    family.vjp(s.shape, chunk.count, chunk.parameters(parameters), chunk.ranges(ranges), chunk.data(gram, size * size),
                   chunk.data(weights_cotangent, size - 1), out, scratch_of(family, s.shape));
  });
  return ffi::Error::Success();
}

template <ffi::DataType D, class T, Member<T> member>
ffi::Error value_and_grad(ffi::ThreadPool pool, ffi::Buffer<D> parameters, ffi::Buffer<D> ranges, ffi::Buffer<D> gram,
                          ffi::Buffer<D> target, ffi::Buffer<D> clip, ffi::ResultBuffer<D> losses,
                          ffi::ResultBuffer<D> parameters_gradient) {
  Arguments arguments;
  Sizes s;
  if (!read_sizes<T, member>(arguments, parameters, ranges, gram, s) ||
      !arguments.data("target", target, {s.sets, s.batch, s.shape.size - 1}) ||
      !arguments.shape("clip", clip, {s.sets}) || !arguments.shape("losses", *losses, {s.sets, s.batch}) ||
      !check_gradient<T, member>(arguments, *parameters_gradient, s))
    return arguments.error();
  const auto& family = kernel<T>().*member;
  const int size = s.shape.size;
  gradients<T, member>(pool, s, parameters_gradient, [&](const Chunk<T>& chunk, T* out) {
    family.value_and_grad(s.shape, chunk.count, chunk.parameters(parameters), chunk.ranges(ranges), chunk.data(gram, size * size),
                   chunk.data(target, size - 1), clip.typed_data()[chunk.set], chunk.place(losses, 1), out,
                   scratch_of(family, s.shape));
  });
  return ffi::Error::Success();
}

// Rates are (sets, layers, 2); eigenvalues and node_weights (sets or 1, count), noise_var (sets).
template <ffi::DataType D, class T>
ffi::Error polynomial_value_and_grad(ffi::ThreadPool pool, ffi::Buffer<D> rates, ffi::Buffer<D> eigenvalues,
                              ffi::Buffer<D> node_weights, ffi::Buffer<D> noise_var, ffi::ResultBuffer<D> loss,
                              ffi::ResultBuffer<D> gradient) {
  Arguments arguments;
  if (!arguments.rank("rates", rates, 3) || !arguments.rank("eigenvalues", eigenvalues, 2)) return arguments.error();
  const std::int64_t sets = rates.dimensions()[0], count = eigenvalues.dimensions()[1], all = rates.dimensions()[1];
  if (!arguments.sizes(all, 1, 2) || !arguments.shape("rates", rates, {sets, all, 2}) ||
      !arguments.data("eigenvalues", eigenvalues, {sets, count}) ||
      !arguments.data("node_weights", node_weights, {sets, count}) ||
      !arguments.shape("noise_var", noise_var, {sets}) || !arguments.shape("loss", *loss, {sets}) ||
      !arguments.shape("gradient", *gradient, {sets, all, 2}))
    return arguments.error();
  const int layers = (int)all, entries = 2 * layers;
  const std::int64_t chunks = (count + kEigenvalues - 1) / kEigenvalues;
  std::vector<T> parts(sets * chunks * (1 + entries));  // loss and gradient of every chunk
  share(pool, sets * chunks, [&](std::int64_t index) {
    const std::int64_t set = index / chunks, first = index % chunks * kEigenvalues;
    const auto data = [&](const ffi::Buffer<D>& all) {
      return all.typed_data() + (all.dimensions()[0] == 1 ? 0 : set * count) + first;
    };
    T* part = parts.data() + index * (1 + entries);
    kernel<T>().polynomial_value_and_grad(layers, std::min(kEigenvalues, count - first),
                                          rates.typed_data() + set * entries, data(eigenvalues), data(node_weights),
                                          noise_var.typed_data()[set], part, part + 1,
                                          scratch(sizeof(T) * kernel<T>().polynomial_scratch(layers)));
  });
  std::fill_n(loss->typed_data(), sets, T(0));
  std::fill_n(gradient->typed_data(), sets * entries, T(0));
  for (std::int64_t index = 0; index < sets * chunks; ++index) {
    const T* part = parts.data() + index * (1 + entries);
    loss->typed_data()[index / chunks] += part[0];
    for (int i = 0; i < entries; ++i) gradient->typed_data()[index / chunks * entries + i] += part[1 + i];
  }
  return ffi::Error::Success();
}

// x is (contexts, examples, d), y (contexts, examples).
template <ffi::DataType D, class T>
ffi::Error gram(ffi::ThreadPool pool, ffi::Buffer<D> x, ffi::Buffer<D> y, ffi::ResultBuffer<D> result) {
  Arguments arguments;
  if (!arguments.rank("x", x, 3)) return arguments.error();
  const auto dimensions = x.dimensions();
  const std::int64_t contexts = dimensions[0], examples = dimensions[1], dim = dimensions[2], size = dim + 1;
  if (!arguments.sizes(1, 1, size) || !arguments.shape("y", y, {contexts, examples}) ||
      !arguments.shape("gram", *result, {contexts, size, size}))
    return arguments.error();
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
#define DOOR(name, bits, handler, binding) \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(lintra_##name##_##bits, Guarded<handler>::call, BIND binding);
#define FAMILY_DOORS(family, D, T, bits)                                                                \
  DOOR(family##_forward, bits, (forward<ffi::D, T, &Kernel<T>::family>), ARG(D) ARG(D) ARG(D) RET(D))   \
  DOOR(family##_vjp, bits, (vjp<ffi::D, T, &Kernel<T>::family>), ARG(D) ARG(D) ARG(D) ARG(D) RET(D))   \
  DOOR(family##_value_and_grad, bits, (value_and_grad<ffi::D, T, &Kernel<T>::family>),                                \
       ARG(D) ARG(D) ARG(D) ARG(D) ARG(D) RET(D) RET(D))
#define DOORS(D, T, bits)                                                                               \
  FAMILY_DOORS(full, D, T, bits)                                                                        \
  FAMILY_DOORS(diagonal, D, T, bits)                                                                    \
  DOOR(full_states, bits, (full_states<ffi::D, T>), ARG(D) ARG(D) ARG(D) RET(D))                               \
  DOOR(gram, bits, (gram<ffi::D, T>), ARG(D) ARG(D) RET(D))                                             \
  DOOR(polynomial_value_and_grad, bits, (polynomial_value_and_grad<ffi::D, T>), ARG(D) ARG(D) ARG(D) ARG(D) RET(D) RET(D))

DOORS(F32, float, f32)
DOORS(F64, double, f64)
