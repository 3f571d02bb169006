"""Failures that are planted into the running stack, to see what its alerts, dashboards and findings say of them."""
