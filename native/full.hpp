// FULL: forward and reverse through layers T = I + sum_k P_k G Q_k, G <- T G T', for a group of sequences.
//
// The prediction needs only the last row of C = T_L ... T_1, so it is built from the last layer backwards,
// and of the last layer only the last row of T is ever formed.
#pragma once

#include "products.hpp"

namespace LINTRA_ISA {

template <class Size>
struct Shape {
  int layers, heads;
  Size size;  // d + 1
};

template <class T, class Size>
struct Full {
  using V = Vec<T>;

  Shape<Size> shape;
  int square;           // entries of a matrix
  const T *p, *q;       // layers x heads x size x size, shared by all sequences
  V *gram, *move, *left, *k, *u, *slope;  // gram and move hold a matrix per layer
  V *row, *column;      // per layer: R = e' T_L ... T_{l+1} and v = T_{l-1} ... T_1 v_0
  V *p_slope, *q_slope; // sums over sequences, still one per lane

  static std::size_t scratch(Shape<Size> s) {  // in vectors
    const std::size_t m = (std::size_t)s.size * s.size, n = s.layers;
    return 2 * n * m + 4 * m + 2 * (n + 1) * s.size + 2 * n * s.heads * m;
  }

  Full(Shape<Size> s, const T* p, const T* q, V* memory) : shape(s), square(s.size * s.size), p(p), q(q) {
    gram = memory;
    move = gram + shape.layers * square;
    left = move + shape.layers * square;
    k = left + square;
    u = k + square;
    slope = u + square;
    row = slope + square;
    column = row + (shape.layers + 1) * shape.size;
    p_slope = column + (shape.layers + 1) * shape.size;
    q_slope = p_slope + (std::ptrdiff_t)shape.layers * shape.heads * square;
  }

  View<V, Order::rows, Size> whole(const V* matrix) const { return {matrix, shape.size}; }
  View<T, Order::rows, Size> shared(const T* matrices, int layer, int head) const {
    return {matrices + (std::ptrdiff_t)(layer * shape.heads + head) * square, shape.size};
  }

  // T of a layer into move
  void layer_map(int l) {
    V* t = move + l * square;
    const V* g = gram + l * square;
    for (int head = 0; head < shape.heads; ++head) {
      product<T, Store::assign>(left, shared(p, l, head), whole(g), shape.size);
      if (head == 0)
        product<T, Store::assign>(t, whole(left), shared(q, l, head), shape.size);
      else
        product<T, Store::add>(t, whole(left), shared(q, l, head), shape.size);
    }
    for (int i = 0; i < shape.size; ++i) t[i * shape.size + i] += T(1);
  }

  // G of the next layer into gram
  void layer_gram(int l) {
    const V *t = move + l * square, *g = gram + l * square;
    product<T, Store::assign>(left, whole(t), whole(g), shape.size);
    symmetric_product<T>(gram + (l + 1) * square, whole(left), whole(t).transposed(), shape.size);
  }

  // The last row of the last T: e' + sum_k (e' P_k) G Q_k
  void last_row(V* out) {
    const Size e = shape.size;
    const int l = shape.layers - 1;
    const V* g = gram + l * square;
    for (int j = 0; j < e; ++j) out[j] = V{};
    for (int head = 0; head < shape.heads; ++head) {
      apply<T, Store::assign>(left, whole(g), &shared(p, l, head).at(e - 1, 0), e);
      apply<T, Store::add>(out, shared(q, l, head).transposed(), left, e);
    }
    out[e - 1] += T(1);
  }

  // All layers. Keeps R of every layer in row; `result` becomes the last row of C
  void forward(V* result) {
    const Size e = shape.size;
    for (int l = 0; l + 1 < shape.layers; ++l) {
      layer_map(l);
      layer_gram(l);
    }
    for (int j = 0; j < e; ++j) row[(shape.layers - 1) * e + j] = V{} + T(j == e - 1);
    V* next = shape.layers > 1 ? row + (shape.layers - 2) * e : result;
    last_row(next);
    for (int l = shape.layers - 2; l >= 0; --l) {
      V* out = l > 0 ? row + (l - 1) * e : result;
      apply<T, Store::assign>(out, whole(move + l * square).transposed(), row + l * e, e);
    }
  }

  // Adds to p_slope and q_slope, given the slope of the loss in `result` as column[0]
  void reverse() {
    const Size e = shape.size;
    const int last = shape.layers - 1;
    for (int l = 0; l < last; ++l)
      apply<T, Store::assign>(column + (l + 1) * e, whole(move + l * square), column + l * e, e);
    reverse_last();
    for (int l = last - 1; l >= 0; --l) reverse_layer(l);
  }

  V* sum_of(V* sums, int layer, int head) const {
    return sums + (std::ptrdiff_t)(layer * shape.heads + head) * square;
  }

  // Here the slope of T has one row, v, so that everything is an outer product
  void reverse_last() {
    const Size e = shape.size;
    const int l = shape.layers - 1;
    const V *g = gram + l * square, *v = column + l * e;
    for (int i = 0; i < square; ++i) slope[i] = V{};
    for (int head = 0; head < shape.heads; ++head) {
      const T* p_row = &shared(p, l, head).at(e - 1, 0);
      V *vq = u, *gp = k;
      apply<T, Store::assign>(vq, shared(q, l, head), v, e);
      apply<T, Store::assign>(gp, whole(g), p_row, e);
      apply<T, Store::add>(sum_of(p_slope, l, head) + (e - 1) * e, whole(g), vq, e);
      V* q_sum = sum_of(q_slope, l, head);
      for (int i = 0; i < e; ++i)
        for (int j = 0; j < e; ++j) {
          q_sum[i * e + j] += gp[i] * v[j];
          slope[i * e + j] += p_row[i] * vq[j] + p_row[j] * vq[i];
        }
    }
  }

  // `slope` holds S, the slope of the loss in the next Gram matrix plus its transpose
  void reverse_layer(int l) {
    const Size e = shape.size;
    const V *g = gram + l * square, *t = move + l * square, *r = row + l * e, *v = column + l * e;
    V* t_slope = left;
    product<T, Store::assign>(k, whole(slope), whole(t), e);
    for (int i = 0; i < e; ++i)
      for (int j = 0; j < e; ++j) t_slope[i * e + j] = r[i] * v[j];
    product<T, Store::add>(t_slope, whole(k), whole(g), e);
    if (l > 0) symmetric_product<T>(slope, whole(t).transposed(), whole(k), e);
    for (int head = 0; head < shape.heads; ++head) {
      const auto p_head = shared(p, l, head), q_head = shared(q, l, head);
      product<T, Store::assign>(u, whole(t_slope), q_head.transposed(), e);
      product<T, Store::add>(sum_of(p_slope, l, head), whole(u), whole(g), e);
      if (l > 0) {
        product<T, Store::assign>(k, p_head.transposed(), whole(u), e);
        for (int i = 0; i < e; ++i)
          for (int j = 0; j < e; ++j) slope[i * e + j] += k[i * e + j] + k[j * e + i];
      }
      product<T, Store::assign>(u, p_head.transposed(), whole(t_slope), e);
      product<T, Store::add>(sum_of(q_slope, l, head), whole(g), whole(u), e);
    }
  }
};

}  // namespace LINTRA_ISA
