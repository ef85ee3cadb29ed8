"""`publish` and `status --source`: what the laptops' keys, and the person on the Pi, ask about deliveries."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from hermes_digup.cli.printing import Printer
from hermes_digup.errors import NoIndexError
from hermes_digup.publishing import Outcome, publish, retire, source_status, sources
from hermes_digup.service import nothing_in
from hermes_digup.settings import Settings

NEXT = {
    "incomplete": "The next sync completes it: ansible-playbook playbooks/sync_now.yml",
    "refused": "The copy in use stays. Next: hermes-digup doctor",
}

_NICE = 10


def publish_deliveries(settings: Settings, name: str | None, *, force: bool, as_json: bool) -> int:
    """Publishes one source, or all; one line for each. The exit code is that of the worst outcome.

    Raises: DigupError as `publish` does.
    """
    worst = 0
    chosen = _chosen(settings, name)
    os.nice(max(_NICE - os.nice(0), 0))  # answers come first
    for source in chosen:
        worst = max(worst, _shown(publish(source, force=force), as_json=as_json))
    return worst


def retire_source(settings: Settings, name: str, *, as_json: bool) -> int:
    """Takes one laptop's source out of use; its files stay, and a new delivery brings it back.

    Raises: NoIndexError when there is no such source; DigupError as `retire` does.
    """
    return _shown(retire(_chosen(settings, name)[0]), as_json=as_json)


def delivery_status(settings: Settings, name: str, *, as_json: bool) -> int:
    """What became of a source's newest delivery.

    Raises: NoIndexError when there is no such source.
    """
    status = source_status(_chosen(settings, name)[0], prove=True)
    if as_json:
        print(status.as_json())
    else:
        fields = json.loads(status.as_json())
        Printer().fields({key.replace("_", " "): value for key, value in fields.items() if value})
    return 0


def _shown(outcome: Outcome, *, as_json: bool) -> int:
    rest = ". ".join(each for each in (outcome.reason, outcome.note) if each)
    line = f"{outcome.source}: {outcome.state}" + (f": {rest}" if rest else "")
    if as_json:
        print(outcome.as_json())
    elif outcome.exit_code:
        sys.stderr.write(f"hermes-digup: {line}. {NEXT[outcome.state]}\n")
    else:
        Printer().line(line)
    return outcome.exit_code


def _chosen(settings: Settings, name: str | None) -> list[Path]:
    every = sources(settings.sources_dir)
    chosen = [each for each in every if name is None or each.name == name]
    if not chosen:
        known = ", ".join(each.name for each in every)
        what = nothing_in(settings.sources_dir)
        if every:
            what = f"There is no source {name!r} in {settings.sources_dir}; there are: {known}"
        raise NoIndexError(what, fix="Set up the laptop: ansible-playbook site.yml")
    return chosen
