"""What this annex adds: applications on Kubernetes by their names, as sources of a report."""

from typing import Final

from spark_app.report.clusters import Cluster, ClusterApplication


def _application(name: str) -> ClusterApplication:
    from spark_app.annexes.kubernetes import applications

    return applications.application(name)


ADDS: Final = (Cluster("k8s://", _application),)
