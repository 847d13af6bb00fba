// The kernels for one instruction set. Compiled once per set, with LINTRA_ISA naming it.
#include "kernel.hpp"

#include <cmath>
#include <utility>

#include "diagonal.hpp"
#include "full.hpp"
#include "polynomial.hpp"

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

// From the last row of C to the weights, which are minus its first d entries
template <class T>
void to_weights(Vec<T>* result, int dim) {
  for (int i = 0; i < dim; ++i) result[i] = -result[i];
}

// The slope in the last row of C, from the slope in the weights
template <class T>
void slope_given(Vec<T>* column, const T* weights_slope, int dim, int filled) {
  load_lanes<T>(column, weights_slope, dim, filled);
  to_weights<T>(column, dim);
  column[dim] = Vec<T>{};
}

// The same for the loss |w - target|^2 / 2, which is given back
template <class T>
void slope_of_distance(Vec<T>* column, Vec<T>* weights, const T* target, T clip, T* losses, int dim, int filled) {
  using V = Vec<T>;
  load_lanes<T>(column, target, dim, filled);
  V square = {};
  for (int i = 0; i < dim; ++i) {
    column[i] = weights[i] - column[i];
    square += column[i] * column[i];
  }
  V factor = V{} - T(1);
  for (int lane = 0; lane < filled; ++lane) {
    losses[lane] = T(0.5) * square[lane];
    if (clip > 0 && square[lane] > clip * clip) factor[lane] = -clip / std::sqrt(square[lane]);
  }
  for (int i = 0; i < dim; ++i) column[i] *= factor;
  column[dim] = V{};
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
      to_weights<T>(result, size - 1);
      store_lanes<T>(weights + first * (size - 1), result, size - 1, filled);
    });
  });
}

// Forward and reverse, with the slope in the weights from `slope(column, weights, first sequence, filled)`
template <class T, class Slope>
void full_both(int layers, int heads, int size, std::int64_t count, const T* p, const T* q, const T* gram, T* p_slope,
               T* q_slope, void* scratch, Slope slope) {
  with_size<11>(size, [&](auto known) {
    Full<T, decltype(known)> full({layers, heads, known}, p, q, aligned<T>(scratch));
    const std::ptrdiff_t entries = (std::ptrdiff_t)layers * heads * size * size;
    Vec<T>* result = full.q_slope + entries;
    for (std::ptrdiff_t i = 0; i < 2 * entries; ++i) full.p_slope[i] = Vec<T>{};
    for_groups<T>(count, [&](std::int64_t first, int filled) {
      load_lanes<T>(full.gram, gram + first * size * size, size * size, filled);
      full.forward(result);
      to_weights<T>(result, size - 1);
      slope(full.column, result, first, filled);
      full.reverse();
    });
    for (std::ptrdiff_t i = 0; i < entries; ++i) {
      p_slope[i] = add_lanes<T>(full.p_slope[i]);
      q_slope[i] = add_lanes<T>(full.q_slope[i]);
    }
  });
}

template <class T>
void full_reverse(int layers, int heads, int size, std::int64_t count, const T* p, const T* q, const T* gram,
                  const T* weights_slope, T* p_slope, T* q_slope, void* scratch) {
  full_both<T>(layers, heads, size, count, p, q, gram, p_slope, q_slope, scratch,
               [&](Vec<T>* column, Vec<T>*, std::int64_t first, int filled) {
                 slope_given<T>(column, weights_slope + first * (size - 1), size - 1, filled);
               });
}

