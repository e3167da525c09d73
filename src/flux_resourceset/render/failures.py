"""What a template can do wrong, with the line and the input where it happened."""

from __future__ import annotations


class TemplateError(Exception):
    """A template cannot be rendered; Flux Operator would stall the whole ResourceSet on it."""

    def __init__(self, reason: str, line: int | None = None, input_name: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.input_name = input_name

    def __str__(self) -> str:
        places = []
        if self.input_name is not None:
            places.append(f"input {self.input_name!r}")
        if self.line is not None:
            places.append(f"line {self.line}")
        return f"{', '.join(places)}: {self.reason}" if places else self.reason
