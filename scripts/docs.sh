#!/usr/bin/env bash
# Builds the book into target/book/book, with search, and checks every link in it. All set-up
# included; needs Rust and Python 3.
set -euo pipefail
cd "$(dirname "$0")/.."

# The version is exact: what it writes is what was looked at.
version=0.5.4
mdbook=target/tools/bin/mdbook
if [[ $("$mdbook" --version 2>/dev/null) != "mdbook v$version" ]]; then
  cargo install --quiet --locked --root target/tools mdbook --version "$version"
fi
rm -rf target/book
python3 scripts/book.py gather target/book
"$mdbook" build target/book
python3 scripts/book.py check target/book/book
echo "docs: target/book/book/index.html"
