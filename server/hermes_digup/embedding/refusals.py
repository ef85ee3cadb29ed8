"""What an answer without vectors means: which fault, in words that help, and never with the key in them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from hermes_digup.errors import (
    BadVectorsError,
    EmbeddingError,
    LoadingError,
    RefusedKeyError,
    WrongModelError,
)

LONGEST_SHOWN = 200
NO_EMBEDDINGS = re.compile(
    r"not an? embeddings? model|(does|do) not support embedding|embeddings?( api)? (is|are) not supported"
    r"|not support(ed)? .{0,20}embedding",
    re.IGNORECASE,
)
NO_SUCH_MODEL = re.compile(
    r"model.{0,120}(not found|does not exist|not exist|unknown|no such)", re.IGNORECASE | re.DOTALL
)
NEW_KEY = "Make a new one: ansible-playbook playbooks/rotate_key.yml"
ANOTHER_MODEL = "Serve EmbeddingGemma 2 and name it in DIGUP_EMBED_MODEL."


@dataclass(frozen=True, slots=True)
class Reply:
    """One whole answer of a server."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked, as far as a message needs it. `key` is only there to be left out of messages."""

    where: str
    model: str
    key: str | None


def content(reply: Reply) -> object:
    """The decoded body, or None. Servers may send blanks while they work, so a body can start with them."""
    try:
        return json.loads(reply.body.decode("utf-8"))
    except (ValueError, RecursionError):
        return None


def message(answer: object, key: str | None) -> str:
    """The server's own words about a fault in one short line, without the key; empty when there are none."""
    told = answer if isinstance(answer, dict) else {}
    error = told.get("error")
    said = (
        error.get("message")
        if isinstance(error, dict)
        else error or told.get("detail") or told.get("message")
    )
    if not isinstance(said, str):
        return ""
    hidden = said.replace(key, "(key)") if key else said
    line = " ".join("".join(char if char.isprintable() else " " for char in hidden).split())
    return line[: LONGEST_SHOWN - 1] + "…" if len(line) > LONGEST_SHOWN else line


def lacks_model(reply: Reply) -> bool:
    """Whether the server says that it has no model of that name."""
    return reply.status in (400, 404) and bool(NO_SUCH_MODEL.search(message(content(reply), None)))


def fault(reply: Reply, asked: Asked) -> EmbeddingError:
    """The fault that an answer with an error status stands for."""
    said = message(content(reply), asked.key)
    told = f": {said}" if said else ""
    if reply.status == 401 or (reply.status == 403 and not NO_EMBEDDINGS.search(said)):
        return _refused(reply.status, asked)
    if NO_EMBEDDINGS.search(said):
        return WrongModelError(f"{asked.model} makes no embeddings", where=asked.where, fix=ANOTHER_MODEL)
    if reply.status in (404, 405) or lacks_model(reply):
        return _not_there(reply, asked)
    if reply.status == 409:
        return WrongModelError(
            f"The model server cannot load {asked.model}{told}",
            where=asked.where,
            fix="Reload the models there (oMLX: Models, Reload), or update it.",
        )
    if reply.status in (429, 503):
        return LoadingError(
            f"The model server is busy or still loading{told}",
            where=asked.where,
            fix="Try again in a minute.",
        )
    if 300 <= reply.status < 400:
        return EmbeddingError(
            f"The address redirects elsewhere (HTTP {reply.status}), which is not followed",
            where=asked.where,
            fix="Put the final address into DIGUP_EMBED_URL.",
        )
    return EmbeddingError(
        f"The model server answered HTTP {reply.status}{told}",
        where=asked.where,
        fix="Its own log says why.",
    )


def unusable(reply: Reply, asked: Asked) -> BadVectorsError | None:
    """The fault of an answer that says 200 and holds no vectors, or None when it may hold some."""
    answer = content(reply)
    if answer is None:
        kind = "an empty answer" if not reply.body.strip() else "something that is not JSON"
        what = f"The model server sent {kind}, or broke off in the middle"
    elif isinstance(answer, dict) and answer.get("error"):
        said = message(answer, asked.key)
        what = f"The model server failed at its work{': ' + said if said else ''}"
    else:
        return None
    return BadVectorsError(what, where=asked.where, fix="Its own log says why.")


def _refused(status: int, asked: Asked) -> RefusedKeyError:
    if not asked.key:
        return RefusedKeyError(
            f"The model server asks for a key and none is set (HTTP {status})",
            where=asked.where,
            fix=f"Set DIGUP_EMBED_API_KEY. {NEW_KEY}",
        )
    return RefusedKeyError(
        f"The model server refused the key (HTTP {status})", where=asked.where, fix=NEW_KEY
    )


def _not_there(reply: Reply, asked: Asked) -> EmbeddingError:
    if lacks_model(reply):
        return WrongModelError(
            f"The model server has no model {asked.model}, and no EmbeddingGemma 2 was found there",
            where=asked.where,
            fix=ANOTHER_MODEL,
        )
    return WrongModelError(
        f"There is no embeddings service at this address (HTTP {reply.status})",
        where=asked.where,
        fix="Check DIGUP_EMBED_URL and DIGUP_EMBED_API.",
    )
