#!/usr/bin/env bash
# Runs a command with the ONNX Runtime of .venv, unless the environment names another one.
#
#   usage: scripts/with-runtime.sh COMMAND [ARGUMENT...]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

if [[ -z ${REGRAFT_ONNXRUNTIME:-} ]]; then
  for library in "$root"/.venv/lib/python*/site-packages/onnxruntime/capi; do
    [[ -d $library ]] && export REGRAFT_ONNXRUNTIME=$library
  done
fi
[[ -n ${REGRAFT_ONNXRUNTIME:-} ]] || { echo "with-runtime: no ONNX Runtime in .venv; run scripts/setup.sh runtime first" >&2; exit 2; }
exec "$@"
