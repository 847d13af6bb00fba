// DIAG: forward and backward through Eq. (10), four numbers a layer, for a group of sequences.
//
// With A = I + w_xx S, b = w_xy a and D = 1 + w_yy l (S, a, l the blocks of the Gram matrix) a layer is
//   S' = A S A + (A a) b' + b (A a)' + l b b',   A S A = S + 2 w S^2 + w^2 S^3
//   a' = A (w_yx S a + D a) + (w_yx a'a + l D) b
//   l' = w_yx^2 a'S a + 2 D w_yx a'a + D^2 l
// so that only two products of matrices are needed, both symmetric. Outside of the range of training the four numbers
// are divided by r > 1, which differs from sequence to sequence (damping.hpp).
#pragma once

#include "damping.hpp"
#include "kernel.hpp"
#include "products.hpp"

namespace LINTRA_ISA {

template <class T>
struct Omega {
  T xx, xy, yx, yy;
};

template <class T, class Size>
struct Diagonal {
  using V = Vec<T>;
  static constexpr int fewer = 1;  // `dim` is one less than the size of a Gram matrix

  int layers;
  Size dim;
  int square;
  const Omega<T>* omega;  // per layer
  const Range<T>* range;
  V *xx, *xy, *yy;        // S, a, l per layer
  V *sxy, *t;             // S a and w_yx S a + D a per layer
  V *square_xx, *temporary, *gradient, *spare;  // spare: three matrices for the divisor
  V *row, *column;        // per layer, of dim + 1: R = e' T_L ... T_{l+1} and v = T_{l-1} ... T_1 v_0
  V *xy_gradient, *f, *h, *m;
  V yy_gradient;
  V *result, *omega_gradient;  // the last row of C, and the gradients in the four numbers of every layer
  V *factor, *by_inputs, *by_labels;  // per layer: 1 / r, and what its derivative needs
  bool inside;            // whether the inputs of all contexts are inside of the first layer's range

  static std::size_t scratch(Shape s) {  // in vectors
    const std::size_t dim = s.size - 1, m = dim * dim, n = s.layers;
    return n * m + 3 * n * dim + n + 6 * m + 2 * (n + 1) * (dim + 1) + 4 * dim + (dim + 1) + 7 * n;
  }

  Diagonal(Shape s, Size dim, const T* omega, const T* ranges, V* memory)
      : layers(s.layers), dim(dim), square(dim * dim), omega(reinterpret_cast<const Omega<T>*>(omega)),
        range(reinterpret_cast<const Range<T>*>(ranges)) {
    auto take = [&memory](std::ptrdiff_t count) {
      V* start = memory;
      memory += count;
      return start;
    };
    xx = take(layers * square);
    xy = take(layers * dim);
    yy = take(layers);
    sxy = take(layers * dim);
    t = take(layers * dim);
    square_xx = take(square);
    temporary = take(square);
    gradient = take(square);
    spare = take(3 * square);
    row = take((layers + 1) * (dim + 1));
    column = take((layers + 1) * (dim + 1));
    xy_gradient = take(dim);
    f = take(dim);
    h = take(dim);
    m = take(dim);
    result = take(dim + 1);
    omega_gradient = take(4 * layers);
    factor = take(layers);
    by_inputs = take(layers);
    by_labels = take(layers);
  }

  View<V, Order::rows, Size> whole(const V* matrix) const { return {matrix, dim}; }

