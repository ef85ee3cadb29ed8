"""What differs on a Mac: its stat, date, ps and defaults, and an rsync that knows fewer options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.integration.sync.rig import Laptop, Pi

# The Mac's tools, as far as the script may use them; anything else stops the run.
MAC = r"""
uname() { echo Darwin; }
stat() {
  [ "$1 $2 $4" = '-L -f --' ] || { echo "stat: illegal option" >&2; return 1; }
  case $3 in
    %z) command stat -L -c %s -- "$5" ;;
    '%z %Fm %Fc %i') command stat -L -c '%s %.9Y %.9Z %i' -- "$5" ;;
    *) return 1 ;;
  esac
}
date() {
  case "$*" in
    '+%s' | '-u +%Y-%m-%dT%H:%M:%SZ') command date "$@" ;;
    '-u -r '*) command date -u -d "@$3" "$4" ;;
    *) echo "date: illegal time format" >&2; return 1 ;;
  esac
}
sha256sum() { return 127; }
function /usr/bin/defaults {
  [ "$*" = 'read com.abdurrahim.DigUp indexDir' ] && [ -n "${PREFERENCE-}" ] || return 1
  printf '%s\n' "$PREFERENCE"
}
"""

# Apple's option tables; the first is what macOS 15.4 knew, the second what came with the sources of macOS 26.
MACOS_15 = (
    "-a -c -e -n -r -t -u -v -z -B -W --block-size --bwlimit --checksum --chmod --contimeout "
    "--delay-updates --inplace --link-dest --modify-window --no-whole-file --numeric-ids --partial "
    "--partial-dir --rsync-path --size-only --stats --timeout --times"
)
MACOS_26 = MACOS_15 + " -i --itemize-changes --list-only --log-file --out-format"


@pytest.fixture
def mac(laptop: Laptop, tmp_path: Path) -> dict[str, str]:
    """The environment that makes bash see a Mac."""
    laptop.fill("mac")
    tools = tmp_path / "mac-tools"
    tools.write_text(MAC)
    return {"BASH_ENV": str(tools)}


def test_with_a_macs_tools_the_same_is_delivered(laptop: Laptop, pi: Pi, mac: dict[str, str]) -> None:
    for state in ("delivered", "unchanged"):
        done = laptop.run(environment=mac)
        assert done.returncode == 0, done.stderr
        assert laptop.status()["state"] == state
    assert pi.mark == "mac"


@pytest.mark.parametrize("written", ["{home}/else where", "~/else where"])
def test_digups_own_preference_names_the_folder(
    laptop: Laptop, pi: Pi, mac: dict[str, str], written: str
) -> None:
    laptop.folder.rename(laptop.home / "else where")
    preference = written.format(home=laptop.home)
    done = laptop.run(environment={**mac, "PREFERENCE": preference})
    assert done.returncode == 0, done.stderr
    assert pi.mark == "mac"
    assert laptop.status()["index_dir"] == str(laptop.home / "else where")


def test_the_setting_wins_over_digups_preference(laptop: Laptop, pi: Pi, mac: dict[str, str]) -> None:
    laptop.settings["DIGUP_INDEX_DIR"] = str(laptop.folder)
    assert laptop.run(environment={**mac, "PREFERENCE": "/nowhere"}).returncode == 0
    assert pi.mark == "mac"


@pytest.mark.parametrize("known", [MACOS_15, MACOS_26], ids=["macOS 15", "macOS 26"])
def test_apples_rsync_knows_every_option_that_is_used(laptop: Laptop, pi: Pi, known: str) -> None:
    laptop.fill("old")
    laptop.settings["DIGUP_RSYNC"] = laptop.program(
        "openrsync",
        f"""#!/bin/sh
for word; do
  case $word in -*) case " {known} " in
    *" ${{word%%=*}} "*) ;;
    *) echo "rsync: unrecognized option $word" >&2; exit 1 ;;
  esac ;; esac
done
exec /usr/bin/rsync --protocol=29 "$@"
""",
    )
    laptop.sync()
    laptop.set_mark("new")
    done = laptop.run("-v")
    assert (done.returncode, laptop.status()["state"]) == (0, "delivered"), done.stderr
    assert "Total bytes sent: " in done.stderr
    assert pi.mark == "new"
    assert json.loads((pi.landing / "manifest.json").read_text())["format"] == 1
