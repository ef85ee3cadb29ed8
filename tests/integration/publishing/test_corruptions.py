"""Random damage with a manifest that matches it: refused, or published and every question ends well."""

from __future__ import annotations

import logging
import os
import random
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from tests.integration.publishing.deliveries import Laptop, mark_in_use, sample

from hermes_digup.errors import DigupError
from hermes_digup.index import Snapshot, open_snapshot
from hermes_digup.publishing import publish, source_status
from hermes_digup.ranking import Query, search

# 2,000 in all take a quarter of an hour; a normal run takes a sample of them, another one every time.
ROUNDS = int(os.environ.get("HERMES_DIGUP_CORRUPTIONS", "40"))


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Flips bits, writes noise or zeros over a stretch, swaps pages, cuts off or repeats the end."""
    content = bytearray(data)
    place = chance.randrange(len(content))
    match chance.randrange(6):
        case 0:
            for _ in range(chance.randrange(1, 9)):
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        case 1:
            content[place : place + 64] = chance.randbytes(min(64, len(content) - place))
        case 2:
            content[place : place + 4096] = bytes(min(4096, len(content) - place))
        case 3:
            one, other = (chance.randrange(len(content) // 4096) * 4096 for _ in range(2))
            content[one : one + 4096], content[other : other + 4096] = (
                content[other : other + 4096],
                content[one : one + 4096],
            )
        case 4:
            del content[place // 4096 * 4096 :]
        case _:
            # The header and the first page's schema: what the damage can reach most with.
            for _ in range(chance.randrange(1, 4)):
                content[chance.randrange(4096)] = chance.randrange(256)
    return bytes(content)


def ask_everything(snapshot: Snapshot) -> None:
    vector = np.full(768, 768**-0.5, np.float32)
    for database in filter(None, (snapshot.main, snapshot.code)):
        database.counts()
        database.samples(5)
        files, _ = database.browse(kinds=None, folder=None, name_contains=None, limit=50, offset=0)
        for file in files[:10]:
            database.file(file.path)
            for passage in database.passages(file.id)[:5]:
                database.segment(passage.id)
        for text in ("report", "invoice 2024", "retryPolicy"):
            search(database, Query(text=text))
            search(database, Query(text=text, vector=vector))


@pytest.mark.parametrize("code", [False, True])
def test_damage_is_refused_or_survived(code: bool, tmp_path: Path) -> None:
    seed = random.SystemRandom().getrandbits(64)
    logging.getLogger(__name__).warning("seed %d", seed)  # shown when the test fails
    chance = random.Random(seed)
    laptop = Laptop(tmp_path / "macbook")
    laptop.deliver(sample(), sample("code") if code else None)
    publish(laptop.source)
    outcomes = set()
    for number in range(ROUNDS):
        main, other = sample(), sample("code") if code else None
        if other is None:
            main = damaged(main, chance)
        else:
            other = damaged(other, chance)
        laptop.deliver(main, other)

        outcome = publish(laptop.source)

        outcomes.add(outcome.state)
        assert outcome.state in {"published", "unchanged", "refused"}, f"seed {seed}, round {number}"
        assert source_status(laptop.source).state in {"published", "refused"}
        snapshot = open_snapshot((laptop.source / "current").resolve(), machine="macbook")
        # Damage that no check can see may be in use now: a named fault is an answer, a crash is not.
        with closing(snapshot), suppress(DigupError):
            ask_everything(snapshot)
    laptop.deliver(sample(mark="2"))
    publish(laptop.source)
    assert mark_in_use(laptop.source) == "2"
    assert "refused" in outcomes