  void load(const T* gram, int filled) {
    constexpr int width = Lanes<T>::width;
    const int e = dim + 1;
    for (int lane = 0; lane < width; ++lane) {
      const T* matrix = gram + (std::ptrdiff_t)lane * e * e;
      auto entry = [&](int i, int j) { return lane < filled ? matrix[i * e + j] : T(0); };
      for (int i = 0; i < dim; ++i) {
        for (int j = 0; j < dim; ++j) reinterpret_cast<T*>(xx + i * dim + j)[lane] = entry(i, j);
        reinterpret_cast<T*>(xy + i)[lane] = entry(i, dim);
      }
      reinterpret_cast<T*>(yy)[lane] = entry(dim, dim);
    }
    // The context is scaled once so that its inputs are inside of the range
    const V scale = context_factor<T>(xx, dim, dim, range[0], spare, inside);
    if (inside) return;
    for (int i = 0; i < square; ++i) xx[i] *= scale;
    for (int i = 0; i < dim; ++i) xy[i] *= scale;
    yy[0] *= scale;
  }

  // `square_s` is S^2, or null where it is not known
  void damp(int l, const V* square_s) {
    const V* s = xx + l * square;
    const bool undamped = l == 0 && inside && all(yy[0] <= range[0].kappa);
    const Damping<T> damping = undamped ? Damping<T>() : Damping<T>(s, dim, dim, yy[l], range[l], spare, square_s);
    factor[l] = damping.factor;
    by_inputs[l] = damping.by_inputs;
    by_labels[l] = damping.by_labels;
  }

  // The four numbers of a layer, divided by r of each sequence
  Omega<V> divided(int l) const {
    const Omega<T> w = omega[l];
    return {w.xx * factor[l], w.xy * factor[l], w.yx * factor[l], w.yy * factor[l]};
  }

  void store_group(T* out, std::int64_t first, int filled) const {
    store_lanes<T>(out + first * 4 * layers, omega_gradient, 4 * layers, filled);
  }

  void store_sums(T*) const {}

  void layer(int l) {
    const V *s = xx + l * square, *a = xy + l * dim, lambda = yy[l];
    symmetric_product<T>(square_xx, whole(s), whole(s), dim);
    damp(l, square_xx);
    const Omega<V> w = divided(l);
    V *sa = sxy + l * dim, *tl = t + l * dim;
    V *s_next = xx + (l + 1) * square, *a_next = xy + (l + 1) * dim;
    apply<T, Store::assign>(sa, whole(s), a, dim);
    symmetric_product<T>(temporary, whole(square_xx), whole(s), dim);
    const V d = T(1) + w.yy * lambda, aa = dot<T>(a, a, dim), asa = dot<T>(a, sa, dim);
    for (int i = 0; i < dim; ++i) {
      const V p = a[i] + w.xx * sa[i];
      tl[i] = w.yx * sa[i] + d * a[i];
      f[i] = w.xy * p + (T(0.5) * lambda * w.xy * w.xy) * a[i];  // (A a) b' + b (A a)' + l b b' = f a' + a f'
    }
    const V twice = T(2) * w.xx, squared = w.xx * w.xx;
    for (int i = 0; i < dim; ++i)
      for (int j = 0; j < dim; ++j) {
        const int at = i * dim + j;
        s_next[at] = s[at] + twice * square_xx[at] + squared * temporary[at] + f[i] * a[j] + a[i] * f[j];
      }
    apply<T, Store::assign>(h, whole(s), tl, dim);
    const V g = w.xy * (w.yx * aa + lambda * d);
    for (int i = 0; i < dim; ++i) a_next[i] = tl[i] + w.xx * h[i] + g * a[i];
    yy[l + 1] = w.yx * w.yx * asa + T(2) * w.yx * d * aa + d * d * lambda;
  }

  // T v for a column v, or r' T for a row r where w_xy and w_yx have changed places
  void times(int l, const V* v, V* out, Omega<V> w) {
    const V *s = xx + l * square, *a = xy + l * dim;
    apply<T, Store::assign>(out, whole(s), v, dim);
    for (int i = 0; i < dim; ++i) out[i] = v[i] + w.xx * out[i] + w.xy * v[dim] * a[i];
    out[dim] = v[dim] * (T(1) + w.yy * yy[l]) + w.yx * dot<T>(a, v, dim);
  }

  Omega<V> transposed(Omega<V> w) const { return {w.xx, w.yx, w.xy, w.yy}; }

