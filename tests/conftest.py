"""What holds for every test: a clean environment, and with CI=true no test is left out. And a Pi for many."""

from __future__ import annotations

import os
from collections.abc import Generator
from datetime import datetime, timezone
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of whoever runs the tests must not decide what they see."""
    for name in [name for name in os.environ if name.startswith("DIGUP_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def databases(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """DigUp's databases of the sample files."""
    from tests.doubles.delivery import build_index  # the modules' tests run where no server is installed

    return build_index(tmp_path_factory.mktemp("digup"))


@pytest.fixture(scope="session")
def pi(databases: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home folder of a Pi that has one source, macbook, with both indexes."""
    from tests.doubles.delivery import deliver

    home = tmp_path_factory.mktemp("pi")
    assert deliver(home, "macbook", databases, confirmed=datetime.now(timezone.utc)).state == "published"
    return home


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with a test that may take long come first, so that no worker ends up alone with one."""
    patience: dict[Path, float] = {}
    for item in items:
        marker = item.get_closest_marker("timeout")
        patience[item.path] = max(patience.get(item.path, 0), float(marker.args[0]) if marker else 0)
    items.sort(key=lambda item: patience[item.path], reverse=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skip names what is missing; where everything must be there, that is a failure."""
    report = yield
    if os.environ.get("CI") == "true" and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = (
            f"{item.nodeid} was left out, which CI does not allow: {call.excinfo and call.excinfo.value}"
        )
    return report
