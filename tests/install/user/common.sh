# common.sh: functions of the scripts in this folder. Each script uses an installed Keel as a user would; tree_test.sh runs them
# in the build's environment, `run` in a clean Debian 12.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/keel-user-XXXXXX")
trap 'rm -rf "$work"' EXIT
unset KEEL_PLUGIN_PATH LD_LIBRARY_PATH

fail() { echo "$(basename "$0"): $*" >&2; exit 1; }

# expect TEXT COMMAND...: the command succeeds and prints TEXT somewhere.
expect() {
  local text=$1 got
  shift
  got=$("$@" 2>&1) || fail "failed: $*: $got"
  [[ $got == *"$text"* ]] || fail "no '$text' from $*; it printed: $got"
}

# graph FILE: a graph that adds its two inputs, as text.
graph() {
  cat >"$1" <<'END'
keel 1

fn @main(x: f32[n], z: f32[n]) -> f32[n] {
  y = add(x, z) : f32[n]
  return y
}

entry main = @main (x, z) -> (y)
END
}
