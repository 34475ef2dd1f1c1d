# Sourced by the scripts in bin/: running a step so that one sees what it is doing.
# shellcheck shell=bash

LOG_FOLDER="$ROOT/tmp/log"
mkdir -p "$LOG_FOLDER"

say() {
  printf '%s\n' "$*"
}

# step TITLE COMMAND...: one line when it begins, a sign of life every ten seconds, one line when it is done.
# The command's output goes to a log file; its end is shown when the command fails.
step() {
  local title=$1 log status=0 began=$SECONDS
  shift
  log=$LOG_FOLDER/$(log_name "$title")
  printf '%s ... ' "$title"
  keep_alive "$log" &
  local pulse=$!
  "$@" >"$log" 2>&1 </dev/null || status=$?
  kill "$pulse" 2>/dev/null
  wait "$pulse" 2>/dev/null
  if [ "$status" -eq 0 ]; then
    say "done ($((SECONDS - began)) s)"
  else
    say "failed"
    say "the last lines of $log:"
    tail -n 60 "$log" | sed 's/^/  /'
  fi
  return "$status"
}

log_name() {
  printf '%s.log' "$(printf '%s' "$1" | tr -cs 'A-Za-z0-9' '-')"
}

keep_alive() {
  local log=$1 waited=0
  trap 'kill $! 2>/dev/null; exit 0' TERM
  # It ignores Ctrl-C, as background jobs do, so it looks whether the script is still there.
  while kill -0 $$ 2>/dev/null; do
    sleep 10 >/dev/null 2>&1 &
    wait $!
    waited=$((waited + 10))
    printf '\n  %d s: %s ... ' "$waited" "$(tail -n 1 "$log" 2>/dev/null | tr -d '\r' | tail -c 90)"
  done
}
