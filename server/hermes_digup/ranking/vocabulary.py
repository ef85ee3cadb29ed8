"""The words and characters that DigUp's ranking knows, as data, in normalised lower-case form.

Source: DigUp (MIT licence), Sources/DigUpKit. Sets of strings hold composed forms; compare composed forms
with them.
"""

from __future__ import annotations

import unicodedata
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(unicodedata.normalize("NFC", text).split())


def _span(*spans: tuple[int, int]) -> frozenset[str]:
    return frozenset(chr(code) for low, high in spans for code in range(low, high + 1))


STOP_WORDS: Final = _words(
    """
    a an the of in on at to for with and or my me that this these those from about where what which who when
    is was are were be it its some any find show file files photo photos picture image images screenshot
    screenshots video videos pdf document documents recording
    এবং ও এই সেই একটি আমার থেকে জন্য সাথে মধ্যে কোথায় কোন কী কি যে ছবি স্ক্রিনশট ভিডিও ফাইল পিডিএফ
    في من على الى عن مع هذا هذه ذلك التي الذي اين ما صورة صور لقطة شاشة فيديو ملف مستند
    """
)

KIND_WORDS: Final = {
    word: kind
    for kind, words in {
        "screenshot": "screenshot screenshots স্ক্রিনশট لقطة",
        "image": "photo photos picture pictures image images ছবি صورة صور",
        "pdf": "pdf pdfs paper papers পিডিএফ",
        "doc": "document documents note notes নোট مستند ملاحظات",
        "audio": "audio song podcast voice sound অডিও গান রেকর্ডিং صوت تسجيل اغنية",
        "video": "video videos clip movie ভিডিও فيديو مقطع",
    }.items()
    for word in _words(words)
}
KIND_WORD_PREFIX_MIN_SCALARS: Final = 3

DEFINITION_WORDS: Final = _words(
    """
    def func fn fun function class struct enum protocol interface trait type typealias actor extension impl
    module namespace object record macro const let var val union mod sub @interface @implementation @protocol
    #define function*
    """
)
BINDING_WORDS: Final = frozenset({"let", "var", "const", "val"})
OPENING_WORDS: Final = DEFINITION_WORDS - BINDING_WORDS
USE_WORDS: Final = _words(
    """
    return await yield throw new else case print echo assert not and or in is do go defer try catch if while
    for typeof delete raise import from
    """
)
COMMENT_STARTS: Final = ("//", "#", "/*", "*", "--", '"""', "'''", "<!--", ";")
# What a one-line summary of code passes over: comments, imports, closing brackets, decorators.
NOT_TELLING_STARTS: Final = (
    "//", "#", "/*", "*", "--", '"""', "import ", "from ", "#include", "using ", "package ", "}", ")", "@",
)  # fmt: skip

DROPPED: Final = _span(
    (0xAD, 0xAD),
    (0x61C, 0x61C),
    (0x200C, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x2064),
    (0x2066, 0x2069),
    (0xFEFF, 0xFEFF),
    (0x640, 0x640),
    (0x64B, 0x65F),
    (0x670, 0x670),
)
ALEFS: Final = frozenset("\u0622\u0623\u0625\u0671")
ALEF: Final = "\u0627"
ZERO_WIDTH_SPACE: Final = "\u200b"

# Ideographs that became numbers in Unicode 15.1, which DigUp's tables, as of Unicode 15, do not have yet.
# Without this, 京 would make a lookup of 東京 on Python 3.13 and an ordinary query on 3.11.
NOT_YET_NUMBERS: Final = frozenset("两京俩倆拐洞皕秭鈎钩")

# The Unicode property White_Space. Python's own notion adds U+001C to U+001F.
WHITE_SPACE: Final = _span(
    (0x9, 0xD), (0x20, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A),
    (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000),
)  # fmt: skip
LINE_ENDS: Final = _span((0xA, 0xD), (0x85, 0x85), (0x2028, 0x2029))
# Foundation's trimming sets: its blanks count the zero width space in.
BLANKS: Final = "".join(sorted((WHITE_SPACE - LINE_ENDS) | {ZERO_WIDTH_SPACE}))
BLANKS_AND_LINE_ENDS: Final = "".join(sorted(WHITE_SPACE | {ZERO_WIDTH_SPACE}))
