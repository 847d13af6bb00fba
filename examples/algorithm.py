# What has a trained model learned? DIAG with three layers, on noise from 0 to 5:
import jax
import numpy as np

from lintra import zoo

model = zoo.load("diag-3-uniform(0,5)")
print(np.round(np.asarray(model.omega), 3))

# Four numbers a layer: ω_xx is a preconditioner, ω_xy a memory of labels in the inputs, ω_yx a step along the
# gradient and ω_yy a rescaling of labels that depends on how large they are. In sentences:
from lintra.anatomy import explain

explanation = explain(model, "uniform(0,5)", num_sequences=8192, key=jax.random.key(0))
for sentence in explanation.sentences:
    print("-", sentence)

# The last column is what the loss becomes if one number is set to zero.
for row in explanation.ablation[:6]:
    print({name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()})

# The algorithm as a program that needs NumPy alone:
from lintra.anatomy.program import export

print(export(model, title="diag-3-uniform(0,5)", noise="uniform(0,5)", form="pseudo-code"))
