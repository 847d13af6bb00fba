"""Members of one kind by name: those of lintra, those registered, and those of installed packages."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

Member = TypeVar("Member")


class Registry(Mapping[str, Member]):
    """A mapping from names to members that other packages can extend.

    A package adds a member by an entry point of the group `lintra.<kind>`, which is imported when its name is
    first used. A program adds one by `register`. Names of lintra's own members cannot be taken.

    Args:
        kind: What the members are: `families`, `priors`, `baselines` or `figures`.
        members: Lintra's own members.

    >>> colours = Registry("colours", {"red": 1})
    >>> colours.register("blue", 2)
    >>> list(colours), colours["blue"]
    (['red', 'blue'], 2)
    """

    def __init__(self, kind: str, members: Mapping[str, Member]):
        self.kind = kind
        self._members = dict(members)

    def register(self, name: str, member: Member) -> None:
        """Add a member for as long as this process runs.

        Args:
            name: A name that is not taken.
            member: The member.
        """
        if name in self:
            raise ValueError(f"`name` {name!r} is taken: the {self.kind} are {', '.join(self)}.")
        self._members[name] = member

    @cached_property
    def _installed(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=f"lintra.{self.kind}")}

    def __getitem__(self, name: str) -> Member:
        if name not in self._members and name in self._installed:
            self._members[name] = self._installed[name].load()
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._members, *self._installed]))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._members or name in self._installed)