template <class T>
void full_descent(int layers, int heads, int size, std::int64_t count, const T* p, const T* q, const T* gram,
                  const T* target, T clip, T* losses, T* p_slope, T* q_slope, void* scratch) {
  full_both<T>(layers, heads, size, count, p, q, gram, p_slope, q_slope, scratch,
               [&](Vec<T>* column, Vec<T>* weights, std::int64_t first, int filled) {
                 slope_of_distance<T>(column, weights, target + first * (size - 1), clip, losses + first, size - 1,
                                      filled);
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
        product<T, Store::assign>(next, full.whole(full.move + l * square), full.whole(now), known);
        std::swap(now, next);
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
  Vec<T>* result = memory + Diagonal<T, Dynamic>::scratch(layers, {dim});
  with_size<10>(dim, [&](auto known) {
    Diagonal<T, decltype(known)> diagonal(layers, known, omega, memory);
    for_groups<T>(count, [&](std::int64_t first, int filled) {
      diagonal.load(gram + first * size * size, filled);
      diagonal.forward(result);
      to_weights<T>(result, dim);
      store_lanes<T>(weights + first * dim, result, dim, filled);
    });
  });
}

template <class T, class Slope>
void diagonal_both(int layers, int size, std::int64_t count, const T* omega, const T* gram, T* omega_slope,
                   void* scratch, Slope slope) {
  const int dim = size - 1;
  Vec<T>* memory = aligned<T>(scratch);
  Vec<T>* result = memory + Diagonal<T, Dynamic>::scratch(layers, {dim});
  Vec<T>* slopes = result + size;
  with_size<10>(dim, [&](auto known) {
    Diagonal<T, decltype(known)> diagonal(layers, known, omega, memory);
    for_groups<T>(count, [&](std::int64_t first, int filled) {
      diagonal.load(gram + first * size * size, filled);
      diagonal.forward(result);
      to_weights<T>(result, dim);
      slope(diagonal.column, result, first, filled);
      diagonal.reverse(slopes);
      store_lanes<T>(omega_slope + first * 4 * layers, slopes, 4 * layers, filled);
    });
  });
}

template <class T>
void diagonal_reverse(int layers, int size, std::int64_t count, const T* omega, const T* gram, const T* weights_slope,
                      T* omega_slope, void* scratch) {
  diagonal_both<T>(layers, size, count, omega, gram, omega_slope, scratch,
                   [&](Vec<T>* column, Vec<T>*, std::int64_t first, int filled) {
                     slope_given<T>(column, weights_slope + first * (size - 1), size - 1, filled);
                   });
}

template <class T>
void diagonal_descent(int layers, int size, std::int64_t count, const T* omega, const T* gram, const T* target, T clip,
                      T* losses, T* omega_slope, void* scratch) {
  diagonal_both<T>(layers, size, count, omega, gram, omega_slope, scratch,
                   [&](Vec<T>* column, Vec<T>* weights, std::int64_t first, int filled) {
                     slope_of_distance<T>(column, weights, target + first * (size - 1), clip, losses + first, size - 1,
                                          filled);
                   });
}

template <class T>
std::size_t polynomial_scratch(int layers) {
  return numbers<T>(Polynomial<T>::scratch(layers));
}

template <class T>
void polynomial_descent(int layers, std::int64_t count, const T* rates, const T* eigenvalues, const T* masses,
                        T noise_var, T* loss, T* slope, void* scratch) {
  constexpr int width = Polynomial<T>::width;
  Polynomial<T> polynomial(layers, rates, noise_var, aligned<T>(scratch));
  std::int64_t first = 0;
  for (; first + width <= count; first += width) polynomial.descend(eigenvalues + first, masses + first);
  if (first < count) {  // lanes beyond the end have no mass
    T last[width] = {}, last_masses[width] = {};
    std::memcpy(last, eigenvalues + first, sizeof(T) * (count - first));
    std::memcpy(last_masses, masses + first, sizeof(T) * (count - first));
    polynomial.descend(last, last_masses);
  }
  *loss = add_lanes<T>(polynomial.loss);
  for (int i = 0; i < 2 * layers; ++i) slope[i] = add_lanes<T>(polynomial.slope[i]);
}

template <class T>
constexpr Kernel<T> kernel = {full_scratch<T>,     diagonal_scratch<T>, full_forward<T>,       full_reverse<T>,
                              full_descent<T>,     full_states<T>,      diagonal_forward<T>,   diagonal_reverse<T>,
                              diagonal_descent<T>, polynomial_scratch<T>, polynomial_descent<T>};

}  // namespace LINTRA_ISA

#define LINTRA_JOIN_(a, b, c) a##b##c
#define LINTRA_JOIN(a, b, c) LINTRA_JOIN_(a, b, c)
extern const Kernel<float>* const LINTRA_JOIN(lintra_, LINTRA_ISA, _f32) = &LINTRA_ISA::kernel<float>;
extern const Kernel<double>* const LINTRA_JOIN(lintra_, LINTRA_ISA, _f64) = &LINTRA_ISA::kernel<double>;
