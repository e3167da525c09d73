"""Slugs as Flux Operator's `slugify` makes them."""

from __future__ import annotations

import re
import unicodedata

from flux_resourceset.render.failures import TemplateError

MAX_SLUG = 63  # Flux Operator sets it to the length of a label value

_WORDS = {"&": "and", "@": "at", '"': "", "'": "", "’": "", "‒": "-", "–": "-", "—": "-", "―": "-"}

# Letters that are no ASCII letter with accents; tests/render asks Flux Operator about each.
_LETTERS = {
    "ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "ð": "d", "Ð": "D", "ø": "o", "Ø": "O", "þ": "th", "Þ": "Th", "đ": "d",
    "Đ": "D", "ħ": "h", "Ħ": "H", "ı": "i", "ł": "l", "Ł": "L", "ŋ": "ng", "Ŋ": "NG", "œ": "oe", "Œ": "OE", "ŧ": "t",
    "Ŧ": "T", "ə": "-", "α": "a", "β": "b", "γ": "g", "δ": "d", "ε": "e", "ζ": "z", "η": "e", "θ": "th", "ι": "i",
    "κ": "k", "λ": "l", "μ": "m", "ν": "n", "ξ": "x", "ο": "o", "π": "p", "ρ": "r", "ς": "s", "σ": "s", "τ": "t",
    "υ": "u", "φ": "ph", "χ": "kh", "ψ": "ps", "ω": "o", "Α": "A", "Β": "B", "Γ": "G", "Δ": "D", "Ε": "E", "Ζ": "Z",
    "Η": "E", "Θ": "Th", "Ι": "I", "Κ": "K", "Λ": "L", "Μ": "M", "Ν": "N", "Ξ": "Ks", "Ο": "O", "Π": "P", "Ρ": "R",
    "Σ": "S", "Τ": "T", "Υ": "U", "Φ": "Ph", "Χ": "Kh", "Ψ": "Ps", "Ω": "O", "а": "a", "б": "b", "в": "v", "г": "g",
    "д": "d", "е": "e", "ж": "zh", "з": "z", "и": "i", "к": "k", "л": "l", "м": "m", "н": "n", "о": "o", "п": "p",
    "р": "r", "с": "s", "т": "t", "у": "u", "ф": "f", "х": "kh", "ц": "ts", "ч": "ch", "ш": "sh", "щ": "shch", "ъ": "-",
    "ы": "y", "ь": "-", "э": "e", "ю": "iu", "я": "ia", "ѐ": "ie", "ё": "io", "ђ": "dj", "ѓ": "gj", "є": "ie",
    "ѕ": "dz", "і": "i", "ї": "yi", "ј": "j", "љ": "lj", "њ": "nj", "ћ": "tsh", "ќ": "kj", "џ": "dzh", "ӗ": "ie",
    "Ӗ": "Ie",
}  # fmt: skip
_LETTERS |= {letter.upper(): word for letter, word in _LETTERS.items() if "а" <= letter <= "џ"}
_MARKS = "\N{NO-BREAK SPACE}¡¿«»·“”„‘‚…•†‡"


def slugify(text: str) -> str:
    words = "".join(_WORDS.get(each, each) for each in text.strip())
    slug = re.sub(r"[^a-z0-9_-]", "-", "".join(map(_ascii, words)).lower())
    slug = re.sub(r"-+", "-", slug).strip("-_")
    if len(slug) <= MAX_SLUG:
        return slug
    dash = slug.rfind("-", 0, MAX_SLUG + 1)
    return slug[:dash] if dash >= 0 else slug[:MAX_SLUG]


def _ascii(character: str) -> str:
    """A letter in ASCII. Flux Operator knows every script; guessing here would make other names than there."""
    if character.isascii():
        return character
    if character in _LETTERS:
        return _LETTERS[character]
    if character in _MARKS:
        return "-"
    if "\u0300" <= character <= "\u0344":  # an accent that stands for itself
        return ""
    first, *marks = list(unicodedata.normalize("NFD", character))
    if all(unicodedata.combining(mark) for mark in marks) and (first.isascii() or (marks and first in _LETTERS)):
        return _LETTERS.get(first, first)
    raise TemplateError(f"slugify of {character!r} is beyond the built-in engine; use the engine flux-operator")
