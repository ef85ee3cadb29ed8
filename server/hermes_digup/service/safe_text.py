"""Words from files, made harmless before they are shown: a name cannot forge a hit, a line or a colour.

Last station of a question's journey, for every face. Names of files are escaped so that they can be read
back; excerpts and texts lose what no reader could see anyway.
"""

from __future__ import annotations

import re
import unicodedata

# What moves text about or hides it: bidirectional marks and overrides, zero-width and deprecated format
# characters, the invisible tag block. ZWJ and ZWNJ stay, as Persian, Indic scripts and emoji need them.
_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff"
)
_UNSEEN += "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
_CONTROLS = "\u0000-\u001f\u007f-\u009f\ud800-\udfff"
_LINE_ENDS = "\u2028\u2029"

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\-_])|\x9b[0-?]*[ -/]*[@-~]"
)
_IN_NAMES = re.compile(f"[{_CONTROLS}{_LINE_ENDS}{_UNSEEN}]|<(?=[A-Za-z/!?|])")
_IN_LINES = re.compile(f"[{_CONTROLS}{_UNSEEN}]")
_IN_TEXTS = re.compile(f"[\u0000-\u0008\u000b-\u001f\u007f-\u009f\ud800-\udfff{_UNSEEN}]")
SOFT = "\u2039"  # looks like the sign it replaces, and opens nothing
_SPACES = re.compile(r"\s+")
_MARKUP = re.compile(r"<(?=[A-Za-z/!?|])")
# Spellings by which chat templates and tool protocols tell who is speaking. Other markup is a text's content.
_ROLES = re.compile(
    r"<(?=\||/?(?:system|assistant|user|human|developer|tool|function|think|im_|antml|start_of|end_of)"
    r"[\w:-]*[\s>/])",
    re.IGNORECASE,
)
_ESCAPED = re.compile(r"\\u([0-9a-f]{4})|\\U([0-9a-f]{8})")


def safe_name(text: str) -> str:
    """A path or name on one line; what could mislead is written as \\uXXXX, which `meant_name` reads back."""
    return _IN_NAMES.sub(_escaped, text)


def meant_name(text: str) -> str:
    """The name behind one that `safe_name` wrote; any other text comes back as it is."""
    return _ESCAPED.sub(_unescaped, text)


def safe_line(text: str) -> str:
    """An excerpt or a foreign message on one line, without controls, escapes, overrides or tags."""
    line = _SPACES.sub(" ", _ESCAPES.sub("", text))
    return _MARKUP.sub(SOFT, _IN_LINES.sub("", line)).strip()


def safe_text(text: str) -> str:
    """A passage with its lines and tabs, without controls, escapes, overrides or marks that feign a speaker.

    Composed (NFC), so that offsets do not depend on the spelling DigUp happened to keep.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n\n")
    return unicodedata.normalize("NFC", _ROLES.sub(SOFT, _IN_TEXTS.sub("", _ESCAPES.sub("", lines))))


def shortened(text: str, limit: int) -> str:
    """The text, or its first `limit` characters and an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _escaped(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def _unescaped(match: re.Match[str]) -> str:
    number = int(match[1] or match[2], 16)
    return chr(number) if number <= 0x10FFFF else match[0]
