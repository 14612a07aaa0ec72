#!/bin/sh
# Builds with AddressSanitizer and UndefinedBehaviorSanitizer in a folder of its own and runs tests
# under them:
#
#     tools/sanitize.sh [pytest arguments]         (default: tests -k "not _kernels")
#     tools/sanitize.sh --run script [arguments]   a program instead, such as tools/fuzz_files.py
#
# The allocator keeps no blocks and asks for exact sizes, Python uses malloc, so that every stray
# access is seen. Works with gcc and clang (CC, CXX); SANITIZE_BUILD names the build folder.
# Fails on a failing test and on any report, those of child processes included.
set -eu
cd "$(dirname "$0")/.."
build=${SANITIZE_BUILD:-build-sanitize}
case $build in /*) ;; *) build=$PWD/$build ;; esac
python=${PYTHON:-python3}
: "${CC:=cc}" "${CXX:=c++}"
export CC CXX

# The two runtimes of gcc share the function that sets log_path, so that only one of them would obey:
# UBSan's goes into the extension, where nothing else finds its functions.
if $CC --version | grep -q clang; then
    compile=-shared-libasan
    link=-shared-libasan
    runtime=$($CC -print-file-name="libclang_rt.asan-$(uname -m).so")
else
    compile=
    link="-static-libubsan -Wl,--exclude-libs,libubsan.a"
    runtime=$($CC -print-file-name=libasan.so)
fi
[ -e "$runtime" ] || { echo "sanitize: no AddressSanitizer runtime at $runtime" >&2; exit 1; }

configure() {
    meson "$@" "$build" -Dbuildtype=debugoptimized -Doptimization=1 -Db_ndebug=false \
        -Db_sanitize=address,undefined -Db_lundef=false -Dcaches=false \
        -Dcpp_args="-g1 $compile" -Dcpp_link_args="$link" -Dc_link_args="$link"
}
if [ ! -e "$build/build.ninja" ]; then
    configure setup
elif ! echo "$compile $link" | cmp -s - "$build/flags.txt"; then
    configure configure
else
    meson setup --reconfigure "$build" > "$build/reconfigure.txt"  # for files that are new
fi
echo "$compile $link" > "$build/flags.txt"
ninja -C "$build" ${NINJAFLAGS:-}
rm -rf "$build/install"
DESTDIR=$build/install meson install -C "$build" --no-rebuild --quiet
init=$(find "$build/install" -path '*/ptcore/__init__.py' | head -n 1)
site=$(dirname "$(dirname "$init")")

reports=$build/reports
rm -rf "$reports" && mkdir "$reports"
[ $# -gt 0 ] || set -- tests -k "not _kernels"
# libstdc++ is there from the start, so that exceptions thrown by other extensions find it.
sanitized() {
    env LD_PRELOAD="$(realpath "$runtime") $(realpath "$($CXX -print-file-name=libstdc++.so.6)")" PYTHONMALLOC=malloc PYTHONPATH="$site" \
        ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096:log_path=$reports/asan" \
        UBSAN_OPTIONS="print_stacktrace=1:log_path=$reports/ubsan" \
        "$python" -P "$@"
}
found=$(sanitized -c "import ptcore; print(ptcore.__file__)")
case $found in
    "$site"/*) ;;
    *) echo "sanitize: $python imports $found, not this build (an editable install?)" >&2; exit 1 ;;
esac
status=0
if [ "$1" = --run ]; then
    shift
    sanitized "$@" || status=$?
else
    sanitized -m pytest -q -p no:cacheprovider "$@" || status=$?
fi
# An allocation that is too large is answered with NULL, which the tests ask for, and a warning.
cat "$reports"/* 2> /dev/null | grep -v "WARNING: AddressSanitizer failed to allocate" > "$build/report.txt" || true
if [ -s "$build/report.txt" ]; then
    echo "sanitize: reports (in $build/report.txt)" >&2
    grep -h "runtime error\|ERROR: " "$build/report.txt" | sort | uniq -c | sort -rn >&2 || true
    exit 1
fi
exit $status
