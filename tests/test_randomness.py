import ast
from pathlib import Path

import lintra

FIXED = {
    "bench": "inputs whose values do not matter, timed",
    "theory": "checks that always give the same answer",
    "evaluation/adjusted_loss.py": "shapes only: no numbers are drawn",
}


def test_no_function_draws_from_a_fixed_seed_without_a_reason():
    """None of `default_rng(0)`, `key(0)` and `f(key=0)`: error bars over seeds would be too small."""
    source, found = Path(lintra.__file__).parent, set()
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func).split(".")[-1]
            values = node.args if called in ("default_rng", "key", "PRNGKey") else []
            values = [*values, *(keyword.value for keyword in node.keywords if keyword.arg == "key")]
            if (values and all(isinstance(value, ast.Constant) for value in values)) or (
                called == "default_rng" and not values
            ):
                found.add(path.relative_to(source).as_posix())
    unexplained = {name for name in found if not any(name.startswith(prefix) for prefix in FIXED)}
    assert not unexplained
    assert all(any(name.startswith(prefix) for name in found) for prefix in FIXED)
