# A task is a family, a number of layers and a noise prior; everything else has the paper's values: 10 inputs, 20
# examples. GD++ is fitted to its exact loss in seconds, so it is the quickest to play with.
import lintra
from lintra.evaluation import closed_form

models, losses = {}, {}
for layers in (1, 2, 3):
    trained = lintra.train(lintra.Task("gd++", layers, "uniform(0,5)"), num_sequences=50_000)
    models[f"gd++-{layers}"], losses[layers] = trained.model, trained.loss
    print(f"L = {layers}: {trained.loss.mean:.3f} ± {trained.loss.standard_error:.3f}")

# GD++ cannot adapt to the noise: at any depth it stays above constant ridge regression with the mean noise
# variance. This floor is known exactly.

problem = lintra.NoisyRegression(noise="uniform(0,5)")
floor = closed_form.adjusted(closed_form.constant_ridge_loss(problem), problem)
print(f"floor of GD++: {float(floor):.4f}")

# DIAG has two numbers more a layer, and with them it reads the noise level from the data. It takes half a minute,
# so here it is smaller: three inputs and two layers.
small = lintra.Task("diag", 2, "uniform(0,3)", dim=3, context=8)
trained = lintra.train(small, num_sequences=50_000)
print(f"DIAG: {trained.loss.mean:.4f}, worst sequence {trained.tail.worst:.2f}")

# A model is a small file of weights, with a checksum and what it was trained on.
import tempfile
from pathlib import Path

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "diag.safetensors"
    lintra.save(trained.model, path, noise="uniform(0,3)")
    print(path.stat().st_size, "bytes;", lintra.load(path).omega.shape, "numbers ω")
