"""The other ways to a state on a server; what lies there is the same."""

from __future__ import annotations

from typing import ClassVar

from scrapy_neardup.stores.redis import RedisStore


class RedissStore(RedisStore):
    """Over TLS."""

    scheme: ClassVar[str] = "rediss"


class UnixStore(RedisStore):
    """On a socket of this machine."""

    scheme: ClassVar[str] = "unix"

    @classmethod
    def form(cls) -> str:
        return "unix:///path/of/the.sock?state=name"


class SentinelStore(RedisStore):
    """On whatever server is the master just now, by what the Sentinels say; see ``redis_nodes``."""

    scheme: ClassVar[str] = "redis+sentinel"

    @classmethod
    def form(cls) -> str:
        return f"{cls.scheme}://host:26379,host:26379/service/0?state=name"


class RedissSentinelStore(SentinelStore):
    """The same, over TLS, the Sentinels too."""

    scheme: ClassVar[str] = "rediss+sentinel"


class ClusterStore(RedisStore):
    """On the node of a cluster that has the state's slot just now; see ``redis_nodes``."""

    scheme: ClassVar[str] = "redis+cluster"

    @classmethod
    def form(cls) -> str:
        return f"{cls.scheme}://host:6379,host:6379?state=name"


class RedissClusterStore(ClusterStore):
    """The same, over TLS."""

    scheme: ClassVar[str] = "rediss+cluster"
