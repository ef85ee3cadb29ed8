#!/bin/bash
# Usage: digup-sync.sh [--force] [--dry-run] [-v]
#        digup-sync.sh --status | --help
#
# Sends a proved copy of DigUp's index to the agent's machine (the Pi). It is the first half of "a changed file travels
# to the Pi" and runs every few minutes. Killed at any instant, it leaves nothing half-delivered; the next run finishes.
#
#   --force    take and send a snapshot even when nothing seems to have changed
#   --dry-run  say what a run would do; nothing is copied, sent or written down
#   -v         say each step, and what rsync says of the bytes it sent
#   --status   say how the last run ended and end with its exit code (programs read status.json)
#
# Settings: ~/.config/hermes-digup/sync.env (KEY=VALUE lines, read as data): DIGUP_SOURCE, DIGUP_INDEX_DIR,
# DIGUP_SYNC_CODE, DIGUP_RSYNC, DIGUP_SSH, DIGUP_LOG_LEVEL. The environment wins over the file.
#
# Exit codes
#    0  delivered, or nothing new (the Pi has confirmed either)
#    1  --status: no run has ended yet
#    2  an option or a setting cannot be understood
#    3  there is no sound index to send (missing, unreadable, damaged, not DigUp's)
#    4  the Pi refused the copy
#    5  no room left, here or on the Pi
#    6  another run is at work, or another program has locked the index
#   75  the Pi cannot be reached or did not finish; tried again next time
#   77  the Pi does not let this laptop in: its host key, our key, or Tailscale SSH needs a person
#  130, 143  stopped by a signal

set -Eeuo pipefail
umask 077
export LC_ALL=C PATH=/usr/bin:/bin:/usr/sbin:/sbin
unset CDPATH GREP_OPTIONS RSYNC_RSH SQLITE_HISTORY

readonly SCRIPT_VERSION=0.1.0
readonly ALIAS=hermes-digup-agent # the one host in our own ssh config
readonly LOG_LIMIT=262144         # bytes; one older log of that size is kept
readonly WAIT_LOGIN=40 WAIT_SQLITE=1800 WAIT_SEND=7200 WAIT_PUBLISH=1200 # seconds

main() {
  read_options "$@"
  choose_tools
  name_places
  if [ "$MODE" = status ]; then show_status; fi
  begin
  read_settings
  find_index
  fingerprint_source
  reach_pi
  if nothing_new; then confirm; else deliver; fi
}

# --- what was asked for -------------------------------------------------------------------------------------------

read_options() {
  MODE=run FORCE='' VERBOSE=''
  while [ $# -gt 0 ]; do
    case $1 in
      --force) FORCE=1 ;;
      --dry-run) MODE=dry ;;
      -v | --verbose) VERBOSE=1 ;;
      --status) MODE=status ;;
      -h | --help)
        sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
      *)
        printf 'digup-sync: there is no option "%s"; see --help\n' "$1" >&2
        exit 2
        ;;
    esac
    shift
  done
}

# The one place that knows which system this is: macOS in real life, Linux in the demo and in tests.
choose_tools() {
  if [ "$(uname)" = Darwin ]; then
    size_and_time() { stat -L -f '%z %Fm %Fc %i' -- "$1"; }
    file_size() { stat -L -f '%z' -- "$1"; }
    sha256() { shasum -a 256 | cut -c 1-64; }
    process_start() { TZ=UTC0 ps -o lstart= -p "$1"; }
    digup_preference() { /usr/bin/defaults read com.abdurrahim.DigUp "$1"; }
    utc() { date -u -r "$1" +%Y-%m-%dT%H:%M:%SZ; }
  else
    size_and_time() { stat -L -c '%s %.9Y %.9Z %i' -- "$1"; }
    file_size() { stat -L -c '%s' -- "$1"; }
    sha256() { sha256sum | cut -c 1-64; }
    process_start() { sed 's/.*) //' "/proc/$1/stat" | cut -d ' ' -f 20; }
    digup_preference() { return 1; }
    utc() { date -u -d "@$1" +%Y-%m-%dT%H:%M:%SZ; }
  fi
}

