"""Hermes's config.yaml as a round trip, so that comments, order and quotes stay. Part of the Ansible run.

Hermes reads YAML 1.1 and rewrites the file itself, so settings are compared by value, as Hermes sees them.
"""

from __future__ import annotations

import io

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
# Plain words that are truth values in YAML 1.1 and text in ruamel.yaml's 1.2.
WORDS = {"yes": True, "on": True, "no": False, "off": False}


class ConfigError(Exception):
    """The file must not be changed. The text is a sentence for a person."""


def engine(text="", layout=LAYOUTS[0]):
    """A reader and writer that leaves quotes, long lines and the document's start as they are in `text`."""
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 1 << 20
    yaml.indent(mapping=layout[0], sequence=layout[1], offset=layout[2])
    yaml.explicit_start = any(line.rstrip() == "---" for line in text.splitlines())
    return yaml


def load(text, path):
    """The document as ruamel.yaml's mapping, or None for a file without any setting.

    Raises ConfigError when the text is not one mapping, or has a key twice: of two equal keys Hermes takes
    the last and drops the other without a word.
    """
    try:
        document = engine().load(text)
    except DuplicateKeyError as error:
        raise ConfigError(twice(error, text, path)) from None
    except YAMLError as error:
        raise ConfigError(unsound(error, path)) from None
    if document is not None and not isinstance(document, CommentedMap):
        raise ConfigError("%s is not a mapping of settings. Mend it, then run this again." % path)
    return document


def twice(error, text, path):
    """The sentence for a key that is there twice."""
    line = error.problem_mark.line
    key = text.splitlines()[line].split(":")[0].strip()
    return (
        "%s has the key %s twice (the second time in line %d), and Hermes would drop the first. "
        "Merge the two, then run this again." % (path, key, line + 1)
    )


def unsound(error, path):
    """The sentence for a text that is no YAML."""
    mark = getattr(error, "problem_mark", None)
    where = " (line %d)" % (mark.line + 1) if mark is not None else ""
    what = getattr(error, "problem", None) or "it holds more than one document"
    return (
        "%s is not sound YAML%s: %s. Mend it first: at its next write Hermes would replace it with defaults."
        % (path, where, what)
    )


def render(document, text):
    """The document as text, laid out like the text it came from.

    Comments survive when the first setting comes or the last one goes.
    """
    if not document:
        return "".join(line + "\n" for line in text.splitlines() if line.startswith("#"))
    new = write_in(document, text, layout_of(text))
    only_comments = text.strip() and engine().load(text) is None
    return text.rstrip("\n") + "\n\n" + new if only_comments else new


def write_in(document, text, layout):
    out = io.StringIO()
    engine(text, layout).dump(document, out)
    return out.getvalue()


def layout_of(text):
    """The indentation in which writing the text back unchanged alters the fewest lines."""
    lines = text.splitlines()
    document = engine().load(text)
    if document is None:
        return LAYOUTS[0]

    def altered(layout):
        again = write_in(document, text, layout).splitlines()
        return sum(line not in lines for line in again) + abs(len(again) - len(lines))

    return min(LAYOUTS, key=altered)


def plain(value):
    """A value as Hermes sees it: ordinary Python, merges resolved, yes and no understood."""
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if type(value) is str:  # a plain word; a quoted one is of a subclass
        return WORDS.get(value.lower(), value)
    if isinstance(value, str):
        return str(value)
    # ruamel.yaml's own truth values are whole numbers to Python.
    return bool(value) if type(value).__name__ == "ScalarBoolean" else value


def same(one, other):
    """Whether two plain values are the same setting: 30 is 30.0, but true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return set(one) == set(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def commented(value):
    """Ordinary Python as ruamel.yaml's own types: lists, and mappings of mere switches, on one line."""
    if isinstance(value, dict):
        made = CommentedMap((key, commented(item)) for key, item in value.items())
        if value and all(isinstance(item, bool) for item in value.values()):
            made.fa.set_flow_style()
        return made
    if isinstance(value, list):
        made = CommentedSeq(commented(item) for item in value)
        made.fa.set_flow_style()
        return made
    return value
