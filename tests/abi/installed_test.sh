#!/usr/bin/env bash
# The installed tree works after a move and without the source tree: find_package, pkg-config, a C program, the examples of the
# SDK, a plugin of one C file.
# Usage: installed_test.sh BUILD EXAMPLES
set -euo pipefail
build=$1 examples=$2 here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/keel-installed-XXXXXX")
trap 'rm -rf "$work"' EXIT
unset KEEL_PLUGIN_PATH LD_LIBRARY_PATH

fail() { echo "installed_test: $*" >&2; exit 1; }
# expect TEXT COMMAND...: the command succeeds and prints TEXT somewhere.
expect() {
  local text=$1 got
  shift
  got=$("$@" 2>&1) || fail "failed: $*: $got"
  [[ $got == *"$text"* ]] || fail "no '$text' from $*; it printed: $got"
}

cmake --install "$build" --prefix "$work/first" >"$work/install.log" || fail "$(tail "$work/install.log")"
mv "$work/first" "$work/moved"
prefix=$work/moved
libdir=$(dirname "$(find "$prefix" -name 'libkeel.so')")
[ "$(find "$libdir/plugins" -name 'keel-*.so' | wc -l)" -gt 0 ] || fail "no plugin beside libkeel in $libdir"
for library in libkdnn.so.3 libkomp.so.1; do # oneDNN with Keel's threads, next to the plugin that needs them
  [ -e "$libdir/plugins/keel-cpu.so" ] && [ ! -e "$libdir/plugins/$library" ] && fail "no $library beside keel-cpu.so"
done
if grep -rIl -e "$build" -e "$work/first" "$prefix"; then fail "these files name the folder of the build"; fi

mkdir "$work/project"
cp "$here"/foreign/* "$examples"/run.c "$examples"/hello.c "$work/project"
cmake -S "$work/project" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$work/configure.log" ||
  fail "find_package: $(cat "$work/configure.log")"
cmake --build "$work/build" >"$work/build.log" || fail "$(cat "$work/build.log")"

export PKG_CONFIG_PATH=$libdir/pkgconfig
# shellcheck disable=SC2046
cc "$work/project/apply.c" $(pkg-config --cflags --libs keel) -Wl,-rpath,"$libdir" -o "$work/apply-pc"
# shellcheck disable=SC2046
cc -shared -fPIC -fvisibility=hidden $(pkg-config --cflags keel) "$work/project/hello.c" -o "$work/build/keel-hello-pc.so"

cd "$work"
expect "2 4 6 8" "$work/apply-pc" reference add 2
expect "2 4 6 8" "$work/build/apply" reference add 2
if [ -e "$libdir/plugins/keel-cpu.so" ]; then expect "2 4 6 8" "$work/apply-pc" cpu add 2; fi
KEEL_PLUGIN_PATH=$work/build expect "2 4 6 8" "$work/build/apply" hello add 2
mkdir "$work/only" && mv "$work/build/keel-hello-pc.so" "$work/only/keel-hello.so"
KEEL_PLUGIN_PATH=$work/only expect "2 4 6 8" "$work/apply-pc" hello add 2

# The installed command converts a graph text to a file; a C program runs it on the plugin's device.
cat >"$work/add.keelt" <<'END'
keel 1

fn @main(x: f32[n], z: f32[n]) -> f32[n] {
  y = add(x, z) : f32[n]
  return y
}

entry main = @main (x, z) -> (y)
END
printf '\0\0\200\77\0\0\0\100' >x.bin # 1 and 2 as f32
expect "reference" "$prefix/bin/keel" devices
expect "" "$prefix/bin/keel" convert add.keelt add.keel
KEEL_PLUGIN_PATH=$work/only expect "2 4" "$work/build/run" add.keel hello f32:2:x.bin f32:2:x.bin
echo "installed_test: passed"
