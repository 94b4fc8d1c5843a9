#!/usr/bin/env bash
# Makes a release of the version in Cargo.toml in dist/: the command, thin, with its symbols apart; the Python package; a bill of
# materials; checksums. Checks licences, bans and sources of all dependencies, that the changelog has the version, and that the
# command comes out the same, byte for byte, from another folder. All set-up included; needs Rust, a C compiler, binutils and
# Python 3.
#
#   usage: scripts/release.sh [--offline]      --offline leaves out the advisories, which are
#   fetched
set -euo pipefail
cd "$(dirname "$0")/.."

offline=${1:-}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)
target=$(rustc -vV | sed -n 's/^host: //p')
name=regraft-$version-$target

grep -q "^## $version " CHANGELOG.md || { echo "release: CHANGELOG.md has no version $version" >&2; exit 2; }
[[ -z $(git status --porcelain) ]] || { echo "release: the checkout has changes that are not committed" >&2; exit 2; }

tool() { # NAME VERSION: installs a cargo command, once
  [[ $(target/tools/bin/"$1" --version 2>/dev/null) == *" $2" ]] || cargo install --quiet --locked --root target/tools "$1" --version "$2"
}
tool cargo-deny 0.20.2
tool cargo-cyclonedx 0.5.7
export PATH=$PWD/target/tools/bin:$PATH

checks=(licenses bans sources)
[[ $offline == --offline ]] || checks+=(advisories)
cargo deny --log-level error check "${checks[@]}"

# What is built depends on the sources, the lock file and the compiler, not on when and where.
build() { # FOLDER: the committed sources, and the command built from them there, with symbols
  mkdir "$1"
  git archive HEAD | tar -x -C "$1"
  local home=${CARGO_HOME:-$HOME/.cargo}
  SOURCE_DATE_EPOCH=$committed \
    RUSTFLAGS="--remap-path-prefix=$1=/regraft --remap-path-prefix=$home=/cargo -C link-arg=-Wl,--build-id=none" \
    CFLAGS="-ffile-prefix-map=$1=/regraft -ffile-prefix-map=$home=/cargo" \
    CARGO_PROFILE_RELEASE_STRIP=none CARGO_PROFILE_RELEASE_DEBUG=line-tables-only \
    cargo build --quiet --release --locked --package regraft-cli --manifest-path "$1/Cargo.toml" --target-dir "$1/target"
}
committed=$(git log -1 --format=%ct)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
build "$folder/one"
build "$folder/other"
built=$folder/one/target/release/regraft
cmp "$built" "$folder/other/target/release/regraft"
echo "release: two builds in two folders are the same, byte for byte"

mkdir -p dist
mkdir "$folder/$name"
objcopy --only-keep-debug "$built" "$folder/regraft.debug"
objcopy --strip-all "$built" "$folder/$name/regraft"
objcopy --add-gnu-debuglink="$folder/regraft.debug" "$folder/$name/regraft"
cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$folder/$name/"
cp crates/regraft/src/page/dagre.LICENSE "$folder/$name/LICENSE-dagre"
"$folder/$name/regraft" manual >"$folder/$name/regraft.1"

packed() { # FILE.tar.gz FOLDER ENTRY: an archive that depends on nothing but what is in it
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$committed" -C "$2" -cf - "$3" | gzip -n9 >"$1"
}
packed "dist/$name.tar.gz" "$folder" "$name"
packed "dist/$name.debug.tar.gz" "$folder" regraft.debug

SOURCE_DATE_EPOCH=$committed cargo cyclonedx --quiet --manifest-path crates/cli/Cargo.toml --format json --target all \
  --override-filename bom
sed "s#file://$PWD#file:///regraft#g" crates/cli/bom.json >"dist/regraft-$version.cdx.json"
find crates -name bom.json -delete

scripts/wheel.sh
(cd dist && sha256sum "$name.tar.gz" "$name.debug.tar.gz" "regraft-$version.cdx.json" regraft-"$version"-*.whl >SHA256SUMS)
cat dist/SHA256SUMS
echo "release: $version is in dist/; tag it with: git tag -a v$version -m 'Regraft $version'"
