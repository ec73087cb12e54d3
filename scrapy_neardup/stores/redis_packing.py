"""Programs as they go to the server: several in one command, which is put together at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scrapy_neardup.stores.redis_program import COMMON, Program


class _Numbers(dict[int, bytes]):
    """Numbers as they go to the server; there are few different ones."""

    def __missing__(self, number: int) -> bytes:
        packed = self[number] = _string(b"%d" % number)
        return packed


def _string(one: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(one), one)


_NUMBERS = _Numbers()


class Packing:
    """What packs programs for one state, by the prefix of its keys."""

    def __init__(self, prefix: bytes) -> None:
        #: What comes before a name, by its length: names are short.
        self._heads = [b"$%d\r\n%b" % (len(prefix) + size, prefix) for size in range(64)]
        self._common = self._names(COMMON)

    def packed(self, programs: Sequence[Program], *command: bytes) -> bytes:
        r"""One run of the script, which ``command`` names (EVALSHA and its digest, or EVAL and itself).

        >>> Packing(b"{a}").packed([], b"EVALSHA", b"0")
        b'*6\r\n$7\r\nEVALSHA\r\n$1\r\n0\r\n$1\r\n3\r\n$4\r\n{a}/\r\n$4\r\n{a}^\r\n$4\r\n{a}#\r\n'
        """
        keys, arguments = [*self._common], list[bytes]()
        many = many_keys = len(COMMON)
        for program in programs:
            names, steps = program.parts()
            many_keys += len(names)
            many += len(names) + len(steps)
            keys += self._names(names)
            arguments += [
                b"$%d\r\n%b\r\n" % (len(one), one) if type(one) is bytes else _NUMBERS[one]  # type: ignore[index]
                for one in steps
            ]
        begin = b"*%d\r\n" % (many + len(command) + 1)
        return b"".join([begin, *map(_string, command), _NUMBERS[many_keys], *keys, *arguments])

    def _names(self, names: Iterable[bytes]) -> list[bytes]:
        heads = self._heads
        return [heads[len(name)] + name + b"\r\n" for name in names]
