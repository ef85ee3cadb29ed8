"""One request to the oMLX double, past its guard."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.doubles.omlx_downloads import Refused
from tests.doubles.omlx_state import State

if TYPE_CHECKING:
    from tests.doubles.omlx import OmlxDouble

Answer = tuple[int, Any]


@dataclass
class Call:
    """One request, past its guard."""

    double: OmlxDouble
    values: tuple[str, ...]
    cookie: str
    key: str
    body: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def state(self) -> State:
        return self.double.state

    def given(self, name: str) -> Any:
        """A field of the body. Raises: Refused (422) when it is missing."""
        if name not in self.body:
            detail = {"type": "missing", "loc": ["body", name], "msg": "Field required", "input": self.body}
            raise Refused(422, [detail])
        return self.body[name]
