"""A text file that somebody else may also edit, read and replaced without harm. Part of the Ansible run.

Line ends, byte order mark, mode, owner and symbolic links stay; the new text takes the old one's place whole.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

BOM = b"\xef\xbb\xbf"


class TextFileError(Exception):
    """The file cannot be read or must not be changed now. The text is a sentence for a person."""


class TextFile:
    """A file as found. `text` has plain line ends; `exists` is whether there is one."""

    def __init__(self, path):
        self.path = Path(path).resolve()
        self.raw = self._read()
        self.exists = self.raw is not None
        data = self.raw or b""
        self.bom = data.startswith(BOM)
        try:
            text = data[len(BOM) :].decode("utf-8") if self.bom else data.decode("utf-8")
        except UnicodeDecodeError:
            raise TextFileError(
                "%s is not text in UTF-8. Save it as UTF-8, then run this again." % path
            ) from None
        self.crlf = text.count("\r\n") * 2 > text.count("\n")
        self.text = text.replace("\r\n", "\n")

    @property
    def mode(self):
        """The file's permission bits, or None when there is no file."""
        return stat.S_IMODE(self.path.stat().st_mode) if self.exists else None

    def write(self, text, mode=None):
        """Replaces the file. `mode` None keeps the present one (a new file is private).

        Raises TextFileError when somebody else changed the file since it was read.
        """
        data = (text.replace("\n", "\r\n") if self.crlf else text).encode("utf-8")
        like = (self.path if self.exists else self.path.parent).stat()
        descriptor, name = tempfile.mkstemp(dir=str(self.path.parent), prefix=".new-")  # mode 0600
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as handle:
                handle.write((BOM if self.bom else b"") + data)
                handle.flush()
                os.fsync(handle.fileno())
            if mode is not None or self.exists:
                temporary.chmod(stat.S_IMODE(like.st_mode) if mode is None else mode)
            if os.getuid() == 0:
                os.chown(name, like.st_uid, like.st_gid)
            self._stop_if_changed()
            temporary.replace(self.path)
        except BaseException:
            temporary.unlink()
            raise

    def _read(self):
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise TextFileError("%s cannot be read: %s." % (self.path, error.strerror)) from None

    def _stop_if_changed(self):
        if self._read() != self.raw:
            raise TextFileError(
                "%s was changed by somebody else at the same moment. Run this again." % self.path
            )
