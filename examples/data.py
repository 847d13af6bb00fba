# Ten measurements of 442 people, and how their diabetes went on. Say only 20 of them have been followed, and the
# labels are noisy.
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import BayesianRidge, LinearRegression, RidgeCV

from lintra import LinearTransformerRegressor

X, y = map(np.asarray, load_diabetes(return_X_y=True))
y = (y - y.mean()) / y.std()
rng = np.random.default_rng(0)

# Fifty times: draw 20 people, fit, and predict all others.
regressors = {
    "lintra": LinearTransformerRegressor(),
    "RidgeCV": RidgeCV(np.logspace(-2, 3, 16)),
    "BayesianRidge": BayesianRidge(),
    "least squares": LinearRegression(),
}
errors = {name: [] for name in regressors}
for _ in range(50):
    order = rng.permutation(len(X))
    seen, other = order[:20], order[20:]
    labels = y[seen] + rng.normal(size=20)
    for name, regressor in regressors.items():
        errors[name].append(np.mean((regressor.fit(X[seen], labels).predict(X[other]) - y[other]) ** 2))
for name, values in errors.items():
    print(f"{name:14} {np.mean(values):.3f} ± {np.std(values) / 50**0.5:.3f}")

# An error of 1 is what predicting the mean gives. The regressor shows its way to the answer, layer by layer, and
# the noise level that it acts on, in the labels' own unit.
fitted = regressors["lintra"]
print(np.round(np.linalg.norm(fitted.coef_path_, axis=1), 2))
print(f"noise {fitted.noise_:.2f}")
