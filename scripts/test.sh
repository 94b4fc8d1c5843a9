#!/usr/bin/env bash
# Format, lints, all tests. All set-up included; a missing runtime is a failure here, not a skipped
# test.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh test
export REGRAFT_REQUIRE_ONNXRUNTIME=1 REGRAFT_REQUIRE_OPENVINO=1
# Tests must neither read nor fill the measurements of the user.
store=$(mktemp -d)
trap 'rm -rf "$store"' EXIT
export REGRAFT_COST_STORE=$store/costs.sqlite
# Tests that lack what they need add a line here: cargo shows what they print only where they fail.
export REGRAFT_SKIPPED=$store/skipped
touch "$REGRAFT_SKIPPED"

cargo fmt --all --check
cargo clippy --workspace --all-targets --quiet -- --deny warnings
status=0
scripts/with-runtime.sh cargo test --workspace --no-fail-fast || status=$?
scripts/wheel.sh --quick || status=$?
sort -u "$REGRAFT_SKIPPED"
echo "skipped: $(sort -u "$REGRAFT_SKIPPED" | wc -l) tests"
exit "$status"
