"""The names that a home knows, for completion: read when they are asked for, and again after each statement."""

from collections.abc import Mapping
from functools import cached_property

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.query.fix_columns import BUILTINS


class Known:
    """Names by what they are names of."""

    def __init__(self, home: Home, streams: Mapping[str, StreamSettings]) -> None:
        self._home = home
        self.streams = streams

    @cached_property
    def queries(self) -> list[str]:
        """The registered queries."""
        from st_common.query.lookup import queries

        return [row.name for row in queries(self._home)]

    @cached_property
    def layers(self) -> list[str]:
        """The layers that are loaded."""
        from st_common.query.lookup import layers

        return sorted(layers(self._home))

    @cached_property
    def layer_groups(self) -> dict[str, str | None]:
        """The group of each layer that is loaded; None where its table does not say."""
        from st_common.layers.announce import layer_group

        return {name: layer_group(self._home, name) for name in self.layers}

    def streams_in(self, group: str) -> list[str]:
        """The streams of a group, in whatever case its name is."""
        return [name for name, one in self.streams.items() if _is(one.group, group)]

    def layers_in(self, group: str) -> list[str]:
        """The layers of a group, likewise."""
        return [name for name, own in self.layer_groups.items() if _is(own, group)]

    @cached_property
    def areas(self) -> list[str]:
        """The named areas."""
        from st_common.query.area_store import areas

        return [area.name for area in areas(self._home)]

    def columns(self, stream: str | None) -> list[str]:
        """What conditions on a stream may name."""
        columns = next(
            (
                one
                for name, one in self.streams.items()
                if name.lower() == (stream or "").lower()
            ),
            None,
        )
        return [*BUILTINS, *(columns.attributes if columns else ())]

    def forget(self) -> None:
        """The names may have changed."""
        for name in ("queries", "layers", "layer_groups", "areas"):
            self.__dict__.pop(name, None)


def _is(group: str | None, called: str) -> bool:
    return group is not None and group.casefold() == called.casefold()
