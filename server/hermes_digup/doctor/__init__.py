"""Proofs that a question can travel to an answer: each check one row, with the next step when it fails."""

from __future__ import annotations

from hermes_digup.doctor.deliveries import delivery_rows, room_row
from hermes_digup.doctor.report import Report, Row
from hermes_digup.doctor.sources import setting_rows, source_rows
from hermes_digup.doctor.vectors import embedding_rows
from hermes_digup.service import Service, embedding_client
from hermes_digup.settings import Settings

__all__ = ["Report", "Row", "examine"]


def examine(settings: Settings, service: Service) -> Report:
    """Runs all checks. Reads only; asks the model server a few times."""
    client = embedding_client(settings)
    try:
        with service.opened() as opened:
            deliveries = list(delivery_rows(settings))
            rows = [
                *setting_rows(settings),
                *deliveries,
                room_row(settings, opened),
                *source_rows(settings, opened, deliveries),
                *embedding_rows(client, opened),
            ]
    finally:
        if client is not None:
            client.close()
    return Report(tuple(rows))
