#!/usr/bin/env bash
# A foreign project finds Keel by find_package alone: a program in C, one in C++, and a plugin that links nothing.
# Usage: cmake.sh PREFIX EXAMPLES    PREFIX: where Keel is installed
. "$(dirname "$0")/common.sh"
prefix=$1 examples=$2
cp -r "$here/project" "$work/project"
cp "$examples/run.c" "$examples/hello.c" "$work/project"
cmake -S "$work/project" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 || fail "find_package: $(cat "$work/log")"
cmake --build "$work/build" >"$work/log" 2>&1 || fail "$(cat "$work/log")"

cd "$work"
expect "2 4 6 8" build/apply reference add 2
expect "2 4 6 8" build/apply cpu add 2
expect "[11 22]" build/sum
expect "" build/kit
KEEL_PLUGIN_PATH=$work/build expect "2 4 6 8" build/apply hello add 2

# A graph text becomes a file by the installed command, and the foreign program runs it on the foreign device.
graph add.keelt
printf '\0\0\200\77\0\0\0\100' >x.bin # 1 and 2 as f32
expect "reference" "$prefix/bin/keel" devices
expect "" "$prefix/bin/keel" convert add.keelt add.keel
KEEL_PLUGIN_PATH=$work/build expect "2 4" build/run add.keel hello f32:2:x.bin f32:2:x.bin
echo "cmake: a program in C, one in C++ and a plugin were built by find_package and ran"
