// The kernels for one instruction set. Compiled once per set, with LINTRA_ISA naming it.
#include "kernel.hpp"

#include "diagonal.hpp"
#include "full.hpp"

namespace LINTRA_ISA {

constexpr std::size_t kAlignment = 64;

template <class T>
Vec<T>* aligned(void* memory) {
  auto address = reinterpret_cast<std::uintptr_t>(memory);
  return reinterpret_cast<Vec<T>*>((address + kAlignment - 1) / kAlignment * kAlignment);
}

template <class T>
std::size_t numbers(std::size_t vectors) {
  return vectors * Lanes<T>::width + kAlignment / sizeof(T);
}

// Calls work(first sequence, how many) for every group of sequences that fill one vector
template <class T, class Work>
void for_groups(std::int64_t count, Work work) {
  constexpr std::int64_t width = Lanes<T>::width;
  for (std::int64_t first = 0; first < count; first += width)
    work(first, (int)(count - first < width ? count - first : width));
}

// Calls work(size) with a size that the compiler knows for the paper's d = 10
template <int known, class Work>
void with_size(int size, Work work) {
  if (size == known)
    work(Static<known>{});
  else
    work(Dynamic{size});
}

template <class T>
std::size_t full_scratch(int layers, int heads, int size) {
  return numbers<T>(Full<T, Dynamic>::scratch({layers, heads, {size}}) + 2 * (std::size_t)size * size);
}

template <class T>
void full_forward(int layers, int heads, int size, std::int64_t count, const T* p, const T* q, const T* gram,
                  T* weights, void* scratch) {
  with_size<11>(size, [&](auto known) {
  Full<T, decltype(known)> full({layers, heads, known}, p, q, aligned<T>(scratch));
  Vec<T>* result = full.q_slope + (std::ptrdiff_t)layers * heads * size * size;
  for_groups<T>(count, [&](std::int64_t first, int filled) {
    load_lanes<T>(full.gram, gram + first * size * size, size * size, filled);
    full.forward(result);
    for (int i = 0; i < size - 1; ++i) result[i] = -result[i];
    store_lanes<T>(weights + first * (size - 1), result, size - 1, filled);
  });
  });
}

template <class T>
void full_reverse(int layers, int heads, int size, std::int64_t count, const T* p, const T* q, const T* gram,
                  const T* weights_slope, T* p_slope, T* q_slope, void* scratch) {
  with_size<11>(size, [&](auto known) {
  Full<T, decltype(known)> full({layers, heads, known}, p, q, aligned<T>(scratch));
  const std::ptrdiff_t entries = (std::ptrdiff_t)layers * heads * size * size;
  Vec<T>* result = full.q_slope + entries;
  for (std::ptrdiff_t i = 0; i < 2 * entries; ++i) full.p_slope[i] = Vec<T>{};
  for_groups<T>(count, [&](std::int64_t first, int filled) {
    load_lanes<T>(full.gram, gram + first * size * size, size * size, filled);
    full.forward(result);
    load_lanes<T>(full.column, weights_slope + first * (size - 1), size - 1, filled);
    for (int i = 0; i < size - 1; ++i) full.column[i] = -full.column[i];
    full.column[size - 1] = Vec<T>{};
    full.reverse();
  });
  for (std::ptrdiff_t i = 0; i < entries; ++i) {
    p_slope[i] = add_lanes<T>(full.p_slope[i]);
    q_slope[i] = add_lanes<T>(full.q_slope[i]);
  }
  });
}

template <class T>
void full_states(int layers, int heads, int size, std::int64_t count, const T* p, const T* q, const T* gram, T* states,
                 void* scratch) {
  using V = Vec<T>;
  with_size<11>(size, [&](auto known) {
  Full<T, decltype(known)> full({layers, heads, known}, p, q, aligned<T>(scratch));
  const int square = size * size;
  V* now = full.q_slope + (std::ptrdiff_t)layers * heads * square;
  V* next = now + square;
  for_groups<T>(count, [&](std::int64_t first, int filled) {
    load_lanes<T>(full.gram, gram + first * square, square, filled);
    for (int i = 0; i < square; ++i) now[i] = V{} + T(i / size == i % size);
    for (int l = 0; l < layers; ++l) {
      full.layer_map(l);
      if (l + 1 < layers) full.layer_gram(l);
      product<T, Store::assign>(next, full.whole(full.move + l * square), full.whole(now), size);
      V* swap = now;
      now = next;
      next = swap;
      for (int lane = 0; lane < filled; ++lane) {
        T* out = states + ((first + lane) * layers + l) * square;
        for (int i = 0; i < square; ++i) out[i] = now[i][lane];
      }
    }
  });
  });
}

template <class T>
std::size_t diagonal_scratch(int layers, int size) {
  return numbers<T>(Diagonal<T, Dynamic>::scratch(layers, {size - 1}) + size + 4 * (std::size_t)layers);
}

template <class T>
void diagonal_forward(int layers, int size, std::int64_t count, const T* omega, const T* gram, T* weights,
                      void* scratch) {
  const int dim = size - 1;
  Vec<T>* memory = aligned<T>(scratch);
  with_size<10>(dim, [&](auto known) {
  Diagonal<T, decltype(known)> diagonal(layers, known, omega, memory);
  Vec<T>* result = memory + Diagonal<T, Dynamic>::scratch(layers, {dim});
  for_groups<T>(count, [&](std::int64_t first, int filled) {
    diagonal.load(gram + first * size * size, filled);
    diagonal.forward(result);
    for (int i = 0; i < dim; ++i) result[i] = -result[i];
    store_lanes<T>(weights + first * dim, result, dim, filled);
  });
  });
}

template <class T>
void diagonal_reverse(int layers, int size, std::int64_t count, const T* omega, const T* gram, const T* weights_slope,
                      T* omega_slope, void* scratch) {
  const int dim = size - 1;
  Vec<T>* memory = aligned<T>(scratch);
  with_size<10>(dim, [&](auto known) {
  Diagonal<T, decltype(known)> diagonal(layers, known, omega, memory);
  Vec<T>* result = memory + Diagonal<T, Dynamic>::scratch(layers, {dim});
  Vec<T>* slopes = result + size;
  for_groups<T>(count, [&](std::int64_t first, int filled) {
    diagonal.load(gram + first * size * size, filled);
    diagonal.forward(result);
    load_lanes<T>(diagonal.column, weights_slope + first * dim, dim, filled);
    for (int i = 0; i < dim; ++i) diagonal.column[i] = -diagonal.column[i];
    diagonal.column[dim] = Vec<T>{};
    diagonal.reverse(slopes);
    store_lanes<T>(omega_slope + first * 4 * layers, slopes, 4 * layers, filled);
  });
  });
}

template <class T>
constexpr Kernel<T> kernel = {full_scratch<T>, diagonal_scratch<T>, full_forward<T>,     full_reverse<T>,
                              full_states<T>,  diagonal_forward<T>, diagonal_reverse<T>};

}  // namespace LINTRA_ISA

#define LINTRA_JOIN_(a, b, c) a##b##c
#define LINTRA_JOIN(a, b, c) LINTRA_JOIN_(a, b, c)
extern const Kernel<float>* const LINTRA_JOIN(lintra_, LINTRA_ISA, _f32) = &LINTRA_ISA::kernel<float>;
extern const Kernel<double>* const LINTRA_JOIN(lintra_, LINTRA_ISA, _f64) = &LINTRA_ISA::kernel<double>;
