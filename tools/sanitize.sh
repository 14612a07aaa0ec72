#!/bin/sh
# Builds with AddressSanitizer and UndefinedBehaviorSanitizer in a folder of its own and runs tests
# under them:
#
#     tools/sanitize.sh [pytest arguments]         (default: tests --ignore tests/kernels)
#
# The allocator keeps no blocks and asks for exact sizes, Python uses malloc, so that every stray
# access is seen. Works with gcc and clang (CC, CXX); SANITIZE_BUILD names the build folder.
# Fails on a failing test and on any report, those of child processes included.
set -eu
cd "$(dirname "$0")/.."
build=${SANITIZE_BUILD:-build-sanitize}
python=${PYTHON:-python3}
: "${CC:=cc}" "${CXX:=c++}"
export CC CXX

if $CC --version | grep -q clang; then
    extra=-shared-libasan
    runtime=$($CC -print-file-name="libclang_rt.asan-$(uname -m).so")
else
    extra=
    runtime=$($CC -print-file-name=libasan.so)
fi
[ -e "$runtime" ] || { echo "sanitize: no AddressSanitizer runtime at $runtime" >&2; exit 1; }

if [ ! -e "$build/build.ninja" ]; then
    meson setup "$build" -Dbuildtype=debugoptimized -Doptimization=1 -Db_ndebug=false \
        -Db_sanitize=address,undefined -Db_lundef=false -Dcaches=false \
        -Dcpp_args="-g1 $extra" -Dcpp_link_args="$extra" -Dc_link_args="$extra"
fi
ninja -C "$build" ${NINJAFLAGS:-}
rm -rf "$build/install"
DESTDIR=$PWD/$build/install meson install -C "$build" --no-rebuild --quiet
init=$(find "$build/install" -path '*/ptcore/__init__.py' | head -n 1)
site=$PWD/$(dirname "$(dirname "$init")")

reports=$PWD/$build/reports
rm -rf "$reports" && mkdir "$reports"
[ $# -gt 0 ] || set -- tests --ignore tests/kernels
status=0
env LD_PRELOAD="$(realpath "$runtime")" PYTHONMALLOC=malloc PYTHONPATH="$site" \
    ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:log_path=$reports/asan" \
    UBSAN_OPTIONS="print_stacktrace=1:log_path=$reports/ubsan" \
    "$python" -P -m pytest -q -p no:cacheprovider "$@" || status=$?
if [ -n "$(ls -A "$reports")" ]; then
    echo "sanitize: reports" >&2
    cat "$reports"/* | grep -h "runtime error\|ERROR: " | sort | uniq -c | sort -rn >&2
    exit 1
fi
exit $status
