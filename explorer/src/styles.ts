/** The style of each method: one colour, mark and dash in all views, as in lintra's figures. */

export interface Style {
  label: string;
  colour: string; // a CSS variable, so that dark mode can lighten it
  dash?: string;
  mark: "circle" | "square" | "triangle" | "diamond" | "cross" | "star" | "ring";
}

const style = (label: string, name: string, mark: Style["mark"], dash?: string): Style => ({
  label,
  colour: `var(--${name})`,
  mark,
  dash,
});

export const STYLES = {
  "gd++": style("GD++", "gdpp", "circle"),
  diag: style("Diag", "diag", "square"),
  full: style("Full", "full", "triangle"),
  "const-ridge": style("ConstRR", "const-ridge", "diamond", "9 3"),
  "ada-ridge": style("AdaRR", "ada-ridge", "diamond", "5 3"),
  "tuned-ridge": style("TunedRR", "tuned-ridge", "diamond", "8 2 2 2"),
  bayes: style("Bayes", "bayes", "diamond", "2 2"),
  ols: style("OLS", "ols", "cross", "1 4"),
  oracle: style("Oracle", "oracle", "star"),
  truth: style("Truth", "truth", "ring", "12 3 2 3"),
} satisfies Record<string, Style>;

export type Method = keyof typeof STYLES;
export const BASELINES = ["bayes", "tuned-ridge", "ada-ridge", "const-ridge", "ols"] as const;
export type Baseline = (typeof BASELINES)[number];
