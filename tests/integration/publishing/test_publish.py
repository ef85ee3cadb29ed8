"""A delivery becomes the copy in use: what is made, what is kept, what is not done twice."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from tests.integration.publishing.deliveries import (
    CODE,
    MAIN,
    Laptop,
    assert_every_copy_is_what_it_says,
    edited,
    generations,
    leftovers,
    mark_in_use,
    sample,
)

from hermes_digup.errors import BusyError, NoIndexError
from hermes_digup.publishing import publish, retire, source_status, sources

NOW = datetime(2026, 11, 30, 17, 45, tzinfo=timezone.utc)


@pytest.fixture
def laptop(tmp_path: Path) -> Laptop:
    return Laptop(tmp_path / "sources" / "macbook")


def test_a_delivery_is_published_as_hard_links_with_packed_vectors(laptop: Laptop) -> None:
    laptop.deliver(sample(), sample("code"))

    outcome = publish(laptop.source)

    current = laptop.source / "current"
    assert (outcome.state, outcome.exit_code) == ("published", 0)
    assert str(current.readlink()) == f"generations/{outcome.generation}"
    for name in (MAIN, CODE):
        assert (current / name).samefile(laptop.landing / name)
    assert len(list(current.glob("*.bin"))) == 2
    assert mark_in_use(laptop.source) == "1"
    assert leftovers(laptop.source) == []


def test_a_copy_in_use_that_the_card_lost_is_replaced_by_the_same_delivery(laptop: Laptop) -> None:
    laptop.deliver(sample())
    lost = publish(laptop.source).generation
    assert source_status(laptop.source, prove=True).generation == lost

    with (laptop.source / "current" / MAIN).open("r+b") as damaged:
        damaged.write(bytes(20_000))
    assert source_status(laptop.source, prove=True).generation is None
    laptop.deliver(sample())
    outcome = publish(laptop.source)

    assert outcome.state == "published"
    assert outcome.generation != lost
    assert source_status(laptop.source, prove=True).generation == outcome.generation
    assert mark_in_use(laptop.source) == "1"


def test_a_generation_says_where_and_when_it_comes_from(laptop: Laptop) -> None:
    laptop.deliver(sample(), source="forged/../name")

    publish(laptop.source, clock=lambda: NOW)

    record = json.loads((laptop.source / "current" / "generation.json").read_text())
    assert (record["source"], record["home"]) == ("macbook", "/Users/ana")
    status = source_status(laptop.source, now=NOW)
    assert status.taken_at == status.confirmed_at == datetime(2026, 11, 30, 17, 40, 2, tzinfo=timezone.utc)
    assert status.published_at == NOW


def test_the_same_content_again_is_unchanged_and_touches_nothing(laptop: Laptop) -> None:
    laptop.deliver(sample())
    first = publish(laptop.source)
    made = (laptop.source / "current" / "generation.json").stat()
    laptop.deliver(sample(), taken_at="2026-11-30T17:44:00Z")

    again = publish(laptop.source)

    assert (again.state, again.generation) == ("unchanged", first.generation)
    assert (laptop.source / "current" / "generation.json").stat() == made


def test_a_forced_publish_proves_again_beside_the_copy_in_use(laptop: Laptop) -> None:
    laptop.deliver(sample())
    first = publish(laptop.source)

    again = publish(laptop.source, force=True)

    assert again.state == "published"
    assert again.generation == f"{first.generation}-2"
    assert publish(laptop.source).state == "unchanged"


def test_a_copy_without_vectors_of_this_program_is_packed_again(laptop: Laptop) -> None:
    laptop.deliver(sample())
    publish(laptop.source)
    packed = next((laptop.source / "current").glob("*.bin"))
    packed.rename(packed.with_name("index.vectors-0.bin"))

    assert publish(laptop.source).state == "published"
    assert (laptop.source / "current" / packed.name).exists()


def test_code_that_is_no_longer_delivered_leaves_the_copy_in_use(laptop: Laptop) -> None:
    laptop.deliver(sample(), sample("code"))
    publish(laptop.source)
    laptop.deliver(sample())

    assert publish(laptop.source).state == "published"
    assert not (laptop.source / "current" / CODE).exists()


def test_the_copy_in_use_and_the_one_before_are_kept(laptop: Laptop) -> None:
    made = []
    for mark in "12345":
        laptop.deliver(sample(mark=mark))
        made.append(publish(laptop.source).generation)

    assert generations(laptop.source) == set(made[-2:])
    assert mark_in_use(laptop.source) == "5"


def test_going_back_to_the_content_before_needs_no_new_generation(laptop: Laptop) -> None:
    made = []
    for mark in "1212":
        laptop.deliver(sample(mark=mark))
        made.append(publish(laptop.source).generation)

    assert made[0] == made[2]
    assert generations(laptop.source) == set(made)
    assert mark_in_use(laptop.source) == "2"


def test_one_more_copy_stays_while_somebody_reads_it(laptop: Laptop) -> None:
    laptop.deliver(sample(mark="1"))
    publish(laptop.source)
    reader = os.open((laptop.source / "current").resolve(), os.O_RDONLY)
    fcntl.flock(reader, fcntl.LOCK_SH)

    for mark in "234":
        laptop.deliver(sample(mark=mark))
        publish(laptop.source)
    while_read = len(generations(laptop.source))
    os.close(reader)
    laptop.deliver(sample(mark="5"))
    publish(laptop.source)

    assert while_read == 3
    assert len(generations(laptop.source)) == 2


def test_the_order_of_copies_survives_a_clock_that_went_back(laptop: Laptop) -> None:
    made = []
    for mark in "123":
        laptop.deliver(sample(mark=mark))
        made.append(str(publish(laptop.source).generation))
        if mark == "1":
            ahead = (NOW + timedelta(days=3650)).timestamp()
            os.utime(laptop.source / "generations" / made[0], (ahead, ahead))

    assert generations(laptop.source) == set(made[1:])


def test_a_half_arrived_delivery_is_incomplete_and_the_old_copy_stays(laptop: Laptop) -> None:
    laptop.deliver(sample(mark="1"))
    publish(laptop.source)
    laptop.send(MAIN, sample(mark="2"))

    outcome = publish(laptop.source)

    assert outcome.state == source_status(laptop.source).state == "incomplete"
    assert "does not match" in outcome.reason
    assert mark_in_use(laptop.source) == "1"
    laptop.deliver(sample(mark="2"))
    assert publish(laptop.source).state == "published"
    assert source_status(laptop.source).reason == ""


@pytest.mark.parametrize("arrived", [[], ["confirmed.json"], ["index.sqlite"]])
def test_a_landing_without_a_manifest_is_incomplete(arrived: list[str], laptop: Laptop) -> None:
    for name in arrived:
        laptop.send(name, b"{}")

    outcome = publish(laptop.source)

    assert (outcome.state, outcome.generation) == ("incomplete", None)
    assert "no manifest.json" in outcome.reason


def test_a_refused_landing_is_not_proved_again_until_it_changes(laptop: Laptop) -> None:
    laptop.deliver(b"not a database" * 1000)
    first = publish(laptop.source, clock=lambda: NOW)
    state = (laptop.source / "state.json").stat()

    again = publish(laptop.source, clock=lambda: NOW + timedelta(hours=1))
    stayed = (laptop.source / "state.json").stat() == state
    laptop.deliver(b"not a database" * 1000)
    resent = publish(laptop.source)
    laptop.deliver(sample())

    assert first.state == again.state == resent.state == "refused"
    assert first.reason == again.reason == resent.reason
    assert stayed
    assert publish(laptop.source).state == "published"


def test_what_is_known_of_a_landing_is_known_without_reading_it(
    laptop: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, sizes = os.read, []

    def counted(descriptor: int, length: int) -> bytes:
        data = read(descriptor, length)
        sizes.append(len(data))
        return data

    for main in (b"not a database" * 10_000, sample()):
        laptop.deliver(main)
        first = publish(laptop.source)
        monkeypatch.setattr(os, "read", counted)

        again = publish(laptop.source)

        monkeypatch.undo()
        assert again.generation == first.generation
        assert 0 < sum(sizes) < 20_000


def test_a_forced_publish_proves_a_refused_landing_again(laptop: Laptop) -> None:
    laptop.deliver(b"not a database" * 1000)
    publish(laptop.source, clock=lambda: NOW)

    publish(laptop.source, force=True, clock=lambda: NOW + timedelta(hours=1))

    assert source_status(laptop.source).since == NOW + timedelta(hours=1)


def test_a_manifest_from_the_future_is_tried_again_when_the_clock_is_right(laptop: Laptop) -> None:
    laptop.deliver(sample())
    asleep = publish(laptop.source, clock=lambda: NOW - timedelta(days=9))

    assert asleep.state == "refused"
    assert "from the future" in asleep.reason
    assert publish(laptop.source, clock=lambda: NOW).state == "published"


@pytest.mark.parametrize("moment", ["link", "utime"], ids=["while linking", "while switching"])
def test_a_delivery_that_arrives_meanwhile_is_published_too(
    moment: str, laptop: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop.deliver(sample(mark="1"))
    marks, call = iter(["2"]), getattr(os, moment)

    def with_a_delivery(*args: object, **options: object) -> None:
        if mark := next(marks, None):
            laptop.deliver(sample(mark=mark))
        call(*args, **options)

    monkeypatch.setattr(os, moment, with_a_delivery)

    assert publish(laptop.source).state == "published"
    assert mark_in_use(laptop.source) == "2"
    assert_every_copy_is_what_it_says(laptop.source)
    assert leftovers(laptop.source) == []


def test_deliveries_without_end_stop_a_publisher_after_a_few_rounds(
    laptop: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop.deliver(sample(mark="1"))
    link, rounds = os.link, []

    def with_a_delivery(*args: object, **options: object) -> None:
        rounds.append(1)
        laptop.deliver(sample(mark=str(len(rounds) % 2)))
        link(*args, **options)

    monkeypatch.setattr(os, "link", with_a_delivery)

    assert publish(laptop.source).state == "incomplete"
    assert len(rounds) == 3


def test_a_second_publisher_waits_for_the_first(laptop: Laptop) -> None:
    laptop.deliver(sample())
    lock = os.open(laptop.source / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with pytest.raises(BusyError, match="macbook"):
        publish(laptop.source, wait_s=0.2)
    outcomes = []
    second = threading.Thread(target=lambda: outcomes.append(publish(laptop.source, wait_s=60).state))
    second.start()

    os.close(lock)
    second.join()

    assert outcomes == ["published"]


def test_publishers_at_once_publish_once(laptop: Laptop) -> None:
    laptop.deliver(sample())
    outcomes = []
    threads = [
        threading.Thread(target=lambda: outcomes.append(publish(laptop.source).state)) for _ in range(4)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(outcomes) == ["published", "unchanged", "unchanged", "unchanged"]


def test_a_retired_source_is_out_of_use_until_a_new_delivery(laptop: Laptop) -> None:
    laptop.deliver(sample())
    publish(laptop.source)

    retired = retire(laptop.source)

    assert retired.exit_code == 0
    assert retired.state == publish(laptop.source).state == source_status(laptop.source).state == "retired"
    assert mark_in_use(laptop.source) is None
    assert generations(laptop.source)
    laptop.deliver(sample(), taken_at="2026-11-30T17:44:00Z")
    assert publish(laptop.source).state == "published"
    assert mark_in_use(laptop.source) == "1"


def test_a_retired_source_comes_back_when_forced(laptop: Laptop) -> None:
    laptop.deliver(sample())
    publish(laptop.source)
    retire(laptop.source)

    assert publish(laptop.source, force=True).state == "published"


def test_sources_are_folders_with_a_name_that_an_inventory_can_have(tmp_path: Path) -> None:
    for name in ("macbook", "mac-mini.2", ".hidden", "bad name"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").touch()

    assert [path.name for path in sources(tmp_path)] == ["mac-mini.2", "macbook"]
    assert sources(tmp_path / "missing") == []


def test_a_source_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoIndexError, match="no source nobody"):
        publish(tmp_path / "nobody")


def test_a_source_before_its_first_delivery_is_waiting(laptop: Laptop) -> None:
    status = source_status(laptop.source)

    assert (status.state, status.generation, status.confirmed_at) == ("waiting", None, None)


def test_garbled_records_of_ours_cost_a_check_and_no_answer(laptop: Laptop) -> None:
    laptop.deliver(sample())
    publish(laptop.source)
    (laptop.source / "state.json").write_text('{"state": "lost')

    assert source_status(laptop.source).state == "published"
    assert publish(laptop.source).state == "unchanged"
    assert source_status(laptop.source).state == "published"


def test_the_answer_is_one_line_of_plain_characters_whatever_the_reason(laptop: Laptop) -> None:
    name = "a\u202eb\x1b[31m\nc'"
    laptop.deliver(edited(sample(), f'CREATE VIEW "{name}" AS SELECT 1'))

    line = publish(laptop.source).as_json()

    assert line.isascii()
    assert line.isprintable()
    assert '\\"' not in line
    assert json.loads(line)["state"] == "refused"
