/** The sentence of view 1 about damping: whether the context is damped, and by how much. */

import { short } from "../chart";
import type { View } from "../view";

const ROUNDING = 1e-9; // a context scaled to ρ of layer 1 may exceed it by rounding

/** Write the sentence. */
export function drawDamping(note: HTMLElement, view: View): void {
  note.textContent = describe(view);
}

/** Whether anything was divided. */
export function isDamped({ divisors }: View): boolean {
  return divides(divisors.context) || divisors.layers.some(divides);
}

/** Whether a divisor is above one by more than rounding. */
export function divides(value: number): boolean {
  return value > 1 + ROUNDING;
}

/** A divisor above one; one that three digits cannot tell from 1 is not written as 1. */
export function divisorText(value: number): string {
  return value < 1.005 ? "just over 1" : short(value);
}

function describe(view: View): string {
  const { context, layers } = view.divisors;
  if (view.subject.model.damping === null) return "As printed: this model has no damping thresholds.";
  if (view.damping === null) return "As printed: damping is off.";
  if (!isDamped(view)) return "Not damped: inside the range of training.";
  const steps = layers.map((r, layer) => ({ r, layer: layer + 1 })).filter(({ r }) => divides(r));
  const parts = ["Damped: outside the range of training."];
  if (divides(context)) parts.push(`The Gram matrix is divided by ${divisorText(context)} before layer 1.`);
  if (steps.length === 1) parts.push(`The step of layer ${steps[0].layer} is divided by ${divisorText(steps[0].r)}.`);
  if (steps.length > 1) {
    parts.push(`Steps are divided by ${steps.map(({ r, layer }) => `${divisorText(r)} in layer ${layer}`).join(", ")}.`);
  }
  return parts.join(" ");
}
