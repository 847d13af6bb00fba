// Products of small matrices, many at once: an entry is a vector with one sequence per lane.
//
// A transpose is a way of reading and costs nothing. Either factor may be shared by all sequences; then its
// entries are plain numbers. Results are built in tiles that stay in registers.
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

// The side of a square matrix: known to the compiler for the sizes people use most, or not.
template <int n>
struct Static {
  constexpr operator int() const { return n; }
};
struct Dynamic {
  int n;
  operator int() const { return n; }
};

// One less: the number of inputs
template <int n>
constexpr Static<n - 1> one_less(Static<n>) {
  return {};
}
inline Dynamic one_less(Dynamic size) { return {size.n - 1}; }

enum class Order { rows, columns };  // a matrix as it lies in memory, or its transpose

template <class Entry, Order order, class Size>
struct View {
  const Entry* data;
  Size size;
  const Entry& at(int i, int j) const { return order == Order::rows ? data[i * size + j] : data[j * size + i]; }
  View<Entry, order == Order::rows ? Order::columns : Order::rows, Size> transposed() const { return {data, size}; }
};

enum class Store { assign, add };

template <class T, int rows, int cols, Store store, class A, class B, class Size>
inline __attribute__((always_inline)) void tile(Vec<T>* out, A a, B b, Size size, int i0, int j0) {
  Vec<T> sum[rows][cols];
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j) sum[i][j] = store == Store::add ? out[(i0 + i) * size + j0 + j] : Vec<T>{};
  for (int k = 0; k < size; ++k)
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < cols; ++j) sum[i][j] += a.at(i0 + i, k) * b.at(k, j0 + j);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j) out[(i0 + i) * size + j0 + j] = sum[i][j];
}

template <class T, int rows, Store store, class A, class B, class Size>
inline __attribute__((always_inline)) void tile_row(Vec<T>* out, A a, B b, Size size, int i0, int j0, int cols) {
  switch (cols) {
    case 1: return tile<T, rows, 1, store>(out, a, b, size, i0, j0);
    case 2: return tile<T, rows, 2, store>(out, a, b, size, i0, j0);
    case 3: return tile<T, rows, 3, store>(out, a, b, size, i0, j0);
    case 4: return tile<T, rows, 4, store>(out, a, b, size, i0, j0);
#if LINTRA_TILE_COLS > 4
    case 5: return tile<T, rows, 5, store>(out, a, b, size, i0, j0);
    case 6: return tile<T, rows, 6, store>(out, a, b, size, i0, j0);
#endif
  }
}

template <class T, Store store, class A, class B, class Size>
inline __attribute__((always_inline)) void tiles(Vec<T>* out, A a, B b, Size size, int i0, int rows, int j0, int cols) {
  switch (rows) {
    case 1: return tile_row<T, 1, store>(out, a, b, size, i0, j0, cols);
    case 2: return tile_row<T, 2, store>(out, a, b, size, i0, j0, cols);
    case 3: return tile_row<T, 3, store>(out, a, b, size, i0, j0, cols);
#if LINTRA_TILE_ROWS > 3
    case 4: return tile_row<T, 4, store>(out, a, b, size, i0, j0, cols);
#endif
  }
}

inline int at_most(int value, int limit) { return value < limit ? value : limit; }

// out (row-major) = or += a b
template <class T, Store store, class A, class B, class Size>
__attribute__((noinline)) void product(Vec<T>* out, A a, B b, Size size) {
  // equal shares leave no thin last tile: 11 columns are 6 + 5
  const int shares = (size + LINTRA_TILE_COLS - 1) / LINTRA_TILE_COLS, wide = (size + shares - 1) / shares;
  for (int j = 0; j < size; j += wide)
    for (int i = 0; i < size; i += LINTRA_TILE_ROWS)
      tiles<T, store>(out, a, b, size, i, at_most(LINTRA_TILE_ROWS, size - i), j, at_most(wide, size - j));
}

// out = a b where the result is known to be symmetric: the lower tiles are computed and mirrored
template <class T, class A, class B, class Size>
__attribute__((noinline)) void symmetric_product(Vec<T>* out, A a, B b, Size size) {
  constexpr int step = LINTRA_TILE_ROWS;
  for (int i = 0; i < size; i += step)
    for (int j = 0; j <= i; j += step)
      tiles<T, Store::assign>(out, a, b, size, i, at_most(step, size - i), j, at_most(step, size - j));
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < i; ++j) out[j * size + i] = out[i * size + j];
}

// out = or += a x, for a vector x
template <class T, Store store, class A, class B, class Size>
__attribute__((noinline)) void apply(Vec<T>* out, A a, const B* x, Size size) {
  for (int i = 0; i < size; i += 4) {
    const int rows = at_most(4, size - i);
    Vec<T> sum[4];
    for (int r = 0; r < rows; ++r) sum[r] = store == Store::add ? out[i + r] : Vec<T>{};
    for (int k = 0; k < size; ++k)
      for (int r = 0; r < rows; ++r) sum[r] += a.at(i + r, k) * x[k];
    for (int r = 0; r < rows; ++r) out[i + r] = sum[r];
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
  constexpr int width = Lanes<T>::width;
  T* numbers = reinterpret_cast<T*>(out);
  for (int lane = 0; lane < width; ++lane)
    for (int entry = 0; entry < entries; ++entry)
      numbers[entry * width + lane] = lane < filled ? data[(std::ptrdiff_t)lane * entries + entry] : T(0);
}

template <class T>
inline void store_lanes(T* data, const Vec<T>* values, int entries, int filled) {
  constexpr int width = Lanes<T>::width;
  const T* numbers = reinterpret_cast<const T*>(values);
  for (int lane = 0; lane < filled; ++lane)
    for (int entry = 0; entry < entries; ++entry)
      data[(std::ptrdiff_t)lane * entries + entry] = numbers[entry * width + lane];
}

}  // namespace LINTRA_ISA
