/** Small dense matrices, row after row in one array, and the eigenvalues of symmetric ones. */

export type Vector = Float64Array;
export type Matrix = Float64Array; // size × size

/** The identity. */
export function identity(size: number): Matrix {
  const result = new Float64Array(size * size);
  for (let i = 0; i < size; i++) result[i * size + i] = 1;
  return result;
}

/** `a b` for square matrices. */
export function multiply(a: Matrix, b: Matrix, size: number): Matrix {
  const result = new Float64Array(size * size);
  for (let i = 0; i < size; i++) {
    for (let k = 0; k < size; k++) {
      const factor = a[i * size + k];
      if (factor === 0) continue;
      for (let j = 0; j < size; j++) result[i * size + j] += factor * b[k * size + j];
    }
  }
  return result;
}

/** `a bᵀ` for square matrices. */
export function multiplyTransposed(a: Matrix, b: Matrix, size: number): Matrix {
  const result = new Float64Array(size * size);
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < size; j++) {
      let sum = 0;
      for (let k = 0; k < size; k++) sum += a[i * size + k] * b[j * size + k];
      result[i * size + j] = sum;
    }
  }
  return result;
}

/** The inner product of two vectors. */
export function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/** `a − b`. */
export function subtract(a: ArrayLike<number>, b: ArrayLike<number>): Vector {
  return Float64Array.from(a, (value, i) => value - b[i]);
}

/** `½‖a − b‖²`, the loss of weights a where b would be right; infinite where a has overflowed. */
export function halfSquare(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] - b[i]) ** 2;
  return Number.isNaN(sum) ? Infinity : sum / 2;
}

export interface Eigen {
  values: Vector; // ascending
  vectors: Matrix; // the k-th eigenvector is row k
}

const SWEEPS = 30;

/** Eigenvalues and eigenvectors of a symmetric matrix, by Jacobi's rotations. */
export function eigen(symmetric: Matrix, size: number): Eigen {
  const a = symmetric.slice();
  const rows = identity(size);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    let rotated = false;
    for (let p = 0; p < size; p++) {
      for (let q = p + 1; q < size; q++) rotated = rotate(a, rows, size, p, q) || rotated;
    }
    if (!rotated) break;
  }
  const order = Array.from({ length: size }, (_, i) => i).sort((i, j) => a[i * size + i] - a[j * size + j]);
  const vectors = new Float64Array(size * size);
  order.forEach((from, to) => vectors.set(rows.subarray(from * size, (from + 1) * size), to * size));
  return { values: Float64Array.from(order, (i) => a[i * size + i]), vectors };
}

/** Rotate so that the entry (p, q) becomes zero; false if it is negligible beside the diagonal already. */
function rotate(a: Matrix, rows: Matrix, size: number, p: number, q: number): boolean {
  const [app, aqq, apq] = [a[p * size + p], a[q * size + q], a[p * size + q]];
  if (Math.abs(apq) <= 1e-17 * Math.sqrt(Math.abs(app * aqq)) || apq === 0) return false;
  const theta = (aqq - app) / (2 * apq);
  const t = Math.sign(theta || 1) / (Math.abs(theta) + Math.hypot(theta, 1));
  const c = 1 / Math.hypot(t, 1);
  const s = t * c;
  for (let k = 0; k < size; k++) {
    const [akp, akq] = [a[k * size + p], a[k * size + q]];
    a[k * size + p] = c * akp - s * akq;
    a[k * size + q] = s * akp + c * akq;
  }
  for (let k = 0; k < size; k++) {
    const [apk, aqk] = [a[p * size + k], a[q * size + k]];
    a[p * size + k] = c * apk - s * aqk;
    a[q * size + k] = s * apk + c * aqk;
    const [rp, rq] = [rows[p * size + k], rows[q * size + k]];
    rows[p * size + k] = c * rp - s * rq;
    rows[q * size + k] = s * rp + c * rq;
  }
  a[p * size + q] = a[q * size + p] = 0;
  return true;
}
