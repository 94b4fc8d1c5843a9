#!/usr/bin/env bash
# How well prices of some networks predict those of another: measures networks of the zoo, each into
# a store of its own, and leaves out one after the other. What is learned from all of them is what
# guesses prices in searches, if `--ship` is given.
#
#   usage: scripts/with-runtime.sh bench/predict.sh [--ship] FOLDER [NETWORK...]
#   environment: BUDGET, of each network; REGRAFT, the program
#
# FOLDER gets the stores; those that are there are not made again. Prints two tables, of all
# operators and of those that rewrites made, and writes them to bench/results/predict.json.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
regraft=${REGRAFT:-$root/target/release/regraft}

learn=()
if [[ ${1:-} == --ship ]]; then
  learn=(--output "$root/crates/cost/weights/predictor.bin")
  shift
fi
folder=${1:?usage: predict.sh [--ship] FOLDER [NETWORK...]}
shift
if (($# == 0)); then
  set -- squeezenet-1.1 resnet-18 resnet-50 resnext-50 resnext-50-branches inception-v3 mobilenet-v2 mobilenet-v3-large vdcnn-29 \
    alexnet crnn sample-cnn char-cnn nasrnn sru nsnet2 bert-base vit-base gpt2-block diffusion-block
fi
mkdir -p "$folder"
for network in "$@"; do
  store=$folder/$network.sqlite
  [[ -f $store ]] || "$regraft" cost calibrate "$network" --report --budget "${BUDGET:-25s}" --threads 1 --cost-store "$store" --quiet
done
stores=("${@/#/$folder/}")
tell() { # OUTPUT [OPTION...]
  "$regraft" cost predict "${stores[@]/%/.sqlite}" --threads 1 --json "$@"
}
tell "$folder/whole.json" "${learn[@]}"
tell "$folder/rewritten.json" --rewritten
{
  printf '{"all operators of a model, none of which is known": '
  cat "$folder/whole.json"
  printf ', "what rewrites made, the operators of the model being known": '
  cat "$folder/rewritten.json"
  printf '}'
} | "$root/.venv/bin/python" -m json.tool --indent 2 >"$root/bench/results/predict.json"
