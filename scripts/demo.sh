#!/usr/bin/env bash
# Optimizes the text recognition model of PP-OCRv4 and leaves it in demo/. All set-up included;
# needs Rust, a C compiler and Python 3.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh demo
cargo build --release --package regraft-cli

mkdir -p demo
wheel=$(echo .venv/lib/python*/site-packages/rapidocr_onnxruntime)
cp "$wheel/models/ch_PP-OCRv4_rec_infer.onnx" demo/ppocr-rec.onnx
export REGRAFT_COST_STORE=${REGRAFT_COST_STORE:-demo/costs.sqlite}
scripts/with-runtime.sh cargo run --quiet --release --package regraft-cli -- \
  optimize demo/ppocr-rec.onnx --shape x:1,3,48,320 --budget "${BUDGET:-60s}" -o demo/ppocr-rec.fast.onnx
