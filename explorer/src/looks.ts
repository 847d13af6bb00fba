/** How every method is drawn: the same colour, mark and dash in every view, and as in lintra's figures. */

export interface Look {
  label: string;
  colour: string; // a CSS variable, so that dark mode can lighten it
  dash?: string;
  mark: "circle" | "square" | "triangle" | "diamond" | "cross" | "star" | "ring";
}

const look = (label: string, name: string, mark: Look["mark"], dash?: string): Look => ({
  label,
  colour: `var(--${name})`,
  mark,
  dash,
});

export const LOOKS = {
  "gd++": look("GD++", "gdpp", "circle"),
  diag: look("Diag", "diag", "square"),
  full: look("Full", "full", "triangle"),
  "const-ridge": look("ConstRR", "const-ridge", "diamond", "9 3"),
  "ada-ridge": look("AdaRR", "ada-ridge", "diamond", "5 3"),
  "tuned-ridge": look("TunedRR", "tuned-ridge", "diamond", "8 2 2 2"),
  bayes: look("Bayes", "bayes", "diamond", "2 2"),
  ols: look("OLS", "ols", "cross", "1 4"),
  oracle: look("Oracle", "oracle", "star"),
  truth: look("Truth", "truth", "ring", "12 3 2 3"),
} satisfies Record<string, Look>;

export type Method = keyof typeof LOOKS;
export const BASELINES = ["bayes", "tuned-ridge", "ada-ridge", "const-ridge", "ols"] as const;
export type Baseline = (typeof BASELINES)[number];
