"""Reads and writes Hermes's config.yaml without harming what people keep in it. Part of the Ansible run.

The file belongs to its user. A change keeps comments, order, line ends, mode, owner and symbolic links, is proved by
reading it back, and replaces the file in one step. Anything that cannot be changed safely is refused with a sentence.
"""

from __future__ import annotations

import io
import os
import stat
import tempfile

try:
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap, CommentedSeq
    from ruamel.yaml.constructor import DuplicateKeyError
    from ruamel.yaml.error import YAMLError

    HAVE_RUAMEL = True
except ImportError:
    HAVE_RUAMEL = False

# How lists are indented: Hermes's own way first, then the other common ones. (mapping, sequence, offset)
LAYOUTS = ((2, 4, 2), (2, 2, 0), (4, 6, 4), (4, 4, 0))
# Hermes reads YAML 1.1, where these plain words are truth values; ruamel.yaml reads 1.2, where they are text.
TRUE_WORDS, FALSE_WORDS = frozenset({"yes", "on"}), frozenset({"no", "off"})


class ConfigError(Exception):
    """The file cannot be read or must not be changed. The text is a sentence for a person."""


class TextFile:
    """A text file as found: its text with plain line ends, and what is needed to write it back the same way."""

    def __init__(self, path):
        self.path = os.path.realpath(path)
        self.raw = b""
        self.exists = True
        try:
            with open(self.path, "rb") as handle:
                self.raw = handle.read()
        except FileNotFoundError:
            self.exists = False
        except OSError as error:
            raise ConfigError("%s cannot be read: %s." % (path, error.strerror))
        try:
            text = self.raw.decode("utf-8")
        except UnicodeDecodeError:
            raise ConfigError("%s is not text in UTF-8. Save it as UTF-8, then run this again." % path)
        self.bom = text.startswith("\ufeff")
        text = text.lstrip("\ufeff")
        self.crlf = text.count("\r\n") * 2 > text.count("\n")
        self.text = text.replace("\r\n", "\n")

    def write(self, text):
        """Replaces the file in one step; a file that somebody else changed meanwhile is left alone."""
        data = (text.replace("\n", "\r\n") if self.crlf else text).encode("utf-8")
        folder = os.path.dirname(self.path)
        descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".config.yaml.")
        try:
            with os.fdopen(descriptor, "wb") as handle:
                handle.write((b"\xef\xbb\xbf" if self.bom else b"") + data)
                handle.flush()
                os.fsync(handle.fileno())
            like = os.stat(self.path if self.exists else folder)
            if self.exists:
                os.chmod(temporary, stat.S_IMODE(like.st_mode))
            if os.getuid() == 0:
                os.chown(temporary, like.st_uid, like.st_gid)
            if TextFile(self.path).raw != self.raw:
                raise ConfigError(
                    "%s was changed by somebody else at the same moment. Run this again." % self.path
                )
            os.replace(temporary, self.path)
        except BaseException:
            os.unlink(temporary)
            raise

    def remove(self):
        os.unlink(self.path)


def yaml(text="", layout=LAYOUTS[0]):
    """A round-trip reader and writer that leaves quotes, long lines and the document's start as they are."""
    engine = YAML(typ="rt")
    engine.preserve_quotes = True
    engine.width = 1 << 20
    engine.indent(mapping=layout[0], sequence=layout[1], offset=layout[2])
    engine.explicit_start = any(line.rstrip() == "---" for line in text.splitlines())
    return engine


def load(text, path):
    """The document as ruamel.yaml's mapping, or None for a file that holds nothing.

    Raises ConfigError when the text is not one mapping, or names a key twice (of two equal keys Hermes takes the last
    and drops the other without a word).
    """
    try:
        document = yaml().load(text)
    except DuplicateKeyError as error:
        line = error.problem_mark.line + 1
        key = text.splitlines()[line - 1].split(":")[0].strip()
        raise ConfigError(
            "%s has the key %s twice (line %d); Hermes would drop one of the two. Merge them, then run this again."
            % (path, key, line)
        )
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = " (line %d)" % (mark.line + 1) if mark is not None else ""
        what = getattr(error, "problem", None) or "it holds more than one document"
        raise ConfigError(
            "%s is not sound YAML%s: %s. Mend it first: Hermes itself would replace it with defaults at its next write."
            % (path, where, what)
        )
    if document is not None and not isinstance(document, CommentedMap):
        raise ConfigError("%s is not a mapping of settings. Mend it, then run this again." % path)
    return document


def dump(document, text):
    """The document as text, in the layout that the text it came from is closest to."""
    return write_in(document, text, layout_of(text))


def write_in(document, text, layout):
    out = io.StringIO()
    yaml(text, layout).dump(document, out)
    return out.getvalue()


def layout_of(text):
    """The indentation in which writing the text back unchanged alters the fewest lines."""
    if not text.strip():
        return LAYOUTS[0]
    lines = text.splitlines()

    def altered(layout):
        again = write_in(yaml().load(text), text, layout).splitlines()
        return sum(1 for line in again if line not in known) + abs(len(again) - len(lines))

    known = set(lines)
    return min(LAYOUTS, key=altered)


def plain(value):
    """A value as Hermes sees it: ordinary Python, merges resolved, YAML 1.1's words for true and false understood."""
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    if type(value) is str:  # a plain word; a quoted one is of a subclass
        word = value.lower()
        return True if word in TRUE_WORDS else False if word in FALSE_WORDS else value
    if isinstance(value, str):
        return str(value)
    if type(value).__name__ == "ScalarBoolean":
        return bool(value)
    return value


def same(one, other):
    """Whether two plain values are the same setting: 30 is 30.0, but true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return set(one) == set(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def commented(value):
    """Ordinary Python as ruamel.yaml's own types: mappings in block form, lists and small mappings on one line."""
    if isinstance(value, dict):
        made = CommentedMap()
        for key, item in value.items():
            made[key] = commented(item)
        if all(not isinstance(item, (dict, list, str)) for item in value.values()):
            made.fa.set_flow_style()
        return made
    if isinstance(value, list):
        made = CommentedSeq([commented(item) for item in value])
        made.fa.set_flow_style()
        return made
    return value
