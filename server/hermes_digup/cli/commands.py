"""Each command: settings read, the right room asked, the answer printed for people or for scripts."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from hermes_digup.cli.indexes import opened_service
from hermes_digup.cli.printing import Printer
from hermes_digup.errors import NoIndexError, SettingsError
from hermes_digup.service import (
    Answer,
    BrowseRequest,
    FileRequest,
    SearchRequest,
    parse_segment_id,
)
from hermes_digup.settings import Settings, load

ANSWER_CODES = {"invalid_argument": SettingsError.exit_code, "no_index": NoIndexError.exit_code}
READ_CODES = {"nothing_found": 1, "no_text": 1, "index_moved": 1}
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
        folder=arguments.folder,
        limit=arguments.limit,
    )
    with opened_service(settings, environ, keep_looking=False) as service:
        answer = service.search(request)
    return shown(answer, arguments, Printer().search)


def read(arguments: argparse.Namespace, settings: Settings, environ: Environ) -> int:
    with opened_service(settings, environ, keep_looking=False) as service:
        what = arguments.what
        if parse_segment_id(what):
            passage = service.read_passage(what, context=arguments.context)
            return shown(passage, arguments, Printer().passage, READ_CODES)
        if what.isascii() and what.isdigit():
            passage = service.read_number(int(what[:18]), context=arguments.context)
            return shown(passage, arguments, Printer().passage, READ_CODES)
        request = FileRequest(
            what,
            offset=arguments.offset,
            max_chars=arguments.max_chars,
            machine=arguments.machine,
            code=True if arguments.code else None,
        )
        return shown(service.read_file(request), arguments, Printer().file, READ_CODES)


def browse(arguments: argparse.Namespace, settings: Settings, environ: Environ) -> int:
    request = BrowseRequest(
        folder=arguments.folder,
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
    """Prints an answer as it was asked for; returns the exit code that its status has."""
    if arguments.json:
        print(answer.model_dump_json(exclude_none=True))
    else:
        show(answer)
    return {**ANSWER_CODES, **codes}.get(answer.status, 0)
