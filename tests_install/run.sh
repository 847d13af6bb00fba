#!/usr/bin/env bash
# Installs the package as a user would, with the oldest and with the newest supported jax, and runs the README's Python.
# Usage: tests_install/run.sh PYTHON
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH

"$python" -m venv "$work/tools"
"$work/tools/bin/python" -m pip install --quiet uv
uv() { "$work/tools/bin/uv" "$@"; }

# Only what is under version control: a kernel built in place must not get into the package.
mkdir "$work/source"
git ls-files -z | tar --null --files-from=- -cf - | tar -xf - -C "$work/source"

# What pyproject.toml says of jax. Its oldest version depends on the Python in use, since older ones have no wheels.
declared=$("$work/tools/bin/python" - <<'END'
import re, tomllib
dependencies = tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]
print(next(entry for entry in dependencies if re.match(r"jax\W", entry)))
END
)
version_of() {  # the version of jax that a resolution (lowest-direct or highest) chooses
  echo "$declared" | uv pip compile --quiet --no-header --no-annotate --python "$python" --resolution "$1" - |
    sed -n 's/^jax==//p'
}

for resolution in lowest-direct highest; do
  jax=$(version_of "$resolution")
  echo "jax $jax ($resolution):"
  uv venv --quiet --python "$python" "$work/$resolution"
  uv pip install --quiet --python "$work/$resolution/bin/python" "$work/source" "jax==$jax"
  "$work/$resolution/bin/python" -I tests_install/readme.py README.md
done
