// FULL: forward and backward through layers T = I + sum_k P_k H Q_k, G <- T G T', for a group of sequences, where
// H = G / r is the Gram matrix, divided by r > 1 where it is outside of the range of training (damping.hpp).
//
// The prediction needs only the last row of C = T_L ... T_1, so it is built from the last layer backwards,
// and of the last layer only the last row of T is ever formed.
#pragma once

#include "damping.hpp"
#include "kernel.hpp"
#include "products.hpp"

namespace LINTRA_ISA {

template <class T, class Size>
struct Full {
  using V = Vec<T>;
  static constexpr int fewer = 0;  // `size` is d + 1

  int layers, heads;
  Size size;
  int square;             // entries of a matrix
  std::ptrdiff_t entries; // of all P
  const T *p, *q;         // layers x heads x size x size, shared by all sequences
  const Range<T>* range;  // per layer
  V *gram, *move, *left, *k, *u, *gradient;  // gram and move hold a matrix per layer
  V *row, *column;        // per layer: R = e' T_L ... T_{l+1} and v = T_{l-1} ... T_1 v_0
  V *p_gradient, *q_gradient;   // sums over sequences, still one per lane
  V *result, *spare;      // the last row of C, or all of it, and room for another
  V *factor, *by_inputs, *by_labels;  // per layer: 1 / r, and what its derivative needs
  V *damped, *room;       // H of one layer, and three matrices for the divisor
  bool inside;            // whether the inputs of all contexts are inside of the first layer's range

  static std::size_t scratch(Shape s) {  // in vectors
    const std::size_t m = (std::size_t)s.size * s.size, n = s.layers;
    return 2 * n * m + 10 * m + 2 * (n + 1) * s.size + 2 * n * s.heads * m + 3 * n;
  }

  Full(Shape s, Size size, const T* parameters, const T* ranges, V* memory)
      : layers(s.layers), heads(s.heads), size(size), square(size * size),
        entries((std::ptrdiff_t)s.layers * s.heads * square), p(parameters), q(parameters + entries),
        range(reinterpret_cast<const Range<T>*>(ranges)) {
    gram = memory;
    move = gram + layers * square;
    left = move + layers * square;
    k = left + square;
    u = k + square;
    gradient = u + square;
    row = gradient + square;
    column = row + (layers + 1) * size;
    p_gradient = column + (layers + 1) * size;
    q_gradient = p_gradient + entries;
    result = q_gradient + entries;
    spare = result + square;
    damped = spare + square;
    room = damped + square;
    factor = room + 3 * square;
    by_inputs = factor + layers;
    by_labels = by_inputs + layers;
    for (std::ptrdiff_t i = 0; i < 2 * entries; ++i) p_gradient[i] = V{};
  }

  // The context is scaled once so that its inputs are inside of the range
  void load(const T* data, int filled) {
    load_lanes<T>(gram, data, square, filled);
    const V scale = context_factor<T>(gram, one_less(size), size, range[0], room, inside);
    if (inside) return;
    for (int i = 0; i < square; ++i) gram[i] *= scale;
  }

  // H of a layer: G itself where all sequences are inside of the range
  const V* divided(int l) {
    const V* g = gram + l * square;
    const V labels = g[square - 1];
    const bool undamped = l == 0 && inside && all(labels <= range[0].kappa);
    const Damping<T> damping = undamped ? Damping<T>() : Damping<T>(g, one_less(size), size, labels, range[l], room);
    factor[l] = damping.factor;
    by_inputs[l] = damping.by_inputs;
    by_labels[l] = damping.by_labels;
    return damping.inside ? g : times_factor(l);
  }

  const V* times_factor(int l) {
    for (int i = 0; i < square; ++i) damped[i] = gram[l * square + i] * factor[l];
    return damped;
  }

  bool is_inside(int l) const {
    for (int lane = 0; lane < Lanes<T>::width; ++lane)
      if (factor[l][lane] != 1) return false;
    return true;
  }

  // From S = D + D', with D the gradient in H, to the same for G: H = G / r, where r depends on G
  void through_divisor(int l, const V* of_h) {
    const V *g = gram + l * square;
    V twice = {};  // 2 <D, H>
    for (int i = 0; i < square; ++i) twice += of_h[i] * g[i];
    twice *= factor[l];
    for (int i = 0; i < square; ++i) gradient[i] += factor[l] * of_h[i];
    subtract_log_divisor<T>(gradient, g, size - 1, size, twice, by_inputs[l], room);
    gradient[square - 1] -= twice * by_labels[l];
  }

  void store_group(T*, std::int64_t, int) const {}

  void store_sums(T* out) const {
    for (std::ptrdiff_t i = 0; i < 2 * entries; ++i) out[i] = add_lanes<T>(p_gradient[i]);
  }

  View<V, Order::rows, Size> whole(const V* matrix) const { return {matrix, size}; }
  View<T, Order::rows, Size> shared(const T* matrices, int layer, int head) const {
    return {matrices + (std::ptrdiff_t)(layer * heads + head) * square, size};
  }

  // T of a layer into move
  void layer_map(int l) {
    V* t = move + l * square;
    const V* g = divided(l);
    for (int head = 0; head < heads; ++head) {
      product<T, Store::assign>(left, shared(p, l, head), whole(g), size);
      if (head == 0)
        product<T, Store::assign>(t, whole(left), shared(q, l, head), size);
      else
        product<T, Store::add>(t, whole(left), shared(q, l, head), size);
    }
    for (int i = 0; i < size; ++i) t[i * size + i] += T(1);
  }

