// Damping: how far the input block S of a Gram matrix is outside of the range of training, one number a sequence.
//
// A layer divides its Gram matrix by r = max(1, |S| / rho, l / kappa), with |S| = (tr S^4)^(1/4), the 4-norm of the
// eigenvalues, and l the sum of squared labels. Before the first layer a context is divided by
// max(1, tr S / trace, min(|S| / rho, 1.2)). Infinite thresholds are the model as printed. Matrices have `side` rows and
// columns, of which the first `dim` are S.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "products.hpp"

namespace LINTRA_ISA {

template <class T>
struct Range {
  T rho, kappa, trace;
  bool finite() const { return rho <= std::numeric_limits<T>::max() || kappa <= std::numeric_limits<T>::max(); }
};

// Whether a comparison holds in all lanes
template <class Mask>
inline bool all(Mask mask) {
  std::uint64_t words[sizeof(Mask) / sizeof(std::uint64_t)], both = ~std::uint64_t(0);
  std::memcpy(words, &mask, sizeof(Mask));
  for (std::uint64_t word : words) both &= word;
  return both == ~std::uint64_t(0);
}

// The block S times a number, with zeros around it
template <class T>
inline void copy_block(Vec<T>* out, const Vec<T>* matrix, int dim, int side, Vec<T> times) {
  for (int i = 0; i < side; ++i)
    for (int j = 0; j < side; ++j) out[i * side + j] = i < dim && j < dim ? matrix[i * side + j] * times : Vec<T>{};
}

// In four sums, since a single one would wait for itself
template <class T>
inline Vec<T> sum_of_squares(const Vec<T>* entries, int count) {
  Vec<T> sum[4] = {};
  int i = 0;
  for (; i + 4 <= count; i += 4)
    for (int k = 0; k < 4; ++k) sum[k] += entries[i + k] * entries[i + k];
  for (; i < count; ++i) sum[0] += entries[i] * entries[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// 1 / r of one Gram matrix a lane, with what its derivative needs
template <class T>
struct Damping {
  using V = Vec<T>;
  V factor = V{} + T(1);  // 1 / r
  V by_inputs = {};       // 1 / |S| in lanes where the inputs decide, else 0
  V by_labels = {};       // 1 / l in lanes where the labels decide, else 0
  bool inside = true;     // whether r = 1 in all lanes

  Damping() = default;

  // `spare` is room for two matrices. `square` is S^2 in rows of `dim`, or null where it is not known yet.
  template <class Inner, class Size>
  Damping(const V* matrix, Inner dim, Size side, V labels, Range<T> range, V* spare, const V* square = nullptr) {
    if (!range.finite()) return;
    if (!square && surely_inside(matrix, dim, side, labels, range)) return;
    if (!square) {
      const View<V, Order::rows, Size> block{matrix, side};
      symmetric_product<T>(spare, block, block, dim);
      square = spare;
    }
    const V fourth = sum_of_squares<T>(square, dim * dim);  // tr S^4 = |S^2|_F^2
    const T limit = range.rho * range.rho * range.rho * range.rho;
    const bool has_limit = limit > least() && limit <= std::numeric_limits<T>::max();
    if (has_limit && all((fourth <= limit) & (labels <= range.kappa))) return;
    damp(matrix, dim, side, labels, range, spare);
  }

 private:
  // Numbers below have lost digits in the squares that they are sums of
  static constexpr T least() { return std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon(); }

  template <class Inner, class Size>
  void damp(const V* matrix, Inner dim, Size side, V labels, Range<T> range, V* spare) {
    const V label_ratio = labels * (T(1) / range.kappa);
    // Entries are divided by the largest first, so that powers do not overflow.
    V largest = {};
    for (int i = 0; i < dim; ++i)
      for (int j = 0; j < dim; ++j) {
        const V entry = matrix[i * side + j];
        const V size = entry < 0 ? -entry : entry;
        largest = size > largest ? size : largest;
      }
    V unit = {};
    for (int lane = 0; lane < Lanes<T>::width; ++lane) unit[lane] = largest[lane] > 0 ? T(1) / largest[lane] : T(0);
    copy_block<T>(spare, matrix, dim, side, unit);
    V* square = spare + side * side;
    const View<V, Order::rows, Size> small{spare, side};
    symmetric_product<T>(square, small, small, dim);
    const V sum = sum_of_squares<T>(square, dim * dim);
    for (int lane = 0; lane < Lanes<T>::width; ++lane) {
      const T norm = largest[lane] * std::sqrt(std::sqrt(sum[lane])), input_ratio = norm / range.rho;
      if (input_ratio > 1 && input_ratio >= label_ratio[lane]) {
        factor[lane] = range.rho / norm;
        by_inputs[lane] = T(1) / norm;
        inside = false;
      } else if (label_ratio[lane] > 1) {
        factor[lane] = range.kappa / labels[lane];
        by_labels[lane] = T(1) / labels[lane];
        inside = false;
      }
    }
  }

  // A sufficient condition, without the product S^2 and without roots. With F the Frobenius norm and m = tr S / d, no
  // eigenvalue exceeds L = m + sqrt(v), v = (1 - 1/d) (F^2 - d m^2), so that |S|^4 <= L^2 F^2. With rho = 1 and
  // f = (F^2 + 1) / 2 >= F the norm is below 1 if f L < 1, that is f^2 v < (1 - f m)^2 and f m < 1. The margin is far
  // above rounding errors. There are four sums, since a single one would wait for itself. The answer is no where
  // squares overflow or lose digits, and for NaN.
  static inline __attribute__((always_inline)) bool surely_inside(const V* matrix, int dim, int side, V labels,
                                                                  Range<T> range) {
    if (!(range.rho * range.rho > least())) return false;
    V trace = {}, diagonal = {}, sum[4] = {};
    for (int i = 0; i < dim; ++i) {
      const V* row = matrix + i * side;
      int j = 0;
      for (; j + 4 <= i; j += 4)
        for (int k = 0; k < 4; ++k) sum[k] += row[j + k] * row[j + k];
      for (; j < i; ++j) sum[j % 4] += row[j] * row[j];
      trace += row[i];
      diagonal += row[i] * row[i];
    }
    const T scale = T(1) / range.rho, share = T(1) / dim, margin = T(0.999);
    const V square = (diagonal + T(2) * ((sum[0] + sum[1]) + (sum[2] + sum[3]))) * (scale * scale);
    const V total = trace * scale, mean = total * share, f = T(0.5) * (square + T(1));
    const V v = (T(1) - share) * (square - total * mean), rest = margin - f * mean;
    return all((rest > T(0)) & (f * f * v <= rest * rest) & (labels <= range.kappa));
  }
};

// What a context is multiplied by, 1 / max(1, tr S / trace, min(|S| / rho, 1.2)); `inside` tells whether all lanes are 1
template <class T, class Inner, class Size>
inline Vec<T> context_factor(const Vec<T>* matrix, Inner dim, Size side, Range<T> range, Vec<T>* spare, bool& inside) {
  constexpr T least = T(1) / T(1.2);
  const T scale = T(1) / range.trace;
  Vec<T> ratio = {};
  for (int i = 0; i < dim; ++i) ratio += matrix[i * side + i] * scale;
  const Damping<T> damping(matrix, dim, side, Vec<T>{}, range, spare);
  Vec<T> factor = damping.factor;
  inside = damping.inside;
  for (int lane = 0; lane < Lanes<T>::width; ++lane) {
    if (factor[lane] < least) factor[lane] = least;
    if (ratio[lane] * factor[lane] > 1) {
      factor[lane] = T(1) / ratio[lane];
      inside = false;
    }
  }
  return factor;
}

// Subtracts `weight` times d log r / dS = S^3 / tr S^4 from a gradient, in lanes where the inputs decide; `spare` is room
// for three matrices
template <class T, class Size>
inline void subtract_log_divisor(Vec<T>* gradient, const Vec<T>* matrix, int dim, Size side, Vec<T> weight,
                                 Vec<T> by_inputs, Vec<T>* spare) {
  bool any = false;
  for (int lane = 0; lane < Lanes<T>::width; ++lane) any = any || by_inputs[lane] != 0;
  if (!any) return;
  Vec<T> *small = spare, *square = spare + side * side, *cube = square + side * side;
  copy_block<T>(small, matrix, dim, side, by_inputs);
  const View<Vec<T>, Order::rows, Size> first{small, side}, second{square, side};
  symmetric_product<T>(square, first, first, side);
  symmetric_product<T>(cube, second, first, side);
  for (int i = 0; i < side * side; ++i) gradient[i] -= weight * by_inputs * cube[i];
}

}  // namespace LINTRA_ISA
