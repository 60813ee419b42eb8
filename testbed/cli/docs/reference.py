"""The scenario reference: every key of a scenario and every plugin, from the schema and the registries.

Rules kept: names, types, ranges and defaults come from the declarations, the meaning of a key from the comment above it
in the source. Nothing is written here by hand but headings.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from pydantic import BaseModel

from channel.capacity import CAPACITY_MODELS
from channel.errors import ERROR_MODELS
from flowgraphs.phys import PHYS
from hosts.tcp.growth import GROWTHS
from hosts.tcp.recovery import RECOVERIES
from hosts.workloads import WORKLOADS
from linklayer.filters import FILTERS
from linklayer.queues import QUEUES
from linklayer.schemes import SCHEMES
from testbed.cli.docs.keys import keys_of_dataclass, keys_of_model, table_of
from testbed.scenario import radio, schema
from testbed.scenario.tcp import TcpPart

_INTRODUCTION = """# Scenario reference

This page is made from the program's own declarations, so it has every key, range and default of this version. A key is
changed on the command line by `--set`, as in `--set channel.rate_bps=1e6`. Default `null` means that the key is unset,
and the row says what then holds; `--set KEY=null` unsets a key again. Numbers that need only be above 0, or
not below, are 1e12 at most.
[scenarios.md](scenarios.md) explains them;
[hosts.md](hosts.md) and [tcp.md](tcp.md) have the profiles of TCP.
"""

#: parts of a scenario: their keys, and their classes
_PARTS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("", schema.Scenario),
    ("link", schema.LinkOptions),
    ("link.fast", schema.FastOptions),
    ("channel", schema.Channel),
    ("channel.excess_delay", schema.ExcessDelayOptions),
    ("channel.fading", schema.FadingOptions),
    ("wired", schema.Wired),
    ("tcp", TcpPart),
    ("radio", radio.RadioOptions),
    ("radio.access", radio.AccessPart),
    ("timing", schema.Timing),
)

#: kinds of plugins: heading, the key that names one, the place of its options, and the registry
_KINDS: tuple[tuple[str, str, str, Mapping[str, Any]], ...] = (
    ("Link schemes", "link.scheme", "link.{key}", SCHEMES),
    ("Packet filters", "link.filters", "link.{key}", FILTERS),
    ("Queues", "link.queue.kind", "link.queue", QUEUES),
    ("Error models", "channel.errors.model", "channel.errors", ERROR_MODELS),
    ("Capacity models", "channel.assignment.kind", "channel.assignment", CAPACITY_MODELS),
    ("PHYs", "radio.phy", "radio", PHYS),
    ("Loss recoveries of our own TCP", "tcp.recovery.name", "tcp.recovery", RECOVERIES),
    ("Window growths of our own TCP", "tcp.growth.name", "tcp.growth", GROWTHS),
    ("Workloads", "workloads.N.kind", "workloads.N", WORKLOADS),
)


def reference() -> str:
    """Return the page."""
    return "\n".join([_INTRODUCTION, *_parts(), *_plugins()]).rstrip() + "\n"


def _parts() -> Iterator[str]:
    for place, part in _PARTS:
        yield f"## {f'`{place}`' if place else 'A scenario'}\n"
        yield f"{_sentence(part.__doc__)}\n"
        yield table_of(keys_of_model(part))


def _plugins() -> Iterator[str]:
    for heading, named_at, options_at, registry in _KINDS:
        yield f"## {heading}\n"
        yield f"`{named_at}` is one of these.\n"
        for name, plugin in sorted(registry.items()):
            yield f"### `{name}` {{: #{named_at.replace('.', '-').lower()}-{name} }}\n"
            yield f"{_sentence(plugin.summary)}\n"
            if fields(plugin.options):
                yield f"Options, at `{options_at.format(key=getattr(plugin, 'options_key', ''))}`:\n"
                yield table_of(keys_of_dataclass(plugin.options))


def _sentence(text: str | None) -> str:
    """Return the first paragraph as a sentence."""
    words = " ".join((text or "").strip().split("\n\n")[0].split())
    return words[:1].upper() + words[1:] + ("" if words.endswith((".", ":")) or not words else ".")