name_places() {
  case ${HOME:-} in
    /*) ;;
    *)
      printf 'digup-sync: HOME is not set to a folder; run this as the user whose files DigUp indexes\n' >&2
      exit 2
      ;;
  esac
  BASE="$HOME/Library/Application Support/hermes-digup"
  STAGING="$BASE/staging"
  CONFIG="$HOME/.config/hermes-digup"
  LOG="$HOME/Library/Logs/hermes-digup-sync.log"
}

show_status() {
  local code
  if [ -f "$BASE/lock" ] && is_running "$(cat -- "$BASE/lock")"; then printf 'A sync is at work now.\n'; fi
  ANSWER=$(cat -- "$BASE/status.json" 2>/dev/null) || ANSWER=''
  code=$(json_field exit_code)
  case $code in
    '' | *[!0-9]*)
      printf 'No sync has ended here yet.\n'
      exit 1
      ;;
  esac
  printf 'Last sync: %s (%s): %s\n' "$(json_field state)" "$code" "$(json_field message)"
  printf '  %-15s%s\n' ended "$(json_field finished_at), after $(json_field seconds) s" \
    'copy in use of' "$(json_field delivered_at)" 'last confirmed' "$(json_field confirmed_at)" \
    index "$(json_field index_dir)" log "$LOG"
  exit "$code"
}

# Literal KEY=VALUE lines, # comments, quotes around a whole value: nothing is expanded, nothing is executed.
read_settings() {
  local line key value file="$CONFIG/sync.env"
  local source='' index_dir='' code=1 rsync=/usr/bin/rsync ssh=/usr/bin/ssh level=WARNING
  if [ -f "$file" ]; then
    while IFS= read -r line || [ -n "$line" ]; do
      line=${line#"${line%%[![:space:]]*}"}
      line=${line%"${line##*[![:space:]]}"}
      case $line in '' | '#'*) continue ;; esac
      key=${line%%=*} value=${line#*=}
      case $value in
        \"*\" | \'*\') [ "${#value}" -lt 2 ] || { value=${value#?} && value=${value%?}; } ;;
      esac
      case $key in
        DIGUP_SOURCE) source=$value ;;
        DIGUP_INDEX_DIR) index_dir=$value ;;
        DIGUP_SYNC_CODE) code=$value ;;
        DIGUP_RSYNC) rsync=$value ;;
        DIGUP_SSH) ssh=$value ;;
        DIGUP_LOG_LEVEL) level=$value ;;
        *) fail 2 "$file has a line that is no setting of this script: \"$key\"; correct or remove it" ;;
      esac
    done <"$file"
  fi
  SOURCE=${DIGUP_SOURCE:-$source}
  INDEX_SETTING=${DIGUP_INDEX_DIR:-$index_dir}
  WANT_CODE=${DIGUP_SYNC_CODE:-$code}
  RSYNC=${DIGUP_RSYNC:-${rsync:-/usr/bin/rsync}}
  SSH=${DIGUP_SSH:-${ssh:-/usr/bin/ssh}}
  case ${DIGUP_LOG_LEVEL:-$level} in DEBUG | INFO) VERBOSE=1 ;; esac
  [ -n "$SOURCE" ] || fail 2 "DIGUP_SOURCE is not set in $file; run the playbook again for this laptop"
  case $WANT_CODE in 0 | 1) ;; *) fail 2 "DIGUP_SYNC_CODE in $file must be 0 or 1, not \"$WANT_CODE\"" ;; esac
  local tool
  for tool in "$RSYNC" "$SSH"; do
    case $tool in /*) ;; *) fail 2 "\"$tool\" must be an absolute path; correct DIGUP_RSYNC or DIGUP_SSH in $file" ;; esac
    [ -x "$tool" ] || fail 2 "$tool is not there or cannot be run; correct DIGUP_RSYNC or DIGUP_SSH in $file"
  done
}

# --- one run at a time, and its end ---------------------------------------------------------------------------------

begin() {
  STARTED=$(now) STATE=failed MESSAGE='' GENERATION='' CHILD='' WATCHER='' LOCKED='' WHERE=''
  trap 'WHERE="line $LINENO"' ERR
  trap 'finish' EXIT
  trap 'stopped 130' INT
  trap 'stopped 143' TERM HUP
  if [ "$MODE" = dry ]; then
    STAGING=$(mktemp -d "${TMPDIR:-/tmp}/digup-sync.XXXXXX") || fail 5 "no folder can be made in ${TMPDIR:-/tmp}"
  else
    mkdir -p -- "$BASE" "${LOG%/*}" || fail 5 "$BASE cannot be made; look at the disk and at who owns that folder"
    take_lock
    clear_staging
    mkdir -- "$STAGING" || fail 5 "$STAGING cannot be made; look at the disk and at who owns that folder"
  fi
  # From here on everything of this run is named from inside the staging folder: no tool has to cope with our path.
  cd -- "$STAGING" || fail 5 "$STAGING cannot be entered; look at who owns that folder"
}

stopped() {
  STATE=stopped MESSAGE='stopped by a signal; the next run goes on'
  exit "$1"
}

# Whatever ends the run comes through here: one line in the log, status.json, no snapshot left behind.
finish() {
  local code=$?
  trap - EXIT ERR
  trap '' INT TERM HUP
  set +e
  [ -z "$CHILD" ] || kill "$CHILD" 2>/dev/null
  [ -z "$WATCHER" ] || kill -9 "$WATCHER" 2>/dev/null
  [ -n "$MESSAGE" ] || MESSAGE="stopped in an unforeseen place (${WHERE:-unknown}); run it by hand with -v"
  if [ "$MODE" = dry ] || [ -n "$LOCKED" ]; then clear_staging; fi # first: on a full disk it makes the room to say so
  if [ "$MODE" = dry ]; then exit "$code"; fi
  if [ -n "$LOCKED" ]; then write_status "$code"; fi
  write_log "$code"
  [ -z "$LOCKED" ] || rm -f -- "$BASE/lock"
  rm -f -- "$BASE/lock.$$"
  exit "$code"
}

# The lock is a hard link to a file that already holds process id and start time: it never stands without an owner.
take_lock() {
  MINE="$BASE/lock.$$"
  printf '%s %s\n' "$$" "$(process_start "$$")" >"$MINE" || fail 5 "$BASE cannot be written to; look at the disk"
  take "$BASE/lock" || fail 6 "another run is at work; this one leaves it alone"
  LOCKED=1
  forget_the_dead
}

# A lock whose owner is dead may only be removed by who holds the lock named after that owner: so of many starters one
# removes it, and nobody can remove what another has put in its place meanwhile.
take() {
  local path=$1 owner claim round
  for round in 1 2 3 4 5 6 7 8; do
    if ln -- "$MINE" "$path" 2>/dev/null; then return 0; fi
    owner=$(cat -- "$path" 2>/dev/null) || continue
    if is_running "$owner"; then return 1; fi
    claim="$path~$(printf '%s' "$owner" | tr -c 'A-Za-z0-9' '_' | cut -c 1-50)"
    if [ "${#claim}" -gt $((${#BASE} + 200)) ]; then return 1; fi
    take "$claim" || return 1
    if [ "$(cat -- "$path" 2>/dev/null)" = "$owner" ]; then rm -f -- "$path"; fi
    rm -f -- "$claim"
  done
  say "gave up after $round rounds"
  return 1
}

is_running() {
  local pid=${1%% *} start=${1#* } seen
  case $pid in '' | *[!0-9]*) return 1 ;; esac
  seen=$(process_start "$pid" 2>/dev/null) || return 1
  [ "$seen" = "$start" ]
}

# What starters left that were killed between two steps of take_lock.
forget_the_dead() {
  local file
  for file in "$BASE"/lock.[0-9]* "$BASE"/lock~*; do
    if [ -f "$file" ] && ! is_running "$(cat -- "$file")"; then rm -f -- "$file"; fi
  done
}

clear_staging() { rm -rf -- "$STAGING"; }

# Runs a program with a limit in seconds. It is ended when the limit is over by the clock (sleep counts) or by counting
# (a clock set back counts too), and when this script has been killed.
bounded() {
  local limit=$1 code=0
  shift
  "$@" </dev/null &
  CHILD=$!
  watch_over "$CHILD" "$limit" >/dev/null 2>&1 &
  WATCHER=$!
  wait "$CHILD" 2>/dev/null || code=$?
  CHILD=''
  # Not a signal that can be caught: right after its start the watcher still has this script's own traps.
  kill -9 "$WATCHER" 2>/dev/null || true
  wait "$WATCHER" 2>/dev/null || true
  WATCHER=''
  return "$code"
}

watch_over() {
  local child=$1 limit=$2 counted=0 until
  trap - EXIT ERR INT TERM HUP
  until=$(($(now) + limit))
  while sleep 1; do
    kill -0 "$child" || return 0
    counted=$((counted + 1))
    if kill -0 "$$" && [ "$counted" -lt "$limit" ] && [ "$(now)" -lt "$until" ]; then continue; fi
    kill "$child"
    sleep 2
    kill -9 "$child"
    return 0
  done
}

# --- DigUp's index --------------------------------------------------------------------------------------------------

find_index() {
  INDEX=$INDEX_SETTING
  [ -n "$INDEX" ] || INDEX=$(digup_preference indexDir 2>/dev/null) || INDEX=''
  [ -n "$INDEX" ] || INDEX="$HOME/Library/Application Support/DigUp/index.noindex"
  # A "~" at the start is the home folder, as in DigUp's own preference.
  case $INDEX in \~) INDEX=$HOME ;; \~/*) INDEX="$HOME/${INDEX#??}" ;; esac
  case $INDEX in /*) ;; *) fail 2 "DIGUP_INDEX_DIR must be an absolute path, not \"$INDEX\"" ;; esac
  if [ ! -e "$INDEX/index.sqlite" ]; then
    if [ -d "$INDEX" ] && ! ls -- "$INDEX" >/dev/null 2>&1; then not_allowed "$INDEX"; fi
    fail 3 "waiting for DigUp: there is no index.sqlite in $INDEX; open DigUp and let it index something"
  fi
  read_a_little "$INDEX/index.sqlite"
  DATABASES=(index.sqlite)
  if [ "$WANT_CODE" = 1 ] && [ -e "$INDEX/code.sqlite" ]; then
    read_a_little "$INDEX/code.sqlite"
    DATABASES=(index.sqlite code.sqlite)
  fi
  say "index: $INDEX (${DATABASES[*]})"
}

read_a_little() {
  [ -f "$1" ] || fail 3 "$1 is not a file; look at what took its place, or open DigUp"
  head -c 16 -- "$1" >/dev/null 2>&1 || not_allowed "$1"
  [ -s "$1" ] || fail 3 "$1 is empty; open DigUp and let it index something"
}

not_allowed() {
  fail 3 "$1 cannot be read by this program; if it is yours, look in System Settings > Privacy & Security"
}

# A key that differs whenever the files differ. In WAL mode a commit may touch nothing but the middle of the log, so the
# log's own times count too; the time of the last change of any kind (ctime) is one that nobody can set back. Taken before the snapshot: a commit in between only means one more delivery.
fingerprint_source() {
  STATE_KEY=$({
    printf '%s\n' "$SCRIPT_VERSION" "$SOURCE" "$HOME" "$INDEX" "${DATABASES[@]}"
    local name
    for name in "${DATABASES[@]}"; do
      size_and_time "$INDEX/$name" && head -c 100 -- "$INDEX/$name"
      if [ -e "$INDEX/$name-wal" ]; then
        size_and_time "$INDEX/$name-wal" && head -c 32 -- "$INDEX/$name-wal" && tail -c 4096 -- "$INDEX/$name-wal"
      fi
    done
  } 2>/dev/null | sha256) || fail 3 "$INDEX changed its files while they were looked at; the next run tries again"
}

# --- the Pi -----------------------------------------------------------------------------------------------------------

# Asks the Pi for its state. This tells apart what rsync's exit codes don't: away, locked out, or somebody else answering.
reach_pi() {
  [ -f "$CONFIG/ssh_config" ] || fail 2 "$CONFIG/ssh_config is missing; run the playbook again for this laptop"
  # Reached by links beside the snapshot: rsync splits its -e at blanks, and a home may have any name.
  { ln -s -- "$SSH" ssh && ln -s -- "$CONFIG/ssh_config" ssh_config; } || fail 5 "$STAGING cannot be written to; look at the disk"
  ask_pi status "$WAIT_LOGIN"
  PI_STATE=$(json_field state)
  PI_GENERATION=$(json_field generation)
  say "the Pi answers: $PI_STATE"
}

# One word to the Pi; its answer, one JSON line, is then in ANSWER, its exit code in ANSWER_CODE. Anything else ends
# the run with the reason.
ask_pi() {
  local word=$1 limit=$2 code=0
  bounded "$limit" ./ssh -F ./ssh_config "$ALIAS" "$word" >answer.out 2>answer.err || code=$?
  ANSWER=$(head -c 65536 answer.out | tr -d '\000' | grep '^{' | tail -n 1) || ANSWER=''
  if [ "$code" = 255 ] || [ -z "$(json_field state)" ]; then
    why_no_answer "$word" "$code" "$(cat answer.err answer.out | head -c 4096 | tr -d '\000')"
  fi
  ANSWER_CODE=$code
}

why_no_answer() {
  local word=$1 code=$2 errors=$3 last
  last=$(printf '%s' "$errors" | clean_lines | tail -n 1)
  case $errors in
    *[Tt]ailscale*https://* | *https://*tailscale*)
      fail 77 "Tailscale SSH on the Pi asks for a check in the browser, which a sync cannot do; switch it off there (tailscale set --ssh=false)" ;;
    *'Host key verification failed'* | *'HOST IDENTIFICATION HAS CHANGED'*)
      fail 77 "the Pi shows another host key than the pinned one; if it was set up anew, run the playbook again for this laptop" ;;
    *'Permission denied'* | *'Too many authentication failures'*)
      fail 77 "the Pi refuses this laptop's sync key; run the playbook again for this laptop" ;;
    *'No route to host'*)
      fail 75 "the Pi cannot be reached: no route to host; is Tailscale on? (macOS says the same when Local Network access is denied)" ;;
  esac
  case $code in
    255 | 137 | 143) fail 75 "the Pi cannot be reached or is too slow: ${last:-no answer to \"$word\"}" ;;
    0) fail 77 "the Pi's answer to \"$word\" is not hermes-digup's; is something else answering for this key? It said: ${last:-nothing}" ;;
    *) fail 4 "the Pi could not do \"$word\": ${last:-exit code $code}" ;;
  esac
}

# A field of the Pi's answer, read by SQLite's JSON parser; empty when it is missing or the answer is no JSON.
json_field() {
  local hex
  hex=$(printf '%s' "$ANSWER" | od -An -v -tx1 | tr -d ' \n')
  sqlite3 -batch -init /dev/null :memory: \
    "SELECT coalesce(CASE WHEN json_valid(t) THEN json_extract(t, '\$.$1') END, '') FROM (SELECT CAST(x'$hex' AS TEXT) AS t)" \
    2>/dev/null </dev/null | clean_lines | head -n 1 || true
}

clean_lines() { tr -d '\000-\011\013-\037\177' | cut -c 1-400; }

nothing_new() {
  [ -z "$FORCE" ] && read_delivered && [ "$DELIVERED_KEY" = "$STATE_KEY" ] || return 1
  # A Pi that was set up anew, or whose source was retired, has something else in use: then everything is sent again.
  [ -n "$PI_GENERATION" ] && [ "$PI_GENERATION" = "$DELIVERED_GENERATION" ]
}

confirm() {
  local message="nothing new since $DELIVERED_AT; confirmed"
  if [ "$MODE" = dry ]; then done_dry "nothing has changed; only the time of this look would be sent"; fi
  write_confirmed "$(utc_now)"
  send 4096 confirmed.json
  GENERATION=$DELIVERED_GENERATION
  STATE=unchanged MESSAGE=$message
}

deliver() {
  local name
  if [ "$MODE" = dry ]; then done_dry "a snapshot of ${DATABASES[*]} would be taken and sent"; fi
  TAKEN_AT=$(utc_now)
  FILES_JSON='' SCHEMA='' PAGE_SIZE=4096 SENT_BYTES=0
  for name in "${DATABASES[@]}"; do snapshot "$name"; done
  write_confirmed "$TAKEN_AT"
  write_manifest
  send "$PAGE_SIZE" "${DATABASES[@]}"
  send 4096 confirmed.json manifest.json # in this order: the manifest is what completes a delivery
  say "asking the Pi to use it"
  ask_pi publish "$WAIT_PUBLISH"
  weigh_answer
}

done_dry() {
  printf 'index: %s\nthe Pi: %s\n%s\n' "$INDEX" "${PI_STATE:-answers}" "$1"
  MESSAGE=$1
  exit 0
}

# The Pi's word is what counts as delivered.
weigh_answer() {
  local reason
  reason=$(json_field reason)
  GENERATION=$(json_field generation)
  case $(json_field state) in
    # "unchanged" may also mean that the Pi published it as soon as the manifest was there.
    published | unchanged)
      write_delivered
      if [ "$GENERATION" = "$PI_GENERATION" ]; then
        STATE=unchanged MESSAGE="the Pi had this copy already (generation $GENERATION)"
      else
        STATE=delivered MESSAGE="delivered ${DATABASES[*]} ($SENT_BYTES bytes in all, generation $GENERATION)"
      fi
      ;;
    refused)
      [ "$ANSWER_CODE" != 5 ] || fail 5 "no room left on the Pi to use the copy ($reason); make some, the old copy stays in use"
      fail 4 "the Pi refused the copy: ${reason:-it gave no reason}"
      ;;
    incomplete) fail 75 "the Pi does not have the whole copy yet: ${reason:-it gave no reason}; the next run sends it again" ;;
    *) fail 4 "the Pi did not publish the copy: ${reason:-it gave no reason}" ;;
  esac
}

# rsync's plain way (a temporary file, then a rename) with checksums: same size and time do not mean same content.
send() {
  local block=$1 code=0 errors
  shift
  say "sending $*"
  bounded "$WAIT_SEND" "$RSYNC" -c -t "--block-size=$block" --timeout=300 ${VERBOSE:+--stats} \
    -e './ssh -F ./ssh_config' "$@" "$ALIAS:./" >rsync.out 2>&1 || code=$?
  if [ "$code" = 0 ]; then
    [ -z "$VERBOSE" ] || clean_lines <rsync.out >&2
    return 0
  fi
  errors=$(clean_lines <rsync.out | grep -v '^ *$' | head -n 3 | tr '\n' ' ') || errors=''
  case $errors in
    *'No space left'* | *'Disk quota'*) fail 5 "no room left on the Pi for the copy; make some, the old copy stays in use" ;;
  esac
  fail 75 "the copy did not arrive (rsync ended with $code): ${errors:-no reason given}"
}

# --- a snapshot -------------------------------------------------------------------------------------------------------

# Copies one database inside a read transaction, so that a writer at work neither waits nor makes the copy start over;
# then proves the copy by what the source held at that moment: a copy that broke off passes integrity_check, empty.
snapshot() {
  local name=$1 before='' size digest
  say "snapshot of $name"
  ln -sfn -- "$INDEX" source
  if is_at_rest "$name"; then
    before=$(size_and_time "source/$name")
    copy "$name" 'immutable=1'
    if ! is_at_rest "$name" || [ "$before" != "$(size_and_time "source/$name")" ]; then before=''; fi
  fi
  if [ -z "$before" ]; then copy "$name" 'mode=ro'; fi
  prove "$name"
  size=$(file_size "$name")
  digest=$(sha256 <"$name")
  [ "${#digest}" = 64 ] || fail 3 "the checksum of $name could not be made; is shasum there?"
  FILES_JSON="$FILES_JSON${FILES_JSON:+,}\"$name\":{\"size\":$size,\"sha256\":\"$digest\"}"
  SENT_BYTES=$((SENT_BYTES + size))
}

# In WAL mode with no log nobody has it open: then it is read without making files in DigUp's folder.
is_at_rest() {
  [ ! -e "$INDEX/$1-wal" ] && [ "$(head -c 19 -- "$INDEX/$1" | tail -c 1 | od -An -tu1 | tr -d ' ')" = 2 ]
}

COUNTS="SELECT count(*) FROM files; SELECT count(*) FROM segments; SELECT count(*) FROM meta;
  SELECT count(*) FROM sqlite_schema WHERE name IN ('files', 'segments', 'meta', 'fts');"

# Leaves schema, page size, page count and the row counts of the moment that was copied in NAME.seen.
copy() {
  rm -f -- "$1" "$1-journal"
  bounded "$WAIT_SQLITE" sqlite3 -batch -bail -init /dev/null "file:source/$1?$2" '.timeout 5000' 'BEGIN' \
    'PRAGMA user_version; PRAGMA page_size; PRAGMA page_count;' "$COUNTS" ".backup $1" 'COMMIT' \
    >"$1.seen" 2>sqlite.err || sqlite_failed "$1"
  [ -f "$1" ] || fail 3 "SQLite made no copy of $1"
}

# Makes the copy one self-contained file and compares it with what was seen.
prove() {
  local schema
  bounded "$WAIT_SQLITE" sqlite3 -batch -bail -init /dev/null "$1" 'PRAGMA journal_mode = DELETE' \
    'PRAGMA integrity_check(1); PRAGMA page_count;' "$COUNTS" >"$1.proved" 2>sqlite.err || sqlite_failed "$1"
  [ "$(sed -n '1,2p' "$1.proved" | tr '\n' ' ')" = 'delete ok ' ] ||
    fail 3 "the copy of $1 is damaged ($(clean_lines <"$1.proved" | sed -n 2p)); open DigUp, it may repair its index"
  # The first two lines differ in meaning; from there on: pages and rows.
  [ "$(sed '1,2d' "$1.proved")" = "$(sed '1,2d' "$1.seen")" ] ||
    fail 3 "the copy of $1 does not hold what the index held; the next run tries again"
  schema=$(sed -n 1p "$1.seen")
  if [ "$schema" = 0 ] || [ "$(tail -n 1 "$1.seen")" != 4 ]; then
    fail 3 "$INDEX/$1 is a database, but not DigUp's (schema $schema)"
  fi
  if [ "$1" = index.sqlite ]; then SCHEMA=$schema PAGE_SIZE=$(sed -n 2p "$1.seen"); fi
}

sqlite_failed() {
  local text
  text=$(clean_lines <sqlite.err | tail -n 1) || text=''
  # On a full disk there was no room for SQLite's words either.
  [ -n "$text" ] || printf 'x' 2>/dev/null >probe || text='the disk is full'
  case $text in
    *'is full'* | *'No space left'* | *'disk I/O error'*)
      fail 5 "no room for a snapshot of $1 in $STAGING ($text); make some, the next run tries again" ;;
    *locked* | *busy*) fail 6 "$INDEX/$1 is locked by another program; the next run tries again" ;;
    *'no such table'* | *'not a database'*) fail 3 "$INDEX/$1 is not DigUp's index ($text)" ;;
    *'unable to open'* | *'authorization denied'* | *'not permitted'*) not_allowed "$INDEX/$1" ;;
    *) fail 3 "no sound copy of $INDEX/$1 could be made (${text:-sqlite3 was ended}); open DigUp, it may repair its index" ;;
  esac
}

# --- what is written down ---------------------------------------------------------------------------------------------

write_manifest() {
  printf '{"format":1,"source":%s,"home":%s,"schema":%s,"taken_at":"%s","confirmed_at":"%s","script_version":"%s","files":{%s}}\n' \
    "$(json_string "$SOURCE")" "$(json_string "$HOME")" "$SCHEMA" "$TAKEN_AT" "$TAKEN_AT" "$SCRIPT_VERSION" "$FILES_JSON" \
    >manifest.json || fail 5 "$STAGING cannot be written to; look at the disk"
}

write_confirmed() {
  CONFIRMED_AT=$1
  printf '{"format":1,"confirmed_at":"%s"}\n' "$1" >confirmed.json || fail 5 "$STAGING cannot be written to; look at the disk"
}

# What the Pi has confirmed to use: three lines, renamed into place.
write_delivered() {
  { printf '%s\n' "$STATE_KEY" "$GENERATION" "$TAKEN_AT" >delivered && mv -f -- delivered "$BASE/delivered"; } ||
    fail 5 "$BASE cannot be written to; look at the disk"
}

read_delivered() {
  DELIVERED_KEY='' DELIVERED_GENERATION='' DELIVERED_AT=''
  [ -f "$BASE/delivered" ] || return 1
  { IFS= read -r DELIVERED_KEY && IFS= read -r DELIVERED_GENERATION && IFS= read -r DELIVERED_AT; } <"$BASE/delivered"
}

write_status() {
  local delivered=null confirmed=null
  if read_delivered; then delivered=$(json_string "$DELIVERED_AT"); fi
  if [ "$1" = 0 ]; then
    confirmed=$(json_string "${CONFIRMED_AT:-}")
  elif [ -f "$BASE/status.json" ]; then
    ANSWER=$(cat -- "$BASE/status.json")
    confirmed=$(json_string "$(json_field confirmed_at)")
    if [ "$confirmed" = '""' ]; then confirmed=null; fi
  fi
  printf '{"format":1,"state":"%s","exit_code":%s,"message":%s,"source":%s,"index_dir":%s,"generation":%s,"started_at":"%s","finished_at":"%s","seconds":%s,"delivered_at":%s,"confirmed_at":%s,"script_version":"%s"}\n' \
    "$STATE" "$1" "$(json_string "$MESSAGE")" "$(json_string "${SOURCE:-}")" "$(json_string "${INDEX:-}")" \
    "$(json_string "$GENERATION")" "$(utc "$STARTED")" "$(utc_now)" "$(($(now) - STARTED))" "$delivered" "$confirmed" "$SCRIPT_VERSION" \
    >"$BASE/status.json.new" && mv -f -- "$BASE/status.json.new" "$BASE/status.json"
}

write_log() {
  local size line
  line="$(utc_now) $STATE ($1) $(($(now) - STARTED)) s: $(printf '%s' "$MESSAGE" | tr '\n' ' ' | clean_lines)"
  size=$(file_size "$LOG" 2>/dev/null) || size=0
  if [ "$size" -gt "$LOG_LIMIT" ]; then mv -f -- "$LOG" "$LOG.1"; fi
  printf '%s\n' "$line" >>"$LOG"
  if [ -t 1 ] || [ -n "$VERBOSE" ]; then printf '%s\n' "$line"; fi
}

fail() {
  local code=$1
  shift
  MESSAGE=$*
  case $code in
    2) STATE=settings ;; 3) STATE=no_index ;; 4) STATE=refused ;; 5) STATE=disk_full ;; 6) STATE=busy ;; 75) STATE=offline ;;
    77) STATE=locked_out ;; *) STATE=failed ;;
  esac
  printf 'digup-sync: %s\n' "$MESSAGE" >&2
  exit "$code"
}

say() { [ -z "$VERBOSE" ] || printf 'digup-sync: %s\n' "$*" >&2; }
now() { date +%s; }
utc_now() { date -u +%Y-%m-%dT%H:%M:%SZ; }

# A JSON string for any bytes: what is not UTF-8 becomes U+FFFD, control characters are escaped.
json_string() {
  local byte value need=0 low=128 high=191 held='' out=''
  for byte in $(printf '%s' "$1" | od -An -v -tx1); do
    value=$((16#$byte))
    if [ "$need" -gt 0 ]; then
      if [ "$value" -ge "$low" ] && [ "$value" -le "$high" ]; then
        held="$held\\x$byte" need=$((need - 1)) low=128 high=191
        if [ "$need" = 0 ]; then out="$out$held" held=''; fi
        continue
      fi
      out="$out\\\\ufffd" held='' need=0 low=128 high=191
    fi
    case $byte in
      22) out="$out\\\\\\x22" ;;
      5c) out="$out\\\\\\\\" ;;
      [01]? | 7f) out="$out\\\\u00$byte" ;;
      [2-7]?) out="$out\\x$byte" ;;
      c[2-9a-f] | d?) held="\\x$byte" need=1 ;;
      e0) held="\\x$byte" need=2 low=160 ;;
      ed) held="\\x$byte" need=2 high=159 ;;
      e?) held="\\x$byte" need=2 ;;
      f0) held="\\x$byte" need=3 low=144 ;;
      f4) held="\\x$byte" need=3 high=143 ;;
      f[1-3]) held="\\x$byte" need=3 ;;
      *) out="$out\\\\ufffd" ;;
    esac
  done
  [ "$need" = 0 ] || out="$out\\\\ufffd"
  printf '"%b"' "$out"
}

main "$@"
