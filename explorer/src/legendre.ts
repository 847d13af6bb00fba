/** Gauss–Legendre quadrature on [−1, 1]. */

import type { Vector } from "./matrix";

/** Nodes, ascending, and node weights, by Newton's method on the Legendre polynomial. */
export function gaussLegendre(order: number): { nodes: Vector; nodeWeights: Vector } {
  const nodes = new Float64Array(order);
  const nodeWeights = new Float64Array(order);
  for (let i = 0; i < order; i++) {
    let x = -Math.cos((Math.PI * (i + 0.75)) / (order + 0.5));
    let derivative = 0;
    for (let step = 0; step < 10; step++) {
      let value: number;
      [value, derivative] = legendre(order, x);
      x -= value / derivative;
    }
    nodes[i] = x;
    nodeWeights[i] = 2 / ((1 - x * x) * derivative * derivative);
  }
  return { nodes, nodeWeights };
}

/** The Legendre polynomial and its derivative. */
function legendre(order: number, x: number): [number, number] {
  let [previous, current] = [1, x];
  for (let k = 2; k <= order; k++) {
    [previous, current] = [current, ((2 * k - 1) * x * current - (k - 1) * previous) / k];
  }
  return [current, (order * (x * current - previous)) / (x * x - 1)];
}
