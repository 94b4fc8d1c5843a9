#!/usr/bin/env bash
# Builds the Python package into dist/, installs it into an empty environment, checks its types, and
# runs its tests there and a real model through both the package and the command. All set-up
# included; needs Rust, a C compiler and Python 3.
#
#   usage: scripts/wheel.sh [--quick]      --quick builds what the tests of the workspace have
#   built: larger, slower, sooner
set -euo pipefail
cd "$(dirname "$0")/.."

profile=(--release)
folder=dist
if [[ ${1:-} == --quick ]]; then
  profile=(--profile dev)
  folder=target/wheel
fi
scripts/setup.sh wheel
# Where there is no wheel of Ray for this Python, its tests are skipped.
scripts/setup.sh ray || echo "skipped: tests of Ray (pip has no wheel of it for this Python)" | tee -a "${REGRAFT_SKIPPED:-/dev/null}"
rm -f "$folder"/regraft-*.whl
.venv/bin/maturin build "${profile[@]}" --quiet --interpreter .venv/bin/python --out "$folder"
wheel=$(echo "$folder"/regraft-*.whl)
echo "wheel: $wheel, $(($(stat -c %s "$wheel") / 1000)) kB"

# An environment with this wheel and nothing of the checkout. What it depends on is what .venv has:
# no network is needed.
fresh=target/wheel-environment
rm -rf "$fresh"
.venv/bin/python -m venv --without-pip "$fresh"
site=$(echo "$fresh"/lib/python*/site-packages)
echo "$PWD/$(echo .venv/lib/python*/site-packages)" >"$site/dependencies.pth"
# Where the distribution leaves ensurepip out, .venv has no pip of its own (scripts/setup.sh).
pip_of=.venv/bin/python
[[ -f .venv/.pip-of ]] && pip_of=$(cat .venv/.pip-of)
"$pip_of" -m pip --python "$fresh/bin/python" install --disable-pip-version-check --no-input --quiet --no-deps --no-index "$wheel"

.venv/bin/python -m mypy --python-executable "$fresh/bin/python"
(cd bench && ../.venv/bin/python -m mypy --config-file mypy.ini .)
(cd python/tests && "../../$fresh/bin/python" -m unittest --buffer)

# The smallest real network: the command, then the package.
store=$(mktemp -d)
trap 'rm -rf "$store"' EXIT
export REGRAFT_COST_STORE=$store/costs.sqlite
"$fresh/bin/regraft" zoo emit squeezenet-1.1 -o "$store/model.onnx" >/dev/null
"$fresh/bin/regraft" optimize "$store/model.onnx" -o "$store/command.onnx" --budget "${BUDGET:-10s}" --quiet
"$fresh/bin/python" - "$store" <<'PYTHON'
import sys
import time

start = time.perf_counter()
import regraft

took = time.perf_counter() - start
result = regraft.optimize(sys.argv[1] + "/model.onnx", budget=10)
print(f"package: {result.verdict}")
print(f"import regraft: {1e3 * took:.0f} ms")
assert regraft.check(sys.argv[1] + "/model.onnx", result.path)
PYTHON
