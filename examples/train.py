# A model is specified by a family, a number of layers and a noise prior. Everything else has the paper's values:
# 10 inputs, 20 examples. GD++ is fitted to its exact loss in seconds, so it is the quickest to try.
import lintra
from lintra.evaluation import closed_form

models, losses = {}, {}
for num_layers in (1, 2, 3):
    result = lintra.train(lintra.ModelSpec("gd++", num_layers, "uniform(0,5)"), num_sequences=50_000)
    models[f"gd++-{num_layers}"], losses[num_layers] = result.model, result.loss
    print(f"L = {num_layers}: {result.loss.mean:.3f} ± {result.loss.standard_error:.3f}")

# GD++ cannot adapt to the noise: at any depth its loss is above that of constant ridge regression with the mean
# noise variance. This floor is known exactly.

problem = lintra.NoisyRegression(noise="uniform(0,5)")
floor = closed_form.adjusted(closed_form.constant_ridge_loss(problem), problem)
print(f"floor of GD++: {float(floor):.4f}")

# DIAG has two more parameters per layer, with which it estimates the noise level from the data. Training takes
# half a minute, so this one is smaller: three inputs and two layers.
small = lintra.ModelSpec("diag", 2, lintra.NoisyRegression(3, 8, "uniform(0,3)"))
result = lintra.train(small, num_sequences=50_000)
print(f"DIAG: {result.loss.mean:.4f}, worst sequence {result.tail.worst:.2f}, sound: {result.is_sound}")

# A model is stored in a small file, with a checksum and the noise prior of its training.
import tempfile
from pathlib import Path

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "diag.safetensors"
    lintra.save(result.model, path, noise="uniform(0,3)")
    print(path.stat().st_size, "bytes;", lintra.load(path).omega.shape, "numbers ω")
