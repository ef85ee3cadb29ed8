"""Every answer is valid against its schema, and every foreseeable mistake is an ordinary answer."""

from __future__ import annotations

import re
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import Client
from mcp.types import CallToolResult

from hermes_digup.mcp_server import DEFINITIONS

SCHEMAS = {each.name: each.output_schema() for each in DEFINITIONS}
MOST_CHARS = 20_000
pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured answer of a call that must be ordinary, valid and bounded."""
    result = await client.call_tool(tool, arguments)
    assert isinstance(result, CallToolResult)
    assert not result.is_error, result
    answer = result.structured_content
    assert answer is not None
    jsonschema.validate(answer, SCHEMAS[tool])
    assert len(text(result)) <= MOST_CHARS
    return answer


def text(result: CallToolResult) -> str:
    assert len(result.content) == 1
    return result.content[0].text


def codes(answer: dict[str, Any]) -> set[str]:
    return {warning["code"] for warning in answer["warnings"]}


async def test_a_search_leads_to_the_words_it_found(pi, serve) -> None:
    async with serve(pi) as client:
        found = await ask(client, "search_files", query="INV-2026-0042")
        hit = found["hits"][0]
        passage = await ask(client, "read_passage", segment_id=hit["segment_id"])
        file = await ask(client, "read_file", path=hit["path"])

    assert found["status"] == "ok"
    assert hit["path"].endswith("/Documents/Invoices/2026/Invoice Brightwater Design.pdf")
    assert (hit["machine"], hit["kind"], hit["place"]) == ("macbook", "pdf", "page 1")
    assert "INV-2026-0042" in passage["text"]
    assert "INV-2026-0042" in file["text"]
    assert "words_only" in codes(found)


async def test_the_text_alone_holds_all_that_is_needed(pi, serve) -> None:
    async with serve(pi, "text") as client:
        result = await client.call_tool("search_files", {"query": "INV-2026-0042"})
        segment_id = re.search(r"id (\S+)", text(result))
        assert segment_id
        passage = await client.call_tool("read_passage", {"segment_id": segment_id[1]})

    assert result.structured_content is None
    assert "Invoice Brightwater Design.pdf" in text(result)
    assert "macbook" in text(result)
    assert "INV-2026-0042" in text(passage)


async def test_code_is_found_with_its_line(pi, serve) -> None:
    async with serve(pi) as client:
        found = await ask(client, "search_code", query="retry request pauses")
        hit = found["hits"][0]
        whole = await ask(client, "read_file", path=hit["path"])

    assert hit["path"].endswith("/Code/tidewatch/tidewatch/retry.py")
    assert hit["kind"] == "code"
    assert whole["code"] is True
    assert "def " in whole["text"]


async def test_a_listing_is_paged_to_its_end_without_repetition(pi, serve) -> None:
    seen: list[str] = []
    offset: int | None = 0
    async with serve(pi) as client:
        while offset is not None:
            page = await ask(client, "browse_files", limit=7, offset=offset)
            seen += [file["path"] for file in page["files"]]
            offset = page.get("next_offset")

    assert len(seen) == page["total"] == len(set(seen))


async def test_a_star_before_or_after_a_part_of_a_name_means_anything(pi, serve) -> None:
    async with serve(pi) as client:
        plain, starred = [
            await ask(client, "browse_files", name_contains=name) for name in (".pdf", "*.pdf*")
        ]

    assert starred == plain
    assert {file["kind"] for file in plain["files"]} == {"pdf"}


async def test_a_file_is_paged_to_its_end_as_one_text(pi, serve) -> None:
    async with serve(pi) as client:
        found = await ask(client, "search_files", query="coffee machine manual")
        path = found["hits"][0]["path"]
        whole = await ask(client, "read_file", path=path, max_chars=20000)
        pieces, offset = "", 0
        while offset is not None:
            part = await ask(client, "read_file", path=path, offset=offset, max_chars=97)
            pieces, offset = pieces + part["text"], part.get("next_offset")
        beyond = await ask(client, "read_file", path=path, offset=whole["total_chars"])

    assert pieces == whole["text"]
    assert beyond["status"] == "end_of_file"


async def test_kinds_and_folder_narrow_a_search(pi, serve) -> None:
    async with serve(pi) as client:
        every = await ask(client, "search_files", query="invoice", limit=50)
        narrow = await ask(
            client, "search_files", query="invoice", kinds=["pdf"], folder="~/Documents/Invoices"
        )

    assert 0 < len(narrow["hits"]) <= len(every["hits"])
    assert {hit["kind"] for hit in narrow["hits"]} == {"pdf"}
    assert all("/Documents/Invoices/" in hit["path"] for hit in narrow["hits"])


async def test_status_says_what_there_is_and_how_it_is_searched(pi, serve) -> None:
    async with serve(pi) as client:
        status = await ask(client, "index_status")

    source = status["sources"][0]
    assert (source["machine"], source["usable"]) == ("macbook", True)
    assert source["files"]["files"] > 0
    assert source["code"]["by_kind"].keys() == {"code"}
    assert status["embedding"]["state"] == "not_set"
    assert "words alone" in status["searches"]


async def test_a_status_that_was_asked_for_in_a_wrong_way_claims_nothing(pi, serve) -> None:
    async with serve(pi) as client:
        result = await client.call_tool("index_status", {"verbose": True})

    assert result.content[0].text == (
        "invalid_argument: verbose is no argument. Valid: none. Call again without it."
    )


@pytest.mark.parametrize(
    ("tool", "arguments", "status"),
    [
        ("search_files", {}, "invalid_argument"),
        ("search_files", {"query": ""}, "invalid_argument"),
        ("search_files", {"query": "\x00"}, "invalid_argument"),
        ("search_files", {"query": "x", "kinds": ["spreadsheet"]}, "invalid_argument"),
        ("search_files", {"query": "x", "since": "2024"}, "invalid_argument"),
        ("search_files", {"query": "qqzzxx"}, "nothing_found"),
        ("search_files", {"query": "zebra pancake velocipede submarine trombone"}, "nothing_found"),
        ("search_files", {"query": "invoice", "folder": "/nowhere"}, "nothing_found"),
        ("search_code", {"query": "qqzzxx"}, "nothing_found"),
        ("read_passage", {"segment_id": "12"}, "invalid_argument"),
        ("read_passage", {"segment_id": "macbook:1:0123456789"}, "index_moved"),
        ("read_passage", {"segment_id": "macbook:999999999999999999:0123456789"}, "index_moved"),
        ("read_passage", {"segment_id": "laptop9:1:0123456789"}, "index_moved"),
        ("read_file", {"path": "/nowhere"}, "nothing_found"),
        ("read_file", {"path": "~/nowhere\x00"}, "nothing_found"),
        ("read_file", {"path": "/a", "machine": "other"}, "invalid_argument"),
        ("browse_files", {"folder": "/nowhere"}, "nothing_found"),
        ("browse_files", {"offset": 100_000}, "end_of_file"),
    ],
)
async def test_a_foreseeable_mistake_is_an_ordinary_answer(pi, serve, tool, arguments, status) -> None:
    async with serve(pi) as client:
        answer = await ask(client, tool, **arguments)

    assert answer["status"] == status
    assert answer["message"]


@pytest.mark.parametrize(
    "query",
    [
        "pre-edit",
        "don't",
        "38.101",
        "-band",
        "grammar::fa",
        'a"b',
        "(",
        "*",
        "AND OR NOT",
        "NEAR(",
        "ü" * 5000,
        "設備",
    ],
)
async def test_whatever_people_type_is_answered(pi, serve, query: str) -> None:
    async with serve(pi) as client:
        answer = await ask(client, "search_files", query=query)
        code = await ask(client, "search_code", query=query)

    assert {answer["status"], code["status"]} <= {"ok", "weak", "nothing_found"}


@pytest.mark.parametrize(("tool", "word"), [("search_files", "invoice"), ("search_code", "attempt")])
async def test_of_a_query_without_end_the_beginning_is_used_and_the_rest_told_of(
    pi, serve, tool: str, word: str
) -> None:
    beginning = f"{word} " * 125
    rest = " ".join(f"word{number}" for number in range(100_000))
    async with serve(pi) as client:
        answer = await ask(client, tool, query=beginning + rest)
        short = await ask(client, tool, query=beginning)

    told = [each["message"] for each in answer["warnings"] if each["code"] == "query_cut"]
    assert len(told) == 1
    assert f"first {len(beginning)} of {len(beginning + rest)} characters" in told[0]
    assert "query_cut" not in codes(short)
    assert answer["hits"] == short["hits"]
    assert answer["hits"]


async def test_a_script_that_is_not_split_into_words_is_said_when_only_words_are_compared(pi, serve) -> None:
    async with serve(pi) as client:
        answer = await ask(client, "search_files", query="設備清單")

    assert "unsplit_script" in codes(answer)


async def test_half_of_the_words_alone_do_not_convince(pi, serve) -> None:
    async with serve(pi) as client:
        answer = await ask(client, "search_files", query="invoice qqzzxx")

    assert answer["status"] == "weak"
    assert "convincing" in answer["message"]


async def test_sloppy_arguments_are_accepted_and_noted(pi, serve) -> None:
    async with serve(pi) as client:
        answer = await ask(client, "search_files", q="invoice", max_results="500", kind="PDF")

    assert answer["status"] == "ok"
    assert len([each for each in answer["warnings"] if each["code"] == "argument_adjusted"]) >= 3


@pytest.mark.parametrize("tool", ["search_files", "search_code", "browse_files"])
async def test_a_folder_that_leads_out_of_the_home_is_explained(pi, serve, tool: str) -> None:
    async with serve(pi) as client:
        answer = await ask(client, tool, **({} if tool == "browse_files" else {"query": "x"}), folder="../..")

    assert (answer["status"], answer["message"][:9]) == ("invalid_argument", "folder: '")


@pytest.mark.parametrize(
    ("tool", "argument", "right"),
    [
        ("read_file", {"path": "macbook:15:0123456789"}, "read_passage"),
        ("read_passage", {"segment_id": "/a"}, "read_file"),
    ],
)
async def test_an_id_given_for_a_path_leads_to_the_other_tool(pi, serve, tool, argument, right: str) -> None:
    async with serve(pi) as client:
        answer = await ask(client, tool, **argument)

    assert answer["status"] == "invalid_argument"
    assert right in answer["message"]


@pytest.mark.parametrize(
    ("path", "is_similar"),
    [
        ("/nowhere", False),
        ("/a.md", False),
        ("/x/an.pdf", False),
        ("~/Lease.pdf", True),
        ("/x/Invoice Brightwater Design (1).pdf", False),
        ("/x/invoice brightwater.pdf", True),
    ],
)
async def test_only_like_names_are_proposed_for_a_path_that_is_not_there(
    pi, serve, path: str, is_similar: bool
) -> None:
    async with serve(pi) as client:
        answer = await ask(client, "read_file", path=path)

    assert answer["status"] == "nothing_found"
    assert ("Similar: " in answer["message"]) is is_similar


@pytest.mark.parametrize("tool", ["search_files", "search_code", "browse_files"])
async def test_a_folder_without_indexed_files_is_told_from_a_search_without_hits(
    pi, serve, tool: str
) -> None:
    given = {"name_contains": "qqzzxx"} if tool == "browse_files" else {"query": "qqzzxx"}
    async with serve(pi) as client:
        nowhere = await ask(client, tool, **given, folder="/home/pi/Documents")
        somewhere = await ask(client, tool, **given, folder="~")

    assert nowhere["status"] == somewhere["status"] == "nothing_found"
    assert nowhere["message"].startswith("No indexed file lies in /home/pi/Documents. Check its spelling")
    assert "lies in" not in somewhere["message"]


async def test_twenty_misses_in_a_row_are_no_errors(pi, serve) -> None:
    async with serve(pi) as client:
        for number in range(20):
            assert (await ask(client, "read_file", path=f"/nowhere/{number}"))["status"] == "nothing_found"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_eight_calls_at_once_over_pipes_are_all_answered(pi, serve_piped, mode: str) -> None:
    answers: list[dict[str, Any]] = []

    async def one(client: Client, number: int) -> None:
        answers.append(await ask(client, "search_files", query=f"invoice {number}"))

    async with serve_piped(pi, mode=mode) as client, anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(one, client, number)

    assert len(answers) == 8


@pytest.mark.parametrize("tool", sorted(SCHEMAS))
async def test_without_an_index_every_tool_says_so(tmp_path, serve, tool: str) -> None:
    given = {
        "search_files": {"query": "x"},
        "search_code": {"query": "x"},
        "read_passage": {"segment_id": "macbook:1:0123456789"},
        "read_file": {"path": "/a"},
    }

    async with serve(tmp_path) as client:
        answer = await ask(client, tool, **given.get(tool, {}))

    assert answer["status"] == "no_index"
    assert "ansible-playbook site.yml" in answer["message"]


async def test_an_old_copy_and_a_missing_code_index_are_said(old_pi, serve) -> None:
    async with serve(old_pi) as client:
        found = await ask(client, "search_files", query="invoice")
        code = await ask(client, "search_code", query="retry")

    assert "stale" in codes(found)
    assert code["status"] == "no_index"
    assert "off" in code["message"]


async def test_a_dead_embedding_server_leaves_words_and_says_why(pi, serve) -> None:
    async with serve(pi, DIGUP_EMBED_URL="http://127.0.0.1:9", DIGUP_EMBED_API_KEY="sk-planted") as client:
        found = await ask(client, "search_files", query="invoice")
        status = await ask(client, "index_status")

    warning = next(each for each in found["warnings"] if each["code"] == "words_only")
    assert warning["cause"] == "unreachable"
    assert warning["since"]
    assert found["hits"]
    assert status["embedding"]["state"] == "failing"
    assert "planted" not in str(found) + str(status)
