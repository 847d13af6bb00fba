// Products of small matrices, many at once: an entry is a vector with one sequence per lane.
//
// A matrix is addressed by strides, so that a transpose costs nothing. Either factor may be shared by all
// sequences; then its entries are plain numbers. Results are built in tiles that stay in registers.
#pragma once

#include <cstddef>

namespace LINTRA_ISA {

template <class T>
struct Lanes {
  typedef T type __attribute__((vector_size(LINTRA_VECTOR_BYTES)));
  static constexpr int width = LINTRA_VECTOR_BYTES / sizeof(T);
};

template <class T>
using Vec = typename Lanes<T>::type;

template <class Entry>
struct View {  // entry (i, j) is at data[i * row + j * col]
  const Entry* data;
  std::ptrdiff_t row, col;
  View transposed() const { return {data, col, row}; }
  const Entry& at(int i, int j) const { return data[i * row + j * col]; }
};

enum class Store { assign, add };

template <class T, int rows, int cols, Store store, class A, class B>
inline __attribute__((always_inline)) void tile(Vec<T>* out, int stride, View<A> a, View<B> b, int inner, int i0,
                                                int j0) {
  Vec<T> sum[rows][cols];
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j)
      sum[i][j] = store == Store::add ? out[(i0 + i) * stride + j0 + j] : Vec<T>{};
  const A* left[rows];
  const B* right[cols];
  for (int i = 0; i < rows; ++i) left[i] = &a.at(i0 + i, 0);
  for (int j = 0; j < cols; ++j) right[j] = &b.at(0, j0 + j);
  for (int k = 0; k < inner; ++k) {
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < cols; ++j) sum[i][j] += left[i][k * a.col] * right[j][k * b.row];
  }
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j) out[(i0 + i) * stride + j0 + j] = sum[i][j];
}

template <class T, int rows, Store store, class A, class B>
inline void tile_row(Vec<T>* out, int stride, View<A> a, View<B> b, int inner, int i0, int j0, int cols) {
  switch (cols) {
    case 1: return tile<T, rows, 1, store>(out, stride, a, b, inner, i0, j0);
    case 2: return tile<T, rows, 2, store>(out, stride, a, b, inner, i0, j0);
    case 3: return tile<T, rows, 3, store>(out, stride, a, b, inner, i0, j0);
    case 4: return tile<T, rows, 4, store>(out, stride, a, b, inner, i0, j0);
#if LINTRA_TILE_COLS > 4
    case 5: return tile<T, rows, 5, store>(out, stride, a, b, inner, i0, j0);
    case 6: return tile<T, rows, 6, store>(out, stride, a, b, inner, i0, j0);
#endif
  }
}

template <class T, Store store, class A, class B>
inline void tiles(Vec<T>* out, int stride, View<A> a, View<B> b, int inner, int i0, int rows, int j0, int cols) {
  switch (rows) {
    case 1: return tile_row<T, 1, store>(out, stride, a, b, inner, i0, j0, cols);
    case 2: return tile_row<T, 2, store>(out, stride, a, b, inner, i0, j0, cols);
    case 3: return tile_row<T, 3, store>(out, stride, a, b, inner, i0, j0, cols);
#if LINTRA_TILE_ROWS > 3
    case 4: return tile_row<T, 4, store>(out, stride, a, b, inner, i0, j0, cols);
#endif
  }
}

inline int at_most(int value, int limit) { return value < limit ? value : limit; }

// out (size x size, row-major) = or += a b
template <class T, Store store, class A, class B>
void product(Vec<T>* out, View<A> a, View<B> b, int size) {
  for (int j = 0; j < size;) {
    // equal shares leave no thin last tile: 11 columns are 6 + 5
    const int left = size - j, shares = (left + LINTRA_TILE_COLS - 1) / LINTRA_TILE_COLS;
    const int cols = (left + shares - 1) / shares;
    for (int i = 0; i < size; i += LINTRA_TILE_ROWS)
      tiles<T, store>(out, size, a, b, size, i, at_most(LINTRA_TILE_ROWS, size - i), j, cols);
    j += cols;
  }
}

// out = a b where the result is known to be symmetric: the lower tiles are computed and mirrored
template <class T, class A, class B>
void symmetric_product(Vec<T>* out, View<A> a, View<B> b, int size) {
  constexpr int step = LINTRA_TILE_ROWS;
  for (int i = 0; i < size; i += step)
    for (int j = 0; j <= i; j += step)
      tiles<T, Store::assign>(out, size, a, b, size, i, at_most(step, size - i), j, at_most(step, size - j));
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < i; ++j) out[j * size + i] = out[i * size + j];
}

// out = or += a x, for a vector x
template <class T, Store store, class A, class B>
inline void apply(Vec<T>* out, View<A> a, const B* x, int size) {
  for (int i = 0; i < size; ++i) {
    Vec<T> sum = store == Store::add ? out[i] : Vec<T>{};
    for (int k = 0; k < size; ++k) sum += a.at(i, k) * x[k];
    out[i] = sum;
  }
}

template <class T>
inline Vec<T> dot(const Vec<T>* a, const Vec<T>* b, int size) {
  Vec<T> sum = {};
  for (int k = 0; k < size; ++k) sum += a[k] * b[k];
  return sum;
}

template <class T>
inline T add_lanes(Vec<T> value) {
  T sum = 0;
  for (int lane = 0; lane < Lanes<T>::width; ++lane) sum += value[lane];
  return sum;
}

// Sequences lie one after the other, `entries` numbers each; lanes beyond `filled` are zero.
template <class T>
inline void load_lanes(Vec<T>* out, const T* data, int entries, int filled) {
  for (int entry = 0; entry < entries; ++entry) {
    Vec<T> value = {};
    for (int lane = 0; lane < filled; ++lane) value[lane] = data[(std::ptrdiff_t)lane * entries + entry];
    out[entry] = value;
  }
}

template <class T>
inline void store_lanes(T* data, const Vec<T>* values, int entries, int filled) {
  for (int entry = 0; entry < entries; ++entry)
    for (int lane = 0; lane < filled; ++lane) data[(std::ptrdiff_t)lane * entries + entry] = values[entry][lane];
}

}  // namespace LINTRA_ISA
