#!/usr/bin/env bash
# The sdist, the wheel built from it in an environment of its own, what they weigh and need, and
# the wheel at work: installed elsewhere, asked from outside the checkout.
#   stress/wheel.sh PYTHON   (make wheel; PYTHON has the dependency group `wheel`)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=$(realpath -s "$1")
bin=$(dirname "$python")
largest=550000 # bytes of the extension

cd "$root"
rm -rf dist
"$python" -m build
if [[ $(uname) == Linux ]]; then # the platform tag that the wheel's symbols earn on this machine
    made=$(ls dist/*.whl)
    "$bin/auditwheel" repair --wheel-dir dist "$made"
    [[ -f $made && $(ls dist/*.whl | wc -l) -gt 1 ]] && rm "$made"
fi
wheel=$(ls "$root"/dist/*.whl)
if [[ $wheel == *abi3* ]]; then "$bin/abi3audit" --strict --summary "$wheel"; fi

elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT
"$python" -m venv "$elsewhere/venv"
"$elsewhere/venv/bin/python" -m pip install --quiet "$wheel"
cp tests/smoke.py "$elsewhere"
cd "$elsewhere"
venv/bin/python smoke.py
venv/bin/embits --version
extension=$(venv/bin/python -c 'import embits._core as c, os; print(os.path.getsize(c.__file__))')
echo "extension $extension bytes (at most $largest)"
wc -c "$root"/dist/* | sed -n 1,2p
((extension <= largest))
