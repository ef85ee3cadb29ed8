"""The server itself: lists the tools at once, runs each call on a thread of its own, always answers in time.

Built on the SDK's low-level server, which advertises what it has (tools) and nothing else.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any, Literal

import anyio
import anyio.to_thread
from mcp.server import Server, ServerRequestContext
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from hermes_digup.errors import DigupError
from hermes_digup.mcp_server.arguments import NotUnderstoodError, Understood, understand
from hermes_digup.mcp_server.calls import RUN
from hermes_digup.mcp_server.definitions import DEFINITIONS, INSTRUCTIONS, Definition
from hermes_digup.mcp_server.texts import text_of
from hermes_digup.service import CALL_S, Answer, Call, Service, StatusAnswer, safe_line, shortened

log = logging.getLogger(__name__)
AT_ONCE = 4  # threads; a Pi has four cores
FAULT = "hermes-digup failed inside; its log on the Pi says where. Try once more; then: hermes-digup doctor"
LATE = f"No answer within {CALL_S:.0f} s. Try again, with a narrower folder or fewer results."

Results = Literal["text", "both"]
Context = ServerRequestContext[Any]


class Tools:
    """The six tools over one service.

    `results`: whether answers carry structured content beside the text.
    """

    def __init__(self, service: Service, results: Results) -> None:
        self._service, self._results = service, results
        self._by_name = {each.name: each for each in DEFINITIONS}
        self._limiter: anyio.CapacityLimiter | None = None

    async def on_list(self, context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[self._listed(each) for each in DEFINITIONS])

    async def on_call(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        definition = self._by_name.get(params.name)
        if definition is None:
            known = ", ".join(self._by_name)
            return _failed(f"There is no tool {shortened(safe_line(params.name), 60)}. There are: {known}.")
        try:
            understood = understand(definition, params.arguments or {})
        except NotUnderstoodError as reason:
            return self._told(definition.answer(status="invalid_argument", message=str(reason)))
        return await self._run(definition, understood)

    async def _run(self, definition: Definition, understood: Understood) -> CallToolResult:
        began = time.monotonic()
        work = partial(RUN[definition.name], self._service, understood.arguments)
        try:
            answer = await self._in_time(work)
        except DigupError as error:
            log.warning("call failed tool=%s error=%s", definition.name, type(error).__name__)
            return self._fault(definition, safe_line(str(error)))
        except Exception:
            log.exception("call failed tool=%s", definition.name)
            return self._fault(definition, FAULT)
        if answer is None:
            answer = definition.answer(status="timed_out", message=LATE)
        took_ms = (time.monotonic() - began) * 1000
        log.info("call tool=%s status=%s ms=%.0f", definition.name, answer.status, took_ms)
        return self._told(answer.model_copy(update={"warnings": [*understood.notices, *answer.warnings]}))

    async def _in_time(self, work: Callable[[Call], Answer]) -> Answer | None:
        """The work's answer, or None when its time is over; the thread then stops at its next look."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(AT_ONCE)
        call = Call()
        try:
            with anyio.move_on_after(CALL_S):
                return await anyio.to_thread.run_sync(
                    work, call, limiter=self._limiter, abandon_on_cancel=True
                )
            return None
        finally:
            call.cancelled.set()

    def _listed(self, definition: Definition) -> Tool:
        return Tool(
            name=definition.name,
            title=definition.title,
            description=definition.description,
            input_schema=definition.input_schema(),
            output_schema=definition.output_schema() if self._results == "both" else None,
            annotations=ToolAnnotations(
                read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
            ),
        )

    def _told(self, answer: Answer) -> CallToolResult:
        structured = answer.model_dump(mode="json", exclude_none=True) if self._results == "both" else None
        return CallToolResult(
            content=[TextContent(type="text", text=text_of(answer))], structured_content=structured
        )

    def _fault(self, definition: Definition, sentence: str) -> CallToolResult:
        """A real fault. index_status tells it in an ordinary answer: it was asked what is wrong."""
        if definition.answer is StatusAnswer:
            return self._told(StatusAnswer(status="no_index", message=sentence))
        return _failed(sentence)


def build_server(service: Service, *, results: Results) -> Server[Any]:
    """The server, not yet connected to anything; no index is opened before the first call."""
    tools = Tools(service, results)
    return Server(
        "hermes-digup",
        version=version("hermes-digup"),
        title="DigUp",
        instructions=INSTRUCTIONS,
        on_list_tools=tools.on_list,
        on_call_tool=tools.on_call,
    )


def _failed(sentence: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=sentence)], is_error=True)
