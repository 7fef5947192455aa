"""YAML that every reader takes for the same: names are in quotes unless they are plain words."""

from __future__ import annotations

import re
from typing import Any

from holdfast.model.records import JsonObject

_PLAIN = re.compile(r"[A-Za-z_][\w ,.:()<>'/-]*", re.ASCII)


def dumps(form: JsonObject, *comments: str) -> str:
    """A form as YAML, below some lines of comment."""
    import yaml

    class Dumper(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML ships no types
        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  nothing here is shared on purpose
            return True

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:  # noqa: ARG002
            # Lists stand further in than what they belong to.
            return super().increase_indent(flow, False)

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        tag = "tag:yaml.org,2002:str"
        lines = value.removesuffix("\n").split("\n")
        if len(lines) > 1 and all(line.isprintable() and line == line.rstrip() for line in lines):
            return dumper.represent_scalar(tag, value, style="|")
        return dumper.represent_scalar(tag, value, style=None if _PLAIN.fullmatch(value) else '"')

    Dumper.add_representer(str, text)
    body: str = yaml.dump(
        form,
        Dumper=Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=100,
        default_flow_style=False,
    )
    return "".join(f"# {line}\n" for line in comments) + body