  void forward() {
    const int e = dim + 1;
    for (int l = 0; l + 1 < layers; ++l) layer(l);
    damp(layers - 1, nullptr);
    for (int j = 0; j < e; ++j) row[(layers - 1) * e + j] = V{} + T(j == dim);
    for (int l = layers - 1; l >= 0; --l)
      times(l, row + l * e, l > 0 ? row + (l - 1) * e : result, transposed(divided(l)));
  }

  // Gradients in the four numbers of every layer, per sequence, given the gradient in `result` as column[0]
  void backward() {
    const int e = dim + 1;
    for (int l = 0; l + 1 < layers; ++l)
      times(l, column + l * e, column + (l + 1) * e, divided(l));
    for (int i = 0; i < square; ++i) gradient[i] = V{};
    for (int i = 0; i < dim; ++i) xy_gradient[i] = V{};
    yy_gradient = V{};
    for (int l = layers - 1; l >= 0; --l) {
      V* w_gradient = omega_gradient + 4 * l;
      for (int i = 0; i < 4; ++i) w_gradient[i] = V{};
      if (l + 1 < layers) through_layer(l, w_gradient);
      through_readout(l, w_gradient);
      through_divisor(l, w_gradient);
    }
  }

  // From the gradients in w / r to those in w, and through r to S and l
  void through_divisor(int l, V* w_gradient) {
    const Omega<V> w = divided(l);
    const V along = w.xx * w_gradient[0] + w.xy * w_gradient[1] + w.yx * w_gradient[2] + w.yy * w_gradient[3];
    for (int i = 0; i < 4; ++i) w_gradient[i] *= factor[l];
    if (l == 0) return;
    subtract_log_divisor<T>(gradient, xx + l * square, dim, dim, along, by_inputs[l], spare);
    yy_gradient -= along * by_labels[l];
  }

