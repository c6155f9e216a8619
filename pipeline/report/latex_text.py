"""Escaping text for LaTeX: any text is printed, none is executed."""

import re
import unicodedata

_SPECIAL = {
    **{character: "\\" + character for character in "{}#$%&_"},
    # At the start of a row TeX would read these as arguments of the \\ before it.
    **{character: f"{{{character}}}" for character in "[]*"},
    **{character: rf"\text{name}{{}}" for character, name in {
        "\\": "backslash", "~": "asciitilde", "^": "asciicircum", "<": "less", ">": "greater", "|": "bar",
        "`": "asciigrave", "–": "endash", "—": "emdash"}.items()},
    **{character: f"$\\{name}$" for character, name in {
        "∞": "infty", "†": "dagger", "‡": "ddagger", "±": "pm", "×": "times", "✗": "times", "✓": "checkmark",
        "Δ": "Delta", "λ": "lambda", "→": "rightarrow", "≤": "leq", "≥": "geq"}.items()},
    "−": "$-$", "𝑑": "$d$", "𝑝": "$p$", '"': r"{\char34}", "…": r"\ldots{}", "‘": "`", "’": "'", "“": "``", "”": "''",
    "ß": r"\ss{}", "ø": r"\o{}", "æ": r"\ae{}", "ł": r"\l{}",
}
_ACCENTS = {
    "\N{COMBINING GRAVE ACCENT}": r"\`",
    "\N{COMBINING ACUTE ACCENT}": r"\'",
    "\N{COMBINING CIRCUMFLEX ACCENT}": r"\^",
    "\N{COMBINING TILDE}": r"\~",
    "\N{COMBINING DIAERESIS}": r"\"",
    "\N{COMBINING RING ABOVE}": r"\r",
    "\N{COMBINING CARON}": r"\v",
    "\N{COMBINING CEDILLA}": r"\c",
}


def escape(text: str) -> str:
    """Escape text for LaTeX: no command, formula or comment in it takes effect.

    White space of any kind becomes one space; a character without a LaTeX spelling is printed as its code point.
    """
    plain = " ".join(unicodedata.normalize("NFC", text).split())
    # Braces keep TeX from joining hyphens into a dash.
    return re.sub("-(?=-)", "-{}", "".join(map(_escape_character, plain)))


def comment(text: str) -> str:
    """Prepare a text for a comment in LaTeX, after a percent sign: one line of ASCII."""
    return " ".join(unicodedata.normalize("NFKC", text).split()).encode("ascii", "backslashreplace").decode()


def _escape_character(character: str) -> str:
    if character in _SPECIAL:
        return _SPECIAL[character]
    if " " <= character <= "~":
        return character
    base, accent = unicodedata.normalize("NFD", character)[:1], unicodedata.normalize("NFD", character)[1:]
    if base.isascii() and base.isalpha() and accent in _ACCENTS:
        return f"{_ACCENTS[accent]}{{{base}}}"
    return f"{{[}}U+{ord(character):04X}{{]}}"
