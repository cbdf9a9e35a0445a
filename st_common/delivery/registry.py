"""The kinds of sinks that there are; settings and deliveries ask here, and nobody else names one."""

from st_common.delivery.files import FileSink
from st_common.delivery.kafka import KafkaSink
from st_common.delivery.mqtt import MqttSink
from st_common.delivery.sink import Sink
from st_common.delivery.webhook import WebhookSink

SINKS: tuple[type[Sink], ...] = (
    WebhookSink,
    KafkaSink,
    MqttSink,
    FileSink,
)

BY_KIND = {sink.kind: sink for sink in SINKS}
