// GD++ in the eigenbasis of Sigma: loss and gradient at eigenvalues s, O(1) a layer, one eigenvalue per lane.
//
// A layer with the rates a = w_xx and b = w_yx is
//   z = m^2 s,   f <- f - b m^2 rho,   rho <- rho (1 + b z),   m <- m (1 + a z)
// from m = rho = 1 and f = 0, so that rho = 1 - s f. Backward, the gradients F in f (the same in every layer) and
// R in rho only matter as h = s R - F, which a layer multiplies by 1 + b z.
#pragma once

#include <cstring>

#include "products.hpp"

namespace LINTRA_ISA {

template <class T>
struct Polynomial {
  using V = Vec<T>;
  static constexpr int group = 4;  // vectors side by side, so that no unit waits for the last result
  static constexpr int width = group * Lanes<T>::width;

  int layers;
  const T* rates;  // a and b per layer, shared by all eigenvalues
  T noise_var;
  V *m, *rho;      // on entry to every layer, a group each
  V* gradient;        // in a and b of every layer, summed over eigenvalues, still one per lane
  V loss;

  static std::size_t scratch(int layers) { return (std::size_t)layers * (2 * group + 2); }  // in vectors

  Polynomial(int layers, const T* rates, T noise_var, V* memory)
      : layers(layers), rates(rates), noise_var(noise_var), m(memory), rho(m + layers * group),
        gradient(rho + layers * group), loss{} {
    for (int i = 0; i < 2 * layers; ++i) gradient[i] = V{};
  }

  // Adds node_weight (rho^2 + noise_var s f^2) / 2 to the loss and its gradient to `gradient`, for `width` eigenvalues
  void descend(const T* eigenvalues, const T* node_weights) {
    V s[group], node_weight[group];
    std::memcpy(s, eigenvalues, sizeof s);
    std::memcpy(node_weight, node_weights, sizeof node_weight);
    V m_now[group], rho_now[group], f[group];
    for (int i = 0; i < group; ++i) m_now[i] = rho_now[i] = V{} + T(1), f[i] = V{};
    for (int l = 0; l < layers; ++l) {
      const T a = rates[2 * l], b = rates[2 * l + 1];
      for (int i = 0; i < group; ++i) {
        m[l * group + i] = m_now[i];
        rho[l * group + i] = rho_now[i];
        const V square = m_now[i] * m_now[i], z = square * s[i];
        f[i] -= b * square * rho_now[i];
        rho_now[i] += b * z * rho_now[i];
        m_now[i] += a * z * m_now[i];
      }
    }
    V h[group], m_gradient[group];
    for (int i = 0; i < group; ++i) {
      const V noise_f = noise_var * f[i];
      loss += T(0.5) * node_weight[i] * (rho_now[i] * rho_now[i] + s[i] * f[i] * noise_f);
      h[i] = node_weight[i] * s[i] * (rho_now[i] - noise_f);
      m_gradient[i] = V{};
    }
    for (int l = layers - 1; l >= 0; --l) {
      const T a = rates[2 * l], b = rates[2 * l + 1];
      V a_sum = gradient[2 * l], b_sum = gradient[2 * l + 1];
      for (int i = 0; i < group; ++i) {
        const V m_in = m[l * group + i], square = m_in * m_in, z = square * s[i];
        const V t = rho[l * group + i] * h[i], e = m_gradient[i] * m_in * s[i];
        a_sum += square * e;
        b_sum += square * t;
        m_gradient[i] += a * z * m_gradient[i] + T(2) * m_in * (b * t + a * e);
        h[i] += b * z * h[i];
      }
      gradient[2 * l] = a_sum;
      gradient[2 * l + 1] = b_sum;
    }
  }
};

}  // namespace LINTRA_ISA
