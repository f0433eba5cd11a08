# steps.sh: shared by tools/test, tools/sweep and .ci/run: steps with their times.
#   step NAME COMMAND...   runs it; its wall and processor seconds (of all its processes) are kept for the table
#   step_table             prints them
# KEEL_STEPS names the file with the times, so that a script that runs another also shows its steps.
steps_owner=
if [ -z "${KEEL_STEPS:-}" ]; then
  KEEL_STEPS=$(mktemp)
  steps_owner=yes
  trap 'rm -f "$KEEL_STEPS"' EXIT
fi
export KEEL_STEPS

# Milliseconds of processor time of this shell and its finished children. Without a subshell, which would count only itself.
processor_ms() {
  local line fields=()
  times >"$KEEL_STEPS.times"
  while read -r -a line; do fields+=("${line[@]}"); done <"$KEEL_STEPS.times"
  rm -f "$KEEL_STEPS.times"
  spent_ms=0
  for line in "${fields[@]}"; do # 1m2.345s
    line=${line%s}
    local minutes=${line%m*} seconds=${line#*m}
    spent_ms=$((spent_ms + minutes * 60000 + 10#${seconds%.*} * 1000 + 10#${seconds#*.}))
  done
}

step() {
  local name=$1 start=$SECONDS spent_ms before status
  shift
  processor_ms
  before=$spent_ms
  "$@"
  status=$?
  processor_ms
  printf '%s\t%s\t%s\n' "$name" "$((SECONDS - start))" "$((spent_ms - before))" >>"$KEEL_STEPS"
  return "$status"
}

step_table() {
  awk -F '\t' 'BEGIN { printf "\n%-22s %10s %12s\n", "step", "wall s", "processor s" }
    { printf "%-22s %10d %12.1f\n", $1, $2, $3 / 1000; wall += $2; spent += $3 }
    END { printf "%-22s %10d %12.1f  (%.1f processor minutes)\n\n", "all", wall, spent / 1000, spent / 60000 }' "$KEEL_STEPS"
}
