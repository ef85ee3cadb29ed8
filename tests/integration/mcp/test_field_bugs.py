"""What broke other people's search servers, asked of ours: each test stands for a kind of fault.

Words that a query language would take for its own, rankings that a bad lot or a filter misleads, answers that
an agent cannot trust.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcp import Client
from numpy.typing import NDArray
from tests.doubles import digup
from tests.doubles.delivery import HOME, deliver
from tests.doubles.digup import Sample
from tests.doubles.model import HashedWords
from tests.doubles.omlx import OmlxDouble
from tests.integration.mcp.serving import parameters

ROOT = Path(__file__).parents[3]
GEMMA = "google/embeddinggemma-2"
pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Topics:
    """NOT a model: texts that name one of the topics point to it, as strongly as the topic says.

    All else is told apart by its other words.
    """

    name = "topics"

    def __init__(self, **strength: float) -> None:
        self._strength, self._words = strength, HashedWords()

    def embed(self, prompted: Sequence[str]) -> NDArray[np.float32]:
        rows = self._words.embed([self._without_topics(text) for text in prompted])
        for row, text in zip(rows, prompted, strict=True):
            for place, (topic, strength) in enumerate(self._strength.items()):
                if topic in text:
                    row *= np.sqrt(1 - strength**2)
                    row[place] += strength
            row /= np.linalg.norm(row)
        return rows

    def _without_topics(self, text: str) -> str:
        for topic in self._strength:
            text = text.replace(topic, " ")
        return text


def doc(name: str, text: str) -> Sample:
    return Sample(name, "doc", (text,))


def publish(home: Path, *samples: Sample, model: Any = None) -> Path:
    """A Pi to which an index of these files was delivered; returns its home."""
    folder = home / "digup"
    with digup.Index(folder, home=HOME, model=model) as index:
        for sample in samples:
            index.add(sample)
    found = deliver(home, "macbook", [folder / "index.sqlite"], confirmed=datetime.now(timezone.utc))
    assert found.state == "published"
    return home


async def ask(client: Client, tool: str, **arguments: Any) -> tuple[dict[str, Any], str]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    return result.structured_content or {}, result.content[0].text


def names(answer: dict[str, Any]) -> list[str]:
    return [hit["path"].removeprefix(f"{HOME}/") for hit in answer["hits"]]


def codes(answer: dict[str, Any]) -> set[str]:
    return {each["code"] for each in answer["warnings"]}


WRITTEN = {
    "hyphen.md": "a pre-edit hook for the editor",
    "agents.md": "a multi-agent plan, in which we don't use agents of others",
    "bill.md": "the bill INV-2026-0042 is paid",
    "standard.md": "the standard 38.101 on radio bands",
    "other standard.md": "the standard 38.104 on base stations",
    "notes.md": "the N7-band and the AMF of the network",
    "types.md": "use std::vector here, grammar::fa there, and col:val as well",
    "plan.md": "the migration of the old database",
    "mail.md": "write to ana@example.org about C++, or 50% #tag",
}


@pytest.fixture(scope="module")
def words_pi(tmp_path_factory) -> Path:
    """A Pi with files full of signs, found by words alone."""
    return publish(tmp_path_factory.mktemp("words"), *(doc(*each) for each in WRITTEN.items()))


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("pre-edit", "hyphen.md"),
        ("multi-agent", "agents.md"),
        ("INV-2026-0042", "bill.md"),
        ("don't use agents", "agents.md"),
        ("38.101", "standard.md"),
        ("AMF -band", "notes.md"),
        ("grammar::fa", "types.md"),
        ("std::vector", "types.md"),
        ("col:val", "types.md"),
        ("database migration", "plan.md"),
        ("ana@example.org", "mail.md"),
        ('"old database"', "plan.md"),
    ],
)
async def test_words_with_signs_in_them_are_found_as_text(words_pi, serve, query: str, name: str) -> None:
    async with serve(words_pi) as client:
        found, _ = await ask(client, "search_files", query=query)

    assert names(found)[0] == name
    assert found["status"] == "ok"


@pytest.mark.parametrize(
    "query",
    ["it's", "-band", "-", "'", '"', "NOT x", "a AND", "^a", "a*", "{a b}: c", "(a", "a\x00b", "+", "#", "%"],
)
async def test_no_sign_that_people_type_is_an_error(words_pi, serve, query: str) -> None:
    async with serve(words_pi) as client:
        found, _ = await ask(client, "search_files", query=query)

    assert found["status"] in {"ok", "weak", "nothing_found"}


async def test_one_common_word_of_three_is_no_result(words_pi, serve) -> None:
    async with serve(words_pi) as client:
        found, _ = await ask(client, "search_files", query="standard qqzzxx wwvvkk")

    assert found["status"] == "nothing_found"


@pytest.mark.parametrize(("query", "name"), [("設備", "list.md"), ("清單", "list.md"), ("itgc", "rerun.md")])
async def test_a_script_without_spaces_is_found_by_meaning(tmp_path, serve, query: str, name: str) -> None:
    model = Topics(設備=0.7, 清單=0.7, itgc=0.7)
    files = [doc("list.md", "設備清單已完成"), doc("rerun.md", "重跑gen-itgc后")]
    files += [doc(f"other {number}.md", f"a text about thing {number}") for number in range(30)]
    home = publish(tmp_path / "pi", *files, model=model)
    with OmlxDouble(tmp_path / "omlx", api_key=None, model=model) as omlx:
        omlx.add_model(GEMMA)
        async with serve(home, DIGUP_EMBED_URL=omlx.url) as client:
            found, _ = await ask(client, "search_files", query=query)

    assert names(found)[0] == name
    assert "unsplit_script" not in codes(found)


@pytest.mark.parametrize("query", ["設備", "清單"])
async def test_by_words_alone_such_a_script_is_named(tmp_path, serve, query: str) -> None:
    home = publish(tmp_path, doc("list.md", "設備清單已完成"))

    async with serve(home) as client:
        found, _ = await ask(client, "search_files", query=query)

    assert {"unsplit_script", "words_only"} <= codes(found)


async def test_a_rare_word_beats_a_passage_that_is_nearer_in_meaning(tmp_path, serve) -> None:
    # To the model the question is more about a zoo than about a fox.
    model = Topics(zoo=0.3, fox=0.25)
    files = [doc(f"{number}.md", f"passage {number} on bread") for number in range(38)]
    files += [doc("near.md", "a map of the zoo"), doc("word.md", "a fox was here")]
    home = publish(tmp_path / "pi", *files, model=model)
    with OmlxDouble(tmp_path / "omlx", api_key=None, model=Understands("zoo fox", model)) as omlx:
        omlx.add_model(GEMMA)
        async with serve(home, DIGUP_EMBED_URL=omlx.url) as client:
            found, _ = await ask(client, "search_files", query="fox")

    word, near = found["hits"][0], found["hits"][1]
    assert names(found)[:2] == ["word.md", "near.md"]
    assert near["z"] > word["z"] > 0
    assert (word["words_found"], near["words_found"]) == (1, 0)


class Understands:
    """A model that takes every question for the same one."""

    name = "topics"

    def __init__(self, question: str, model: Topics) -> None:
        self._question, self._model = question, model

    def embed(self, prompted: Sequence[str]) -> NDArray[np.float32]:
        return self._model.embed([self._question for _ in prompted])


async def test_the_signals_of_a_good_and_of_a_poor_search_can_be_compared(pi, serve, tmp_path) -> None:
    with OmlxDouble(tmp_path / "omlx", api_key=None, model=HashedWords()) as omlx:
        omlx.add_model(GEMMA)
        async with serve(pi, DIGUP_EMBED_URL=omlx.url) as client:
            good, _ = await ask(client, "search_files", query="ferry from Piraeus to Naxos")
            poor, _ = await ask(client, "search_files", query="ferry qqzzxx")

    assert good["hits"][0]["z"] > max(hit.get("z", 0.0) for hit in poor["hits"])
    assert good["hits"][0]["words_found"] > max(hit["words_found"] for hit in poor["hits"])


async def test_nonsense_convinces_nobody(pi, serve, tmp_path) -> None:
    with OmlxDouble(tmp_path / "omlx", api_key=None, model=HashedWords()) as omlx:
        omlx.add_model(GEMMA)
        async with serve(pi, DIGUP_EMBED_URL=omlx.url) as client:
            found, _ = await ask(client, "search_files", query="zebra pancake velocipede submarine trombone")

    assert found["status"] in {"weak", "nothing_found"}
    assert "words_only" not in codes(found)


async def test_a_folder_is_looked_into_before_anything_is_cut(tmp_path, serve) -> None:
    model = Topics(quartz=0.8, granite=0.6)
    files = [doc(f"A/{number}.md", f"quartz number {number}") for number in range(20)]
    files += [doc(f"C/{number}.md", f"a text about thing {number}") for number in range(300)]
    home = publish(tmp_path / "pi", *files, doc("B/weaker.md", "granite alone"), model=model)
    asked = Understands("quartz granite", model)
    with OmlxDouble(tmp_path / "omlx", api_key=None, model=asked) as omlx:
        omlx.add_model(GEMMA)
        async with serve(home, DIGUP_EMBED_URL=omlx.url) as client:
            everywhere, _ = await ask(client, "search_files", query="stone")
            inside, _ = await ask(client, "search_files", query="stone", folder="~/B")

    assert {name.split("/")[0] for name in names(everywhere)} == {"A"}
    assert names(inside) == ["B/weaker.md"]


async def test_a_model_of_another_size_is_refused_and_both_sizes_are_named(pi, serve, tmp_path) -> None:
    with OmlxDouble(tmp_path / "omlx", api_key=None, model=HashedWords()) as omlx:
        omlx.add_model(GEMMA)
        omlx.fault = "wrong-size"
        async with serve(pi, DIGUP_EMBED_URL=omlx.url) as client:
            found, text = await ask(client, "search_files", query="INV-2026-0042")

    assert "1024" in text
    assert "768" in text
    assert names(found)[0].endswith("Invoice Brightwater Design.pdf")


async def test_meaning_comes_back_by_itself_and_the_pause_is_not_forgotten(pi, serve, tmp_path) -> None:
    with OmlxDouble(tmp_path / "omlx", api_key=None, model=HashedWords()) as omlx:
        omlx.add_model(GEMMA)
        async with serve(pi, DIGUP_EMBED_URL=omlx.url) as client:
            omlx.fault = "null"
            during, _ = await ask(client, "search_files", query="invoice")
            status, said = await ask(client, "index_status")
            omlx.fault = ""
            after, _ = await ask(client, "search_files", query="invoice")

    warned = next(each for each in during["warnings"] if each["code"] == "words_only")
    assert (warned["cause"], status["embedding"]["state"]) == ("bad_vectors", "failing")
    assert warned["since"] == status["embedding"]["since"]
    assert warned["since"] in said
    assert "words_only" not in codes(after)


async def test_a_huge_text_comes_in_parts_that_say_where_to_go_on(tmp_path, serve) -> None:
    lines = [f"{number} days of work and no play" for number in range(6_000)]
    home = publish(tmp_path, doc("huge.md", "needle\n" + "\n".join(lines)))

    async with serve(home) as client:
        found, _ = await ask(client, "search_files", query="needle")
        hit = found["hits"][0]
        file, text = await ask(client, "read_file", path=hit["path"], max_chars=20_000)
        rest, _ = await ask(client, "read_file", path=hit["path"], offset=file["next_offset"])
        _, passage = await ask(client, "read_passage", segment_id=hit["segment_id"], context=3)

    assert "5999 days" not in file["text"]
    assert file["next_offset"] == len(file["text"])
    assert rest["offset"] == file["next_offset"]
    assert f"offset={file['next_offset']}" in text
    assert max(len(text), len(passage)) <= 21_000


NOISE = """
import os, sys, threading, warnings
def noise():
    warnings.warn("a library warns")
    print("a library prints", flush=True)
    os.write(1, b"a library writes to the descriptor\\n")
    raise RuntimeError("a thread crashes")
