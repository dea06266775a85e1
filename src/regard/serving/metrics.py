"""What a server counts, for Prometheus: requests, work that runs and waits, models, documents; nothing of clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from regard import __version__
from regard.serving.core import ServiceError
from regard.serving.service import TranslationService

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics(Collector):
    """Of a service.

    Args:
        service: that is looked at when somebody asks.
    """

    def __init__(self, service: TranslationService) -> None:
        disable_created_metrics()
        self._service, self._registry = service, CollectorRegistry()
        self._requests = Counter(
            "regard_requests", "Requests by path and status.", ["path", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "regard_request_seconds", "Seconds of a request.", ["path"], buckets=SECONDS, registry=self._registry
        )
        self._registry.register(self)

    def count(self, path: str, status: int, seconds: float) -> None:
        """A request that was answered.

        Args:
            path: as its route has it, empty where there is none.
            status: of the answer; 499 where nobody waited for it.
            seconds: that it took.
        """
        self._requests.labels(path or "other", status).inc()
        self._seconds.labels(path or "other").observe(seconds)

    def collect(self) -> Iterator[Metric]:
        """What is measured when it is asked for."""
        service = self._service
        searching, admission = service.searching.counts(), service.admission
        for name, told, value in (
            ("calls_running", "Calls that are being answered.", admission.calls),
            ("characters_waiting", "Characters that are accepted and not translated yet.", admission.characters),
            ("characters_per_second", "Speed by which calls are let in.", admission.speed),
            ("sentences_running", "Sentences under search.", searching.running),
            ("sentences_waiting", "Sentences that wait for the search.", searching.waiting),
            ("ending", "Whether the server ends.", int(admission.ending)),
        ):
            yield GaugeMetricFamily(f"regard_{name}", told, value)
        for name, told, count in (
            ("sentences", "Sentences that were searched for.", searching.sentences),
            ("source_tokens", "Tokens of their texts.", searching.source_tokens),
            ("target_tokens", "Tokens that were found.", searching.target_tokens),
            ("search_seconds", "Seconds that threads searched.", searching.seconds),
            ("search_restarts", "How often the process that searches was started again.", searching.restarts),
        ):
            yield CounterMetricFamily(f"regard_{name}", told, count)
        loaded = GaugeMetricFamily("regard_model_loaded", "Whether a model is in memory.", labels=["model"])
        loads = CounterMetricFamily("regard_model_loads", "How often a model was opened.", labels=["model"])
        for model in service.models:
            loaded.add_metric([model.name], int(model.task is not None))
            loads.add_metric([model.name], model.loads)
        yield loaded
        yield loads
        jobs = GaugeMetricFamily("regard_documents", "Documents by status.", labels=["status"])
        with suppress(ServiceError):  # the rest is worth more while what lasts is busy or gone
            for status, number in service.store.jobs.counts().items():
                jobs.add_metric([status], number)
        yield jobs
        info = GaugeMetricFamily("regard_info", "The version that runs.", labels=["version"])
        info.add_metric([__version__], 1)
        yield info

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self._registry)
