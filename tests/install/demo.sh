#!/usr/bin/env bash
# tools/demo on a clean Debian 12, from nothing and then again: it must classify six files, and use at most the processor
# time of two cores within its limit (6 minutes; 5 seconds the second time) on a machine that compiles host_speed.cc in
# 2.36 s. Machines differ by 2 in speed, so the limit is scaled by that time here. Wall times depend on other load, too; they are
# printed with the speed, also to the file KEEL_TIMES if it is set. Exit status 77: this machine cannot create a clean Debian.
#   tests/install/demo.sh               both runs, on two cores of this machine (tools/sweep demo)
#   tests/install/demo.sh --no-build    compiles nothing, for .ci/run: set-up and CMake in the clean Debian, then the
#                                       second run with this tree's build/release, outside of the clean Debian
#   KEEL_FRESH_CACHE=/tmp/empty tests/install/demo.sh    downloads are part of the time
set -uo pipefail
cd "$(dirname "$0")/../.."
why=$(tools/fresh_root check 2>&1) || { echo "$why"; exit 77; }
mkdir -p build
folder=$(mktemp -d "$PWD/build/demo_root.XXXXXX")
trap 'tools/fresh_root remove "$folder"' EXIT
TIMEFORMAT='%R %U %S'
faults=0

# How much longer this machine compiles than the one of the limits: the best of three.
slowness() {
  local object
  object=$(mktemp)
  for _ in 1 2 3; do { time g++ -std=c++20 -O2 -c tests/install/host_speed.cc -o "$object"; } 2>&1; done |
    awk '{ t = $2 + $3; if (!best || t < best) best = t } END { printf "%.2f", best / 2.36 }'
  rm -f "$object"
}

fault() { echo "FAULT: $*"; faults=$((faults + 1)); }

in_root() { tools/fresh_root run "$folder" "$@"; }

# run_demo NAME LIMIT_S COMMAND...: runs it, notes wall and processor seconds.
run_demo() {
  local name=$1 limit=$2 wall user system
  shift 2
  { time taskset -c 0-1 "$@" >"$folder/said" 2>&1; } 2>"$folder/took" || fault "$name failed"
  cat "$folder/said"
  read -r wall user system < <(tail -n 1 "$folder/took")
  printf '%s: %.0f s, processor %.0f s (at most %d s on 2 cores; this machine takes %s times as long)\n' "$name" "$wall" \
    "$(awk "BEGIN { print $user + $system }")" "$limit" "$slow" | tee -a "${KEEL_TIMES:-/dev/null}"
  awk "BEGIN { exit !($user + $system > 2 * $limit * $slow) }" &&
    fault "$name: more processor time than 2 cores have in $limit s, times $slow for this machine"
  for type in markdown cpp python png elf gzip; do
    grep -qE "^cpu:0 .* $type 0\.[5-9]|^cpu:0 .* $type 1\.0" "$folder/said" || fault "$name: no file of type $type"
  done
}

slow=$(slowness)
tools/fresh_root make "$folder" && tools/fresh_root copy "$folder" || exit 1
if [ "${1:-}" = --no-build ]; then
  in_root sh -c 'tools/setup runtime && cmake --preset release' || fault "set-up for tools/demo in a clean Debian 12 failed"
  run_demo "demo with a finished build" 5 tools/demo
else
  run_demo "demo from a clean Debian 12 (packages, wheels, build)" 360 in_root tools/demo
  run_demo "demo again" 5 in_root tools/demo
fi
[ "$faults" = 0 ] && echo "each run classifies six files"
