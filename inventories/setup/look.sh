# Run on a machine by `make setup`, through ssh: says what is there as FACT=VALUE lines. Changes nothing, shows no key.
say() { printf 'digup_%s=%s\n' "$1" "$2"; }
have() { command -v "$1" >/dev/null 2>&1 && echo yes || echo no; }
say system "$(uname -s)"
if [ "$(uname -s)" = Darwin ]; then
  python=$(xcode-select -p 2>/dev/null)/usr/bin/python3
  [ -x "$python" ] && say tools yes || say tools no
  index=$(defaults read com.abdurrahim.DigUp indexDir 2>/dev/null) || index=
  case $index in \~/*) index="$HOME/${index#??}" ;; esac
  [ -n "$index" ] || index="$HOME/Library/Application Support/DigUp/index.noindex"
  [ -e "$index/index.sqlite" ] && say index yes || say index no
  base=${OMLX_BASE_PATH:-$(head -n 1 "$HOME/Library/Application Support/oMLX/base-path" 2>/dev/null)}
  settings="${base:-$HOME/.omlx}/settings.json"
  [ -e "$settings" ] && say omlx yes || say omlx no
  # Never the stub in /usr/bin, which opens a dialog on that Mac where the tools are missing.
  if [ -x "$python" ] && [ -e "$settings" ]; then
    say key "$("$python" -c '
import json, sys
auth = json.load(open(sys.argv[1])).get("auth") or {}
key = auth.get("api_key") or ""
print("unchecked" if auth.get("skip_api_key_verification") else "none" if not key else "short" if len(key) < 16 else "set")
' "$settings" 2>/dev/null)"
  fi
else
  say bits "$(getconf LONG_BIT)"
  say python "$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)"
  python3 -c 'import ensurepip' 2>/dev/null && say venv yes || say venv no
  say rsync "$(have rsync)"
  hermes=no
  for place in "$HOME/.local/bin/hermes" "$HOME/.hermes/hermes-agent/venv/bin/hermes" /usr/local/bin/hermes "$(command -v hermes)"; do
    [ -n "$place" ] && [ -x "$place" ] && hermes=yes
  done
  say hermes "$hermes"
  sudo -n true 2>/dev/null && say sudo yes || say sudo no
fi
say done yes
