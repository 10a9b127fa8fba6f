#!/usr/bin/env bash
# The wheel for aarch64, cross-compiled, and at work in an emulated Python:
#   stress/aarch64_wheel.sh [PYTHON]   (make wheel-aarch64; PYTHON is 3.12 or newer)
# It needs Debian's g++-aarch64-linux-gnu, qemu-user and apt. Python, NumPy and the libraries of
# the other processor go to build/aarch64; this machine's own packages are not touched.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=${1:-python3}
suite=${SUITE:-trixie} version=${VERSION:-3.13} # the Debian that has that Python
here=$root/build/aarch64
sysroot=$here/sysroot
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' ||
    { echo "the stable ABI begins with Python 3.12; try: make wheel-aarch64 PYTHON=python3.13"; exit 1; }

other_python() {
    mkdir -p "$here"/apt/{lists,cache,state}/partial
    touch "$here/apt/status"
    mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep '/debian$' | head -1)
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" \
        >"$here/apt/sources.list"
    cat >"$here/apt/apt.conf" <<CONF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
Dir::State "$here/apt/state";
Dir::State::lists "$here/apt/lists";
Dir::State::status "$here/apt/status";
Dir::Cache "$here/apt/cache";
Dir::Cache::archives "$here/apt/cache";
Dir::Etc::sourcelist "$here/apt/sources.list";
Dir::Etc::sourceparts "-";
CONF
    export APT_CONFIG=$here/apt/apt.conf
    apt-get -qq update
    apt-get -qq -y --no-install-recommends --download-only install \
        "python$version-minimal" "libpython$version-dev" "libpython$version-stdlib" libstdc++6
    mkdir -p "$sysroot"
    for package in "$here"/apt/cache/*.deb; do dpkg-deb -x "$package" "$sysroot"; done
    ln -sfn usr/lib "$sysroot/lib"
}
[[ -x $sysroot/usr/bin/python$version ]] || (other_python)

[[ -d $here/venv ]] || "$python" -m venv "$here/venv"
pip="$here/venv/bin/python -m pip"
$pip install --quiet --upgrade "pip>=25.1"
rm -rf "$here/dist" "$here/site"
_PYTHON_HOST_PLATFORM=linux-aarch64 CMAKE_ARGS="-DCMAKE_SYSTEM_NAME=Linux
    -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++
    -DPython_INCLUDE_DIR=$sysroot/usr/include/python$version
    -DCMAKE_CXX_FLAGS=-idirafter$sysroot/usr/include" \
    $pip wheel --quiet --no-deps --wheel-dir "$here/dist" \
    --config-settings=build-dir="$here/cmake" "$root"
$pip install --quiet auditwheel abi3audit
"$here/venv/bin/auditwheel" show "$here"/dist/*.whl | grep -A1 consistent
"$here/venv/bin/abi3audit" --strict --summary "$here"/dist/*.whl
$pip install --quiet --target "$here/site" --python-version "$version" --only-binary=:all: \
    --platform linux_aarch64 --platform manylinux_2_28_aarch64 --platform manylinux2014_aarch64 \
    "$here"/dist/*.whl
wc -c "$here"/dist/*.whl "$here"/site/embits/_core.abi3.so | sed -n 1,2p

# A plain processor: the emulation of the widest one is many times slower.
export PYTHONPATH=$here/site QEMU_LD_PREFIX=$sysroot QEMU_CPU=cortex-a72 OPENBLAS_NUM_THREADS=1
export EMBITS_EMULATOR=qemu-aarch64
cp "$root/tests/smoke.py" "$here"
cd "$here"
qemu-aarch64 "$sysroot/usr/bin/python$version" smoke.py