  // G of the next layer into gram
  void layer_gram(int l) {
    const V *t = move + l * square, *g = gram + l * square;
    product<T, Store::assign>(left, whole(t), whole(g), size);
    symmetric_product<T>(gram + (l + 1) * square, whole(left), whole(t).transposed(), size);
  }

  // The last row of the last T: e' + sum_k (e' P_k) H Q_k
  void last_row(V* out) {
    const Size e = size;
    const int l = layers - 1;
    const V* g = divided(l);
    for (int j = 0; j < e; ++j) out[j] = V{};
    for (int head = 0; head < heads; ++head) {
      apply<T, Store::assign>(left, whole(g), &shared(p, l, head).at(e - 1, 0), e);
      apply<T, Store::add>(out, shared(q, l, head).transposed(), left, e);
    }
    out[e - 1] += T(1);
  }

  // All layers. Keeps R of every layer in row; `result` becomes the last row of C
  void forward() {
    const Size e = size;
    for (int l = 0; l + 1 < layers; ++l) {
      layer_map(l);
      layer_gram(l);
    }
    for (int j = 0; j < e; ++j) row[(layers - 1) * e + j] = V{} + T(j == e - 1);
    V* next = layers > 1 ? row + (layers - 2) * e : result;
    last_row(next);
    for (int l = layers - 2; l >= 0; --l) {
      V* out = l > 0 ? row + (l - 1) * e : result;
      apply<T, Store::assign>(out, whole(move + l * square).transposed(), row + l * e, e);
    }
  }

  // Adds to p_gradient and q_gradient, given the gradient of the loss in `result` as column[0]
  void backward() {
    const Size e = size;
    const int last = layers - 1;
    for (int l = 0; l < last; ++l)
      apply<T, Store::assign>(column + (l + 1) * e, whole(move + l * square), column + l * e, e);
    backward_last();
    for (int l = last - 1; l >= 0; --l) backward_layer(l);
  }

  V* sum_of(V* sums, int layer, int head) const {
    return sums + (std::ptrdiff_t)(layer * heads + head) * square;
  }

  // Here the gradient of T has one row, v, so that everything is an outer product
  void backward_last() {
    const Size e = size;
    const int l = layers - 1;
    const bool inside = is_inside(l);
    const V *h = inside ? gram + l * square : times_factor(l), *v = column + l * e;
    V* of_h = inside ? gradient : left;
    for (int i = 0; i < square; ++i) of_h[i] = V{};
    for (int head = 0; head < heads; ++head) {
      const T* p_row = &shared(p, l, head).at(e - 1, 0);
      V *vq = u, *hp = k;
      apply<T, Store::assign>(vq, shared(q, l, head), v, e);
      apply<T, Store::assign>(hp, whole(h), p_row, e);
      apply<T, Store::add>(sum_of(p_gradient, l, head) + (e - 1) * e, whole(h), vq, e);
      V* q_sum = sum_of(q_gradient, l, head);
      for (int i = 0; i < e; ++i)
        for (int j = 0; j < e; ++j) {
          q_sum[i * e + j] += hp[i] * v[j];
          of_h[i * e + j] += p_row[i] * vq[j] + p_row[j] * vq[i];
        }
    }
    if (inside) return;
    for (int i = 0; i < square; ++i) gradient[i] = V{};
    through_divisor(l, of_h);
  }

  // `gradient` holds S, the gradient of the loss in the next Gram matrix plus its transpose
  void backward_layer(int l) {
    const Size e = size;
    const bool inside = is_inside(l);
    const V *g = gram + l * square, *t = move + l * square, *r = row + l * e, *v = column + l * e;
    const V* h = inside ? g : times_factor(l);
    V *t_gradient = left, *of_h = inside ? gradient : spare;
    product<T, Store::assign>(k, whole(gradient), whole(t), e);
    for (int i = 0; i < e; ++i)
      for (int j = 0; j < e; ++j) t_gradient[i * e + j] = r[i] * v[j];
    product<T, Store::add>(t_gradient, whole(k), whole(g), e);
    if (l > 0) symmetric_product<T>(gradient, whole(t).transposed(), whole(k), e);
    if (!inside)
      for (int i = 0; i < square; ++i) of_h[i] = V{};
    for (int head = 0; head < heads; ++head) {
      const auto p_head = shared(p, l, head), q_head = shared(q, l, head);
      product<T, Store::assign>(u, whole(t_gradient), q_head.transposed(), e);
      product<T, Store::add>(sum_of(p_gradient, l, head), whole(u), whole(h), e);
      if (l > 0) {
        product<T, Store::assign>(k, p_head.transposed(), whole(u), e);
        for (int i = 0; i < e; ++i)
          for (int j = 0; j < e; ++j) of_h[i * e + j] += k[i * e + j] + k[j * e + i];
      }
      product<T, Store::assign>(u, p_head.transposed(), whole(t_gradient), e);
      product<T, Store::add>(sum_of(q_gradient, l, head), whole(h), whole(u), e);
    }
    if (l > 0 && !inside) through_divisor(l, of_h);
  }
};

}  // namespace LINTRA_ISA
