"""Slugs as Flux Operator's `slugify` makes them."""

from __future__ import annotations

import re

MAX_SLUG = 63  # Flux Operator sets it to the length of a label value

_WORDS = {"&": "and", "@": "at", '"': "", "'": "", "’": "", "‒": "-", "–": "-", "—": "-", "―": "-"}

# Flux Operator and text-unidecode both come from Perl's Text::Unidecode, but from different versions. Where its tables
# differ is here; tests/render asks it about every character.
_LETTERS = {
    letter: word
    for word, letters in {
        "": "\N{HEBREW PUNCTUATION PASEQ}™", "-": "Ъъẜẝẟ℻ℼℽℾℿ一", "0": "⓪", "a": "\N{ANGSTROM SIGN}ⓐⱥⱯ", "b": "ᵬᶀⓑ", "c": "ⓒ",
        "d": "ᵭᶁⓓ", "e": "ⓔ", "f": "ᵮᶂℲⅎⓕ", "g": "ᵷᶃⓖ", "h": "ⓗⱧⱨ", "i": "ⓘ", "j": "ⓙ", "k": "ʰᶄ\N{KELVIN SIGN}ⓚⱩⱪ",
        "l": "ᶅⓛⱠⱡⱢ", "m": "ᵯᶆⓜⱮ", "n": "ᵰᶇⓝ", "o": "ⓞ", "p": "ᵱᵽᶈⓟⱣ", "q": "ⓠ", "r": "ᵲᵳᶉⓡⱤ", "s": "ᵴᶊⓢ", "t": "ᵵⓣⱦ", "u": "ⓤ",
        "v": "ᶌⓥ", "w": "ⓦ", "x": "ᶍⓧ", "y": "ⓨ", "z": "ᵶᶎⓩⱫⱬ", "eu": "€", "ie": "Є", "chi": "ちチ", "shi": "しシ",
        "tsu": "っつッツ",
    }.items()
    for letter in letters
}  # fmt: skip
_UNKNOWN = "[?]"
_DROPPED = re.compile("[\u0800-\u08ff\u1900-\u1dff\u2900-\u2dff\u3400-\u4cff\ua500-\uabff\ue000-\uf8ff]")  # if unknown


def slugify(text: str) -> str:
    words = "".join(_WORDS.get(each, each) for each in text.strip())
    slug = re.sub(r"[^a-z0-9_-]", "-", "".join(map(_ascii, words)).lower())
    slug = re.sub(r"-+", "-", slug).strip("-_")
    if len(slug) <= MAX_SLUG:
        return slug
    dash = slug.rfind("-", 0, MAX_SLUG + 1)
    return slug[:dash] if dash >= 0 else slug[:MAX_SLUG]


def _ascii(character: str) -> str:
    if character.isascii():
        return character
    if character in _LETTERS:
        return _LETTERS[character]
    from text_unidecode import unidecode  # type: ignore[import-untyped]  # not before: few names need its table

    letters = str(unidecode(character))
    if letters.strip() == _UNKNOWN and (_DROPPED.match(character) or ord(character) % 256 == 255):
        return ""
    return letters
