"""YAML files written by people, some of whom may be hostile: plain data, or an error that names the
file.

Only mappings, lists and plain values are read. Refused are duplicate keys (of which YAML readers
take the last), files that are no text, and files larger than anyone would write by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.model.errors import InputError

_MOST_BYTES = 1 << 20


class Block(dict[Any, Any]):
    """A mapping of a file; ``lines`` has the line of each key."""

    lines: dict[Any, int]


def read_versioned(file: Path, part: str, *, aliases: bool = True) -> Any:
    """What a file of version 1 has under the key ``part``, the only other one."""
    content = read_yaml(file, aliases=aliases)
    if not isinstance(content, dict):
        raise InputError(f"{file}: expected 'version: 1' and '{part}:', not {described(content)}")
    expect_keys(str(file), content, ("version", part))
    version = content.get("version")
    if type(version) is not int or version != 1:
        raise InputError(f"{file}: expected 'version: 1', found {described(version)}")
    return content.get(part)


def expect_keys(where: str, form: Mapping[Any, Any], known: Sequence[str]) -> None:
    """Raise an error for an unknown key."""
    for key in form:
        if key not in known:
            there = ", ".join(known)
            raise InputError(f"{where}: unknown key {described(key)}; there are {there}")


def described(value: Any) -> str:
    """A value for messages, shortened: values of a hostile file can be too long to print."""
    if isinstance(value, bool):
        return str(value).lower()
    names: dict[type, str] = {dict: "a mapping", Block: "a mapping", list: "a list"}
    if value is None or type(value) in names:
        return names.get(type(value), "nothing")
    if isinstance(value, int) and value.bit_length() > 128:
        return "a large number"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def read_yaml(file: Path, *, aliases: bool = True) -> Any:
    """The content of a file. With aliases a small file can stand for more values than memory holds;
    without them that is impossible."""
    # Imported here, because most commands read none.
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # it comes without types
        """A safe loader that refuses keys that are there twice, and perhaps aliases."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if not aliases and self.check_event(yaml.AliasEvent):
                line = self.peek_event().start_mark.line + 1
                raise InputError(f"{file}, line {line}: aliases are not taken; write it out")
            return super().compose_node(parent, index)

    def mapping(loader: Any, node: Any) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if key.tag != "tag:yaml.org,2002:merge" and isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    line = key.start_mark.line + 1
                    raise InputError(f"{file}, line {line}: {key.value!r} is there twice")
                seen.add(key.value)
        loader.flatten_mapping(node)
        values = Block(yaml.SafeLoader.construct_mapping(loader, node, deep=True))
        values.lines = {key.value: key.start_mark.line + 1 for key, _ in node.value}
        return values

    Loader.add_constructor("tag:yaml.org,2002:map", mapping)
    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from error
    if len(content) > _MOST_BYTES:
        raise InputError(f"{file}: expected a YAML file of at most {_MOST_BYTES:,} bytes")
    try:
        return yaml.load(content.decode("utf-8"), Loader)
    except UnicodeDecodeError:
        raise InputError(f"{file}: expected a YAML file in UTF-8") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise InputError(f"{file}{line}: not a YAML file: {error.problem}") from None
    except yaml.YAMLError as error:
        raise InputError(f"{file}: not a YAML file: {error}") from None
    except ValueError as error:  # a date or a number that is none
        raise InputError(f"{file}: a value cannot be read: {error}") from None
    except RecursionError:
        raise InputError(f"{file}: nested too deeply") from None