  // From the gradients in the next (S, a, l) to those in this one
  void through_layer(int l, V* w_gradient) {
    const Omega<V> w = divided(l);
    const V *s = xx + l * square, *a = xy + l * dim, *sa = sxy + l * dim, *tl = t + l * dim, lambda = yy[l];
    const V d = T(1) + w.yy * lambda, aa = dot<T>(a, a, dim), asa = dot<T>(a, sa, dim);
    V *x = temporary, *n = square_xx, *ga = f, *gsa = h;
    product<T, Store::assign>(x, whole(gradient), whole(s), dim);  // X = G S, with G the gradient in S'
    apply<T, Store::assign>(ga, whole(gradient), a, dim);
    apply<T, Store::assign>(gsa, whole(x), a, dim);
    V xs = {};
    for (int i = 0; i < square; ++i) xs += x[i] * s[i];
    for (int i = 0; i < dim; ++i)  // A S A: gradient + 2w (X + X') + w^2 (N S + S N'), N = X + X'/2
      for (int j = 0; j < dim; ++j) n[i * dim + j] = x[i * dim + j] + T(0.5) * x[j * dim + i];
    const V twice = T(2) * w.xx, squared = w.xx * w.xx;
    for (int i = 0; i < dim; ++i)
      for (int j = 0; j < dim; ++j) gradient[i * dim + j] += twice * (x[i * dim + j] + x[j * dim + i]);
    product<T, Store::assign>(x, whole(n), whole(s), dim);
    V ns = {};
    for (int i = 0; i < square; ++i) ns += x[i] * s[i];
    for (int i = 0; i < dim; ++i)
      for (int j = 0; j < dim; ++j) gradient[i * dim + j] += squared * (x[i * dim + j] + x[j * dim + i]);
    V xx_sum = T(2) * xs + (T(4) / T(3)) * w.xx * ns;

    // a' = t + w_xx S t + g b, with b = w_xy a
    const V *beta = xy_gradient, mu = yy_gradient;
    V* t_gradient = m;
    apply<T, Store::assign>(t_gradient, whole(s), beta, dim);  // S beta
    xx_sum += dot<T>(t_gradient, tl, dim);
    for (int i = 0; i < dim; ++i) t_gradient[i] = beta[i] + w.xx * t_gradient[i];
    const V g = w.yx * aa + lambda * d, g_gradient = w.xy * dot<T>(beta, a, dim);
    const V aga = dot<T>(a, ga, dim);
    V d_gradient = dot<T>(t_gradient, a, dim) + g_gradient * lambda + mu * T(2) * (w.yx * aa + d * lambda);
    V yx_sum = dot<T>(t_gradient, sa, dim) + g_gradient * aa + mu * T(2) * (w.yx * asa + d * aa);
    V xy_sum = g * dot<T>(beta, a, dim);
    const V aa_gradient = g_gradient * w.yx + mu * T(2) * d * w.yx, asa_gradient = mu * w.yx * w.yx;
    yy_gradient = g_gradient * d + mu * d * d + w.xy * w.xy * aga;

    // (A a) b' + b (A a)' + l b b': gradients 2 G b in A a, and 2 G (A a) + 2 l G b in b
    V* sa_gradient = gsa;  // gsa[i] is read once, just before it is overwritten
    V* a_gradient = ga;
    for (int i = 0; i < dim; ++i) {
      const V p_gradient = T(2) * w.xy * ga[i];
      const V b_gradient = T(2) * (ga[i] + w.xx * gsa[i]) + T(2) * w.xy * lambda * ga[i];
      xx_sum += p_gradient * sa[i];
      xy_sum += b_gradient * a[i];
      sa_gradient[i] = w.xx * p_gradient + w.yx * t_gradient[i] + asa_gradient * a[i];
      a_gradient[i] = p_gradient + w.xy * b_gradient + w.xy * g * beta[i] + d * t_gradient[i] + asa_gradient * sa[i] +
                   T(2) * aa_gradient * a[i];
    }
    for (int i = 0; i < dim; ++i)  // rank two: w_xx (beta t' + t beta')/2 + (sa_gradient a' + a sa_gradient')/2
      for (int j = 0; j < dim; ++j)
        gradient[i * dim + j] += T(0.5) * (w.xx * (beta[i] * tl[j] + tl[i] * beta[j]) + sa_gradient[i] * a[j] +
                                        a[i] * sa_gradient[j]);
    apply<T, Store::add>(a_gradient, whole(s), sa_gradient, dim);
    for (int i = 0; i < dim; ++i) xy_gradient[i] = a_gradient[i];
    w_gradient[0] += xx_sum;
    w_gradient[1] += xy_sum;
    w_gradient[2] += yx_sum;
    w_gradient[3] += d_gradient * lambda;
    yy_gradient += d_gradient * w.yy;
  }

  // From R T v, the part of the prediction in which this layer's T stands between R and v
  void through_readout(int l, V* w_gradient) {
    const Omega<V> w = divided(l);
    const int e = dim + 1;
    const V *s = xx + l * square, *a = xy + l * dim, *r = row + l * e, *v = column + l * e;
    apply<T, Store::assign>(f, whole(s), v, dim);
    w_gradient[0] += dot<T>(r, f, dim);
    w_gradient[1] += dot<T>(r, a, dim) * v[dim];
    w_gradient[2] += dot<T>(a, v, dim) * r[dim];
    w_gradient[3] += r[dim] * v[dim] * yy[l];
    if (l == 0) return;
    for (int i = 0; i < dim; ++i) {
      xy_gradient[i] += w.xy * v[dim] * r[i] + w.yx * r[dim] * v[i];
      for (int j = 0; j < dim; ++j) gradient[i * dim + j] += T(0.5) * w.xx * (r[i] * v[j] + v[i] * r[j]);
    }
    yy_gradient += w.yy * r[dim] * v[dim];
  }
};

}  // namespace LINTRA_ISA
