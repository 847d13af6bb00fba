# A noise prior is a word: `uniform(0,5)`, `fixed(2)`, `choice(1,3)`, or a choice with weights. Here one sequence
# in five is very noisy.
import jax

import lintra

problem = lintra.NoisyRegression(noise="choice(0.5:0.8,4:0.2)")
print(problem.noise, float(problem.noise.second_moment))

# How far apart are the baselines and the floor here? The Bayes predictor knows the prior, but not which level a
# sequence has.
names = ("const-ridge", "ada-ridge", "tuned-ridge", "bayes")
methods = {name: lintra.baseline(name, problem, key=jax.random.key(0)) for name in names}
measured = lintra.evaluate(methods, problem, num_sequences=20_000, key=jax.random.key(1))
for name in names:
    loss = measured.adjusted(name)
    print(f"{name:12} {loss.mean:.4f} ± {loss.standard_error:.4f}")

# A published model was trained on another prior. Is it any good on this one?
from lintra import zoo

strangers = {name: zoo.load(name) for name in ("full-7-uniform(0,5)", "full-7-choice(1,3)", "diag-7-uniform(0,5)")}
measured = lintra.evaluate(strangers, problem, num_sequences=20_000, key=jax.random.key(1))
for name in strangers:
    print(f"{name:20} {measured.adjusted(name).mean:.4f}")

# The model that was trained on all levels from 0 to 5 loses little; the one that knows only 1 and 3 is lost
# between them and beyond. To train one for this prior: `lintra train --family full --layers 7 --noise
# "choice(0.5:0.8,4:0.2)"`.
