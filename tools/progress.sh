# progress.sh: the progress of a long step.
#   COMMAND | progress TITLE     COMMAND writes lines "DONE TOTAL TEXT"; other lines are dropped
# A terminal shows one line, which is rewritten; otherwise a line is written every ten seconds. The last line has the time of
# the step.
duration() { if [ "$1" -lt 60 ]; then echo "$1 s"; else echo "$(($1 / 60)) min $(($1 % 60)) s"; fi; }

progress() {
  local title=$1 begin=$SECONDS shown=0 unit="" number='^[0-9]+$' finished total text elapsed left
  while read -r finished total text; do
    [[ $finished =~ $number && ${total%\%} =~ $number ]] || continue
    [ "${total%\%}" = "$total" ] || unit=" %"
    total=${total%\%} elapsed=$((SECONDS - begin)) left=
    if [ -t 1 ]; then
      [ "$elapsed" -lt 5 ] || [ "$finished" = 0 ] || left=", about $(duration $((elapsed * (total - finished) / finished))) left"
      printf '\r\033[K%s: %s of %s%s, %s%s: %.40s' "$title" "$finished" "$total" "$unit" "$(duration $elapsed)" "$left" "${text##*/}"
    elif [ $((elapsed - shown)) -ge 10 ]; then
      shown=$elapsed
      [ "$finished" = 0 ] || left=", about $(duration $((elapsed * (total - finished) / finished))) left"
      printf '%s: %s of %s%s, %s%s\n' "$title" "$finished" "$total" "$unit" "$(duration $elapsed)" "$left"
    fi
  done
  if [ -t 1 ]; then printf '\r\033[K'; fi
  printf '%s: %s\n' "$title" "$(duration $((SECONDS - begin)))"
}
