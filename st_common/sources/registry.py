"""The kinds of sources that there are, each a class of `sources`."""

from st_common.config.sources import SourceSettings
from st_common.config.stream import StreamSettings
from st_common.sources.brokers import Kafka, Mqtt
from st_common.sources.files import Files
from st_common.sources.pipes import Pipe, Stdin
from st_common.sources.sockets import Tcp, Udp
from st_common.sources.source import Source
from st_common.sources.web import Http, WebSocket

SOURCES: dict[str, type[Source]] = {
    "tcp": Tcp,
    "udp": Udp,
    "pipe": Pipe,
    "stdin": Stdin,
    "files": Files,
    "http": Http,
    "websocket": WebSocket,
    "mqtt": Mqtt,
    "kafka": Kafka,
}
"""All of them, by the name that settings give them."""


def source_of(settings: SourceSettings, stream: StreamSettings) -> Source:
    """The source that settings describe.

    Raises:
        ConfigError: the stream's format does not go with it, or what it reads is not there.
    """
    return SOURCES[settings.kind](settings, stream)
