#!/usr/bin/env bash
# Optimizes each model five times, every time with an empty cost store and another seed, and
# compares the rewrites and the times of the results.
#
#   usage: bench/stability.sh MODEL...      environment: RUNS (5), BUDGET (the command's default),
#   THREADS (what the runtime uses by itself)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=$root/.venv/bin/python
runs=${RUNS:-5}
threads=${THREADS:-$("$python" -c "import sys; sys.path.insert(0, '$root/bench'); import ab; print(ab.default_threads())")}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

(($# > 0)) || { echo "usage: bench/stability.sh MODEL..." >&2; exit 2; }
unstable=0
for model in "$@"; do
  "$python" "$root/bench/models.py" "$model" >/dev/null
  input=$root/models/$model.onnx
  readarray -t shapes < <("$python" -c "import sys; sys.path.insert(0, '$root/bench'); import models; print('\n'.join(models.SHAPES.get('$model', [])))")
  options=(--threads "$threads" ${BUDGET:+--budget "$BUDGET"})
  for shape in "${shapes[@]}"; do
    [[ -z $shape ]] || options+=(--shape "$shape")
  done
  program=$("$python" -c "import sys; sys.path.insert(0, '$root/bench'); import models; print(models.program())")
  for ((run = 1; run <= runs; run++)); do
    REGRAFT_COST_STORE=$scratch/$model-$run.sqlite "$program" optimize "$input" -o "$scratch/$model-$run.onnx" \
      --report "$scratch/$model-$run.json" --seed "$run" "${options[@]}" >/dev/null
  done
  "$python" "$root/bench/spread.py" "$model" "$input" "$threads" "$scratch/$model"-*.json || unstable=1
done
exit "$unstable"
