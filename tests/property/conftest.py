"""A small budget for every property: the suite runs on every commit."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# no deadline: the machine is shared, and time is not what these tests are about
settings.register_profile("commit", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("commit")
