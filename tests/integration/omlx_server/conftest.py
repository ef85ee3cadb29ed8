"""The life of five Macs with the role, told once: each test looks at another part of it."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest
from tests.doubles.omlx_downloads import write_model
from tests.integration.omlx_server.rig import GEMMA, Mac, Site

ABSENT = ("-e", "omlx_server_state=absent")


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    over = threading.Event()
    site = Site(tmp_path_factory.mktemp("macs"), over)
    try:
        yield _told(site)
    finally:
        over.set()
        for mac in site.macs.values():
            mac.omlx.stop()


def _told(site: Site) -> SimpleNamespace:
    told = SimpleNamespace(site=site, macs=site.macs, before=site.files(), progress=[], keys={})
    told.bare = site.run("set_up", "--check")
    told.after_bare = site.files()
    told.first = site.run("set_up", seen=lambda line: _watched(told, line))
    assert set(told.first.failures()) == {"old"}, told.first.text[-8000:]
    told.keys = {name: _sub_keys(mac) for name, mac in site.macs.items()}
    told.env = {
        name: (mac.ours / "embedding-server.env").read_text()
        for name, mac in site.macs.items()
        if name != "old"
    }
    told.loaded = {name: set(mac.omlx.state.loaded) for name, mac in site.macs.items()}
    told.set_up = site.files()
    told.second = site.run("set_up")
    told.check = site.run("set_up", "--check")
    told.after_check = site.files()
    _broken(site)
    told.verify = site.run("verify")
    told.limited = site.run("key")
    _mended(site)
    told.mended = site.files()
    told.absent_check = site.run("set_up", *ABSENT, "--check", "--limit", "strict,old")
    told.after_absent_check = site.files()
    told.absent = site.run("set_up", *ABSENT)
    told.absent_again = site.run("set_up", *ABSENT)
    return told


def _sub_keys(mac: Mac) -> list[str]:
    listed = mac.omlx.state.settings["auth"]["sub_keys"]
    return [sub["key"] for sub in listed if sub["name"] == "hermes-digup"]


def _watched(told: SimpleNamespace, line: str) -> None:
    """Notes what a person sees of the download while it runs; in its middle the server restarts."""
    strict = told.macs["strict"].omlx
    if match := re.search(r"\(item=(\d+ MB of 1\.5 GB \(\d+ %\), also shown by \S+/admin)\)", line):
        told.progress.append((match[1], [task.status for task in strict.state.tasks]))
        if len(told.progress) == 1:
            strict.personality = replace(strict.personality, download_s=1.0)
            threading.Thread(target=strict.restart).start()


def _broken(site: Site) -> None:
    """One fault, or two, for each Mac."""
    macs = site.macs
    strict = macs["strict"].omlx.state.settings
    strict["server"]["host"] = "127.0.0.1"
    strict["auth"]["sub_keys"] = [key for key in strict["auth"]["sub_keys"] if key["name"] == "other"]
    macs["strict"].omlx.state.save()
    macs["strict"].omlx.restart()
    macs["app"].omlx.state.settings["auth"]["skip_api_key_verification"] = True
    brewed = macs["homebrew"].omlx.state
    brewed.model_settings[macs["homebrew"].gemma]["is_pinned"] = False
    brewed.loaded.discard(macs["homebrew"].gemma)
    write_model(macs["by_hand"].omlx.base / "models", GEMMA, "llama", 1_488_000_000)
    macs["by_hand"].omlx.state.discover()
    macs["old"].omlx.stop()


def _mended(site: Site) -> None:
    macs = site.macs
    macs["strict"].omlx.state.settings["server"]["host"] = "0.0.0.0"
    macs["strict"].omlx.state.save()
    macs["app"].omlx.state.settings["auth"]["skip_api_key_verification"] = False
    write_model(macs["by_hand"].omlx.base / "models", GEMMA, "embedding_gemma2", 1_488_000_000)
    macs["by_hand"].omlx.state.discover()
    macs["old"].omlx.start()
