#!/usr/bin/env bash
# Installs scripts/requirements/LIST.txt into .venv, and makes .venv first if need be. Pins are
# exact and nothing else is resolved. A list that is installed already costs nothing and needs no
# network.
#
#   usage: scripts/setup.sh LIST      environment: PYTHON, the interpreter to make .venv with
set -euo pipefail
cd "$(dirname "$0")/.."

list=${1:?usage: scripts/setup.sh LIST}
folder=scripts/requirements
venv=.venv
[[ -f $folder/$list.txt ]] || { echo "setup: no list $folder/$list.txt" >&2; exit 2; }

# The wheels of the pinned runtime exist for these and later versions of Python.
recent='import sys; sys.exit(sys.version_info < (3, 11))'

pick_python() {
  local candidate
  for candidate in ${PYTHON:+"$PYTHON"} python3 python3.12 python3.13 python3.14 python3.11 /usr/bin/python3; do
    if command -v "$candidate" >/dev/null && "$candidate" -c "$recent" 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  echo "setup: Python 3.11 or later is needed; name one with PYTHON=..." >&2
  return 2
}

make_venv() {
  local python
  python=$(pick_python)
  echo "setup: making $venv with $("$python" --version)" >&2
  rm -rf "$venv"
  # Where the distribution leaves ensurepip out, the interpreter's own pip can install into the
  # environment.
  if "$python" -m venv "$venv" >/dev/null 2>&1; then
    return
  fi
  rm -rf "$venv"
  if "$python" -m venv --without-pip "$venv" && "$python" -m pip --version >/dev/null 2>&1; then
    echo "$python" >"$venv/.pip-of"
    return
  fi
  rm -rf "$venv"
  echo "setup: $python has neither the venv module with ensurepip nor pip; install them (Debian: python3-venv)" >&2
  return 2
}

pip_install() {
  local options=(--disable-pip-version-check --no-input --quiet --no-deps --ignore-requires-python --only-binary :all:)
  if [[ -f $venv/.pip-of ]]; then
    "$(cat "$venv/.pip-of")" -m pip --python "$venv/bin/python" install "${options[@]}" "$@"
  else
    "$venv/bin/python" -m pip install "${options[@]}" "$@"
  fi
}

# A list is installed if its text, with the lists that it includes, is the text of then.
included() {
  local line
  while read -r line; do
    case $line in
    "-r "*) included "$folder/${line#-r }" ;;
    "" | "#"*) ;;
    *) echo "$line" ;;
    esac
  done <"$1"
}

stamp=$venv/.installed-$list
want=$(included "$folder/$list.txt")
if [[ -x $venv/bin/python && -f $stamp && $(cat "$stamp") == "$want" ]]; then
  exit 0
fi
"$venv/bin/python" -c "$recent" 2>/dev/null || make_venv
echo "setup: installing $(tr '\n' ' ' <<<"$want")" >&2
pip_install -r "$folder/$list.txt"
echo "$want" >"$stamp"
