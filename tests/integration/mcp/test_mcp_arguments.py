"""Sloppy arguments: what was clearly meant is accepted and noted, the rest is explained."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_digup.mcp_server.arguments import NotUnderstoodError, understand
from hermes_digup.mcp_server.definitions import DEFINITIONS

BY_NAME = {each.name: each for each in DEFINITIONS}


def understood(tool: str, **given: Any) -> tuple[dict[str, Any], list[str]]:
    result = understand(BY_NAME[tool], given)
    return result.arguments.model_dump(), [notice.message for notice in result.notices]


@pytest.mark.parametrize(
    ("tool", "given", "field", "value"),
    [
        ("search_files", {"query": "x", "limit": 500}, "limit", 50),
        ("search_files", {"query": "x", "limit": -3}, "limit", 1),
        ("search_files", {"query": "x", "limit": "2"}, "limit", 2),
        ("search_files", {"query": "x", "limit": 3.0}, "limit", 3),
        ("search_files", {"query": "x", "limit": None}, "limit", 8),
        ("search_files", {"query": "x", "max_results": 4}, "limit", 4),
        ("search_files", {"query": "x", "kinds": "photo"}, "kinds", ["image"]),
        ("search_files", {"query": "x", "kinds": "pdf, docs"}, "kinds", ["pdf", "doc"]),
        ("search_files", {"query": "x", "kinds": '["pdf"]'}, "kinds", ["pdf"]),
        ("search_files", {"query": "x", "kinds": ["PDF", "pdf"]}, "kinds", ["pdf"]),
        ("search_files", {"query": "x", "kinds": ["all"]}, "kinds", []),
        ("search_files", {"query": "x", "kinds": ""}, "kinds", []),
        ("search_files", {"query": "x", "kind": "pdf"}, "kinds", ["pdf"]),
        ("search_files", {"query": "x", "foldr": "~/Tax"}, "folder", "~/Tax"),
        ("search_files", {"query": "x", "path": "~/Tax"}, "folder", "~/Tax"),
        ("search_files", {"q": "x"}, "query", "x"),
        ("search_files", {"query": "", "q": "x"}, "query", "x"),
        ("search_files", {"query": "x", "kinds": "[" * 200_000}, "kinds", []),
        ("search_files", {"query": ["a", "b"]}, "query", "a b"),
        ("search_files", {"query": 2025}, "query", "2025"),
        ("search_files", {"query": "x", "reason": ""}, "query", "x"),
        ("search_files", {"query": "x", "reason": None}, "query", "x"),
        ("read_passage", {"id": "m:1:7f3a9c01de"}, "segment_id", "m:1:7f3a9c01de"),
        ("read_file", {"file_path": "/a", "code": "true"}, "code", True),
        ("read_file", {"path": "/a", "start": 6000}, "offset", 6000),
        ("browse_files", {"name": "lease"}, "name_contains", "lease"),
        ("browse_files", {"offset": -1}, "offset", 0),
    ],
)
def test_what_is_clear_is_accepted(tool: str, given: dict[str, Any], field: str, value: Any) -> None:
    arguments, _ = understood(tool, **given)

    assert arguments[field] == value


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("search_files", {"query": "x", "limit": 500}),
        ("search_files", {"query": "x", "kinds": "photo"}),
        ("search_files", {"q": "x"}),
    ],
)
def test_what_was_put_right_is_noted(tool: str, given: dict[str, Any]) -> None:
    assert len(understood(tool, **given)[1]) == 1


def test_what_needs_no_putting_right_is_not_noted() -> None:
    given = {"query": "x", "kinds": ["pdf"], "folder": "~", "limit": 3}

    assert understood("search_files", **given) == (given, [])


@pytest.mark.parametrize(
    ("tool", "given", "named"),
    [
        ("search_files", {}, "query"),
        ("search_files", {"query": ""}, "query"),
        ("search_files", {"query": None}, "query"),
        ("search_files", {"query": {"a": 1}}, "query"),
        ("search_files", {"query": "x", "limit": "many"}, "limit"),
        ("search_files", {"query": "x", "limit": float("nan")}, "limit"),
        ("search_files", {"query": "x", "kinds": ["spreadsheet"]}, "kinds"),
        ("search_files", {"query": "x", "kinds": 7}, "kinds"),
        ("search_files", {"query": "x", "after": "2024-01-01"}, "after"),
        ("read_passage", {"segment_id": ["a", "b"]}, "segment_id"),
        ("read_file", {"path": "/a", "code": "perhaps"}, "code"),
        ("read_file", {"path": "/" * 1_000_000}, "path"),
        ("index_status", {"verbose": True}, "verbose"),
    ],
)
def test_what_is_not_clear_is_named_with_what_is_valid(tool: str, given: dict[str, Any], named: str) -> None:
    with pytest.raises(NotUnderstoodError) as caught:
        understood(tool, **given)

    assert named in str(caught.value)
    assert len(str(caught.value)) < 400


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(
    tool=st.sampled_from(sorted(BY_NAME)),
    given_arguments=st.dictionaries(
        st.sampled_from(["query", "limit", "kinds", "folder", "path", "offset", "code", "q", "segment_id"])
        | st.text(max_size=8),
        JSON,
        max_size=4,
    ),
)
def test_whatever_is_sent_is_understood_or_explained(tool: str, given_arguments: dict[str, Any]) -> None:
    try:
        result = understand(BY_NAME[tool], given_arguments)
    except NotUnderstoodError as reason:
        assert str(reason)
    else:
        assert isinstance(result.arguments, BY_NAME[tool].arguments)