import hermes_digup.service.searching as searching
quiet = searching.run_search
def loud(*given):
    thread = threading.Thread(target=noise)
    thread.start()
    thread.join()
    return quiet(*given)
import hermes_digup.service.service as service
service.run_search = loud
from hermes_digup.cli import main
sys.exit(main(["serve"]))
"""


def test_noise_of_libraries_and_threads_stays_off_the_protocol(pi) -> None:
    given = parameters(pi, DIGUP_LOG_LEVEL="DEBUG")
    hello = (
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
        '"capabilities":{},"clientInfo":{"name":"test","version":"0"}}}\n'
        '{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    )
    call = (
        '{"jsonrpc":"2.0","id":2,"method":"tools/call",'
        '"params":{"name":"search_files","arguments":{"query":"invoice"}}}\n'
    )
    with subprocess.Popen(
        [sys.executable, "-c", NOISE],
        env=given.env,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(hello + call)
        process.stdin.flush()
        lines = [process.stdout.readline() for _ in range(2)]
        process.stdin.close()
        rest, errors = process.stdout.read(), process.stderr.read()

    assert [re.search(r'"id":(\d)', line)[1] for line in lines] == ["1", "2"]
    assert rest == ""
    for noise in ("a library warns", "a library prints", "to the descriptor", "a thread crashes"):
        assert noise in errors


async def test_every_path_says_its_machine_and_is_read_by_the_tools_themselves(pi, serve) -> None:
    async with serve(pi) as client:
        found, hits = await ask(client, "search_files", query="invoice")
        listed, listing = await ask(client, "browse_files", limit=5)
        texts = [hits, listing]
        for path in [each["path"] for each in [*found["hits"][:3], *listed["files"][:3]]]:
            read, text = await ask(client, "read_file", path=path)
            assert read["status"] in {"ok", "no_text"}
            texts.append(text)

    assert {each["machine"] for each in [*found["hits"], *listed["files"]]} == {"macbook"}
    for text in texts:
        assert len(re.findall(r"\bon macbook\b", text)) >= len(
            re.findall(r"^(?:\d+\. |- )/", text, re.MULTILINE)
        )
        assert not re.search(r"\b(?:open -R|cat|less|file://)\b", text)


def test_tool_names_have_hermess_present_form() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "templates" / "pi").iterdir()]
    texts = [page.read_text("utf-8") for page in pages]

    assert any("mcp__digup__search_files" in text for text in texts)
    assert sum(len(re.findall(r"\bmcp_digup_\w", text)) for text in texts) <= 1


def test_the_sdk_has_a_bound_above_which_it_is_not_installed() -> None:
    wanted = next(each for each in requires("hermes-digup") or [] if re.match(r"mcp\b(?!-)", each))

    assert re.search(r">=2\.\d", wanted)
    assert "<3" in wanted


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch) -> None:
    for key in [each for each in os.environ if each.startswith("DIGUP_")]:
        monkeypatch.delenv(key)
