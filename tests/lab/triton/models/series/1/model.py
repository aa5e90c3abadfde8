"""Publishes metrics of its own."""

import json
from typing import Any

import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]
from lab_tensors import read, respond  # type: ignore[import-not-found]

HOSTILE = '\x1b[31m[bold]"quoted" \\ back\nnext{}= ünïcödé'


class TritonPythonModel:
    """lab_gauge{number}, lab_requests_total, and without the model's label lab_hostile{text}."""

    def initialize(self, args: dict[str, str]) -> None:
        """Publish the gauges, each with its number as its value."""
        own = {"model": args["model_name"], "version": args["model_version"]}
        kinds = pb_utils.MetricFamily
        gauges = kinds(name="lab_gauge", description="Numbered gauges", kind=kinds.GAUGE)
        requests = kinds(name="lab_requests_total", description="Requests that the model saw", kind=kinds.COUNTER)
        hostile = kinds(name="lab_hostile", description="A hostile label", kind=kinds.GAUGE)
        self.requests = requests.Metric(labels=own)
        self.metrics = [hostile.Metric(labels={"text": HOSTILE})]
        self.metrics[0].set(1)
        for number in range(int(json.loads(args["model_config"])["parameters"]["count"]["string_value"])):
            gauge = gauges.Metric(labels={**own, "number": str(number)})
            gauge.set(number)
            self.metrics.append(gauge)
        self.families = [gauges, requests, hostile]  # kept, since the metrics end with their families

    def execute(self, requests: list[Any]) -> list[Any]:
        """One response per request."""
        self.requests.increment(len(requests))
        return [respond("OUTPUT", read(request, "INPUT")) for request in requests]
