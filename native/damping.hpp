// Damping: how far the input block S of a Gram matrix is outside of the range of training, one number a sequence.
//
// A layer divides its Gram matrix by r = max(1, |S| / rho, l / kappa), with |S| the Frobenius norm and l the sum of
// squared labels. Infinite rho and kappa are the model as printed.
#pragma once

#include <cmath>
#include <limits>

#include "products.hpp"

namespace LINTRA_ISA {

template <class T>
struct Range {
  T rho, kappa;
  bool finite() const { return rho <= std::numeric_limits<T>::max() || kappa <= std::numeric_limits<T>::max(); }
};

// 1 / r of one Gram matrix a lane, with what its derivative needs
template <class T>
struct Damping {
  using V = Vec<T>;
  V factor = V{} + T(1);  // 1 / r
  V by_inputs = {};       // 1 / |S|^2 in lanes where the inputs decide, else 0
  V by_labels = {};       // 1 / l in lanes where the labels decide, else 0
  bool inside = true;     // whether r = 1 in all lanes

  Damping() = default;

  // `block` has `dim` rows of `stride` entries, of which the first `dim` are S
  Damping(const V* block, int dim, int stride, V labels, Range<T> range) {
    if (!range.finite()) return;
    // Inside of the range one pass is enough, and it decides without a square root.
    const T scale = T(1) / range.rho, label_scale = T(1) / range.kappa;
    V sum = {};
    for (int i = 0; i < dim; ++i)
      for (int j = 0; j < dim; ++j) {
        const V entry = block[i * stride + j] * scale;
        sum += entry * entry;
      }
    const V label_ratio = labels * label_scale;
    for (int lane = 0; lane < Lanes<T>::width; ++lane)
      inside = inside && sum[lane] <= 1 && label_ratio[lane] <= 1;
    if (inside) return;
    // Entries are divided by the largest first, so that squares do not overflow.
    V largest = {};
    for (int i = 0; i < dim; ++i)
      for (int j = 0; j < dim; ++j) {
        const V entry = block[i * stride + j];
        const V size = entry < 0 ? -entry : entry;
        largest = size > largest ? size : largest;
      }
    V unit = {};
    for (int lane = 0; lane < Lanes<T>::width; ++lane) unit[lane] = largest[lane] > 0 ? T(1) / largest[lane] : T(0);
    sum = V{};
    for (int i = 0; i < dim; ++i)
      for (int j = 0; j < dim; ++j) {
        const V entry = block[i * stride + j] * unit;
        sum += entry * entry;
      }
    for (int lane = 0; lane < Lanes<T>::width; ++lane) {
      const T norm = largest[lane] * std::sqrt(sum[lane]), input_ratio = norm * scale;
      if (input_ratio > 1 && input_ratio >= label_ratio[lane]) {
        factor[lane] = range.rho / norm;
        by_inputs[lane] = T(1) / norm / norm;
      } else if (label_ratio[lane] > 1) {
        factor[lane] = range.kappa / labels[lane];
        by_labels[lane] = T(1) / labels[lane];
      }
    }
  }
};

}  // namespace LINTRA_ISA
