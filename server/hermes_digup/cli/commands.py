"""Each command: settings read, the right room asked, the answer printed for people or for scripts."""

from __future__ import annotations

import argparse
import json
import logging
import re
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from hermes_digup.cli.indexes import opened_service
from hermes_digup.cli.printing import Printer
from hermes_digup.cli.words import for_people, from_home
from hermes_digup.errors import BusyError, NoIndexError, SettingsError
from hermes_digup.service import (
    Answer,
    BrowseRequest,
    FileRequest,
    NumberRequest,
    SearchRequest,
    parse_segment_id,
)
from hermes_digup.settings import Settings, load

MOST_CHARS = 20_000
LIKE_AN_ID = re.compile(r"[^\s/:]+:c?[0-9]*(:[^\s/:]*)?\Z")
LIKE_A_NUMBER = re.compile(r"-?[0-9]+\Z")
ANSWER_CODES = {
    "invalid_argument": SettingsError.exit_code,
    "no_index": NoIndexError.exit_code,
    "timed_out": BusyError.exit_code,
}
READ_CODES = {"nothing_found": 1, "no_text": 1, "index_moved": 1, "end_of_file": 1}
Environ = Mapping[str, str]


def run(arguments: argparse.Namespace, environ: Environ) -> int:
    """Runs the command that was asked for; returns its exit code.

    Raises: DigupError for what a person can mend.
    """
    settings = load(environ)
    logging.basicConfig(
        level=settings.log_level, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s", force=True
    )
    if arguments.verb != "doctor":
        for sentence in settings.unknown:
            sys.stderr.write(f"hermes-digup: {sentence}\n")
    return COMMANDS[arguments.verb](arguments, settings, environ)


def search(arguments: argparse.Namespace, settings: Settings, environ: Environ) -> int:
    if arguments.code and arguments.kind:
        raise SettingsError("--kind does not go with --code: the code index holds code alone")
    request = SearchRequest(
        " ".join(arguments.query),
        code=arguments.code,
        kinds=frozenset(arguments.kind or ()) or None,
        folder=from_home(arguments.folder, environ.get("HOME", "")),
        limit=arguments.limit,
    )
    with opened_service(settings, environ, keep_looking=False) as service:
        answer = service.search(request)
    return shown(answer, arguments, Printer().search)


def is_id(what: str) -> bool:
    """Whether this is, or was meant as, the id of a hit: no path of a file looks like it."""
    return parse_segment_id(what) is not None or bool(LIKE_AN_ID.match(what))


def is_number(what: str) -> bool:
    """Whether this is meant as DigUp's number."""
    return bool(LIKE_A_NUMBER.match(what))


def read(arguments: argparse.Namespace, settings: Settings, environ: Environ) -> int:
    what, code = arguments.what, True if arguments.code else None
    _check_options_of_read(arguments)
    with opened_service(settings, environ, keep_looking=False) as service:
        if is_id(what):
            passage = service.read_passage(what, context=arguments.context or 0)
            return shown(passage, arguments, Printer().passage, READ_CODES)
        if is_number(what):
            number = NumberRequest(what, arguments.context or 0, arguments.machine, code)
            return shown(service.read_number(number), arguments, Printer().passage, READ_CODES)
        path, most = from_home(what, environ.get("HOME", "")), arguments.max_chars or MOST_CHARS
        request = FileRequest(path, arguments.offset or 0, most, arguments.machine, code)
        return shown(service.read_file(request), arguments, Printer().file, READ_CODES)


def _check_options_of_read(arguments: argparse.Namespace) -> None:
    """Raises: SettingsError for an option that would do nothing."""
    of_files = {"--offset": arguments.offset, "--max-chars": arguments.max_chars}
    of_places = {"--machine": arguments.machine or None, "--code": arguments.code or None}
    if is_id(arguments.what):
        idle, why = {**of_files, **of_places}, "an id, which names one passage; it takes --context"
    elif is_number(arguments.what):
        idle, why = of_files, "a number, which names one passage; it takes --context, --machine and --code"
    else:
        idle, why = {"--context": arguments.context}, "a path; a file takes --offset and --max-chars"
    for option, given in idle.items():
        if given is not None:
            raise SettingsError(f"{option} does not go with {why}")


def browse(arguments: argparse.Namespace, settings: Settings, environ: Environ) -> int:
    request = BrowseRequest(
        folder=from_home(arguments.folder, environ.get("HOME", "")),
        kinds=frozenset(arguments.kind or ()) or None,
        name_contains=arguments.name,
        limit=arguments.limit,
        offset=arguments.offset,
    )
    with opened_service(settings, environ, keep_looking=False) as service:
        answer = service.browse_files(request)
    return shown(answer, arguments, Printer().listing)


def status(arguments: argparse.Namespace, settings: Settings, environ: Environ) -> int:
    if arguments.source:
        from hermes_digup.cli.delivery import delivery_status

        return delivery_status(settings, arguments.source, as_json=arguments.json)
    with opened_service(settings, environ, keep_looking=False) as service:
        answer = service.index_status()
    return shown(answer, arguments, Printer().status)


def publish(arguments: argparse.Namespace, settings: Settings, environ: Environ) -> int:
    from hermes_digup.cli.delivery import publish_deliveries, retire_source

    if arguments.retire:
        if not arguments.source:
            raise SettingsError("--retire needs --source NAME: which laptop is to be taken out of use")
        return retire_source(settings, arguments.source, as_json=arguments.json)
    return publish_deliveries(settings, arguments.source, force=arguments.force, as_json=arguments.json)


def doctor(arguments: argparse.Namespace, settings: Settings, environ: Environ) -> int:
    from hermes_digup.doctor import examine

    with opened_service(settings, environ, keep_looking=False) as service:
        report = examine(settings, service)
    if arguments.json:
        print(json.dumps(report.as_dict(), ensure_ascii=False))
    else:
        Printer().report(report)
    return report.exit_code


def serve(arguments: argparse.Namespace, settings: Settings, environ: Environ) -> int:
    from hermes_digup.cli.serving import serve_agents

    return serve_agents(arguments, settings, environ)


COMMANDS: dict[str, Callable[[argparse.Namespace, Settings, Environ], int]] = {
    "serve": serve,
    "search": search,
    "read": read,
    "browse": browse,
    "status": status,
    "doctor": doctor,
    "publish": publish,
}


AnAnswer = TypeVar("AnAnswer", bound=Answer)


def shown(
    answer: AnAnswer,
    arguments: argparse.Namespace,
    show: Callable[[AnAnswer], None],
    codes: Mapping[str, int] = MappingProxyType({}),
) -> int:
    """Prints an answer as it was asked for; returns the exit code that its status has.

    A fault's sentence goes to standard error, unless the JSON tells it.
    """
    code = {**ANSWER_CODES, **codes}.get(answer.status, 0)
    spoken = for_people(answer)
    if arguments.json:
        print(spoken.model_dump_json(exclude_none=True))
    elif code:
        show(spoken.model_copy(update={"message": ""}))
        sys.stderr.write(f"hermes-digup: {spoken.message}\n")
    else:
        show(spoken)
    return code
