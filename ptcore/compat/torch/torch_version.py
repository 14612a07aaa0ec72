"""The version of PyTorch whose names ptcore follows: a str that compares as versions do."""
import re

__all__ = ["TorchVersion"]


def _key(version):
    """Numbers of a release, and whether it is final (a local part such as +cpu is ignored)."""
    if isinstance(version, (tuple, list)):
        version = ".".join(map(str, version))
    found = re.match(r"\s*v?(\d+(?:\.\d+)*)(.*)", str(version))
    if found is None:
        raise ValueError(f"TorchVersion: expected a version, got {version!r}")
    numbers = [int(n) for n in found[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    rest = found[2].partition("+")[0]
    early = re.match(r"[._-]?(dev|a|alpha|b|beta|c|rc|pre|preview)[._-]?(\d*)", rest)
    if early:
        rank = {"d": 0, "a": 1, "b": 2, "c": 3, "r": 3, "p": 3}[early[1][0]]
        return numbers, rank, int(early[2] or 0)
    late = re.match(r"[._-]?(?:post|rev|r)?[._-]?(\d+)", rest)
    return numbers, 4, int(late[1]) if late else 0


class TorchVersion(str):
    """A str whose comparisons are those of versions, with strings, tuples and ``packaging.version.Version``.

    Examples
    --------
    >>> TorchVersion("2.13.0") >= "2.4", TorchVersion("2.13.0") >= (2, 13), TorchVersion("2.13.0") == "2.13.0"
    (True, True, True)
    """

    __slots__ = ()
    __hash__ = str.__hash__

    def _compare(self, other, test):
        try:
            return test(_key(str(self)), _key(other))
        except ValueError:
            return test(str(self), other)

    def __lt__(self, other):
        return self._compare(other, lambda a, b: a < b)

    def __le__(self, other):
        return self._compare(other, lambda a, b: a <= b)

    def __gt__(self, other):
        return self._compare(other, lambda a, b: a > b)

    def __ge__(self, other):
        return self._compare(other, lambda a, b: a >= b)

    def __eq__(self, other):
        return self._compare(other, lambda a, b: a == b)

    def __ne__(self, other):
        return not self == other


__version__ = TorchVersion("2.13.0")
