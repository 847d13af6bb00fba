/** Long computations in idle time: a generator is run in short pieces, so that the page never freezes. */

const BUDGET_MS = 12; // at a time

/** Run a computation piece by piece; the returned function stops it. */
export function inIdleTime(work: Generator<void, void>): () => void {
  let stopped = false;
  function runSlice(): void {
    const end = performance.now() + BUDGET_MS;
    while (!stopped && performance.now() < end) {
      if (work.next().done) return;
    }
    if (!stopped) later(runSlice);
  }
  later(runSlice);
  return () => {
    stopped = true;
  };
}

function later(task: () => void): void {
  if ("requestIdleCallback" in window) window.requestIdleCallback(task, { timeout: 200 });
  else setTimeout(task, 4);
}
