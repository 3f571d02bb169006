"""Volumes for the claims of a release, in a folder of a node: a cluster may have nothing that provides any."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.kubernetes.cluster import Namespace, image, run

FOLDERS: Final = "/var/tmp"


@contextmanager
def volumes(namespace: Namespace, claims: Mapping[str, str], scratch: Path) -> Iterator[None]:
    """Volumes that wait for some claims, of a storage class that is named as the namespace; removed afterwards.

    Args:
        namespace: That of the claims.
        claims: The sizes of claims by their names.
        scratch: A folder for manifests.
    """
    nodes = Namespace(f"{namespace.name}-volumes")
    nodes.create("privileged")
    try:
        made = " ".join(f"/node/{namespace.name}/{claim}" for claim in claims)
        node = on_node(nodes, f"install --directory --mode=0777 {made}", scratch)
        folders = {claim: f"{FOLDERS}/{namespace.name}/{claim}" for claim in claims}
        apply([volume(namespace, claim, size, folders[claim], node) for claim, size in claims.items()], scratch)
        yield
    finally:
        names = [f"{namespace.name}-{claim}" for claim in claims]
        run("kubectl", "delete", "persistentvolumes", *names, "--ignore-not-found", "--timeout=60s")
        on_node(nodes, f"rm -r /node/{namespace.name}", scratch)
        nodes.delete()


def volume(namespace: Namespace, claim: str, size: str, folder: str, node: str) -> dict[str, Any]:
    """A volume in a folder of a node, which one claim gets."""
    hostname = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{namespace.name}-{claim}"},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": namespace.name,
            "claimRef": {"namespace": namespace.name, "name": claim},
            "local": {"path": folder},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [hostname]}]}},
        },
    }


def on_node(namespace: Namespace, command: str, scratch: Path) -> str:
    """Runs a command as root in a pod that has the folder of its node at /node; returns the name of the node."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "node"},
        "spec": {
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "node",
                    "image": image(),
                    "command": ["bash", "-c", command],
                    "securityContext": {"runAsUser": 0},
                    "volumeMounts": [{"name": "node", "mountPath": "/node"}],
                }
            ],
            "volumes": [{"name": "node", "hostPath": {"path": FOLDERS}}],
        },
    }
    apply([pod | {"metadata": {"name": "node", "namespace": namespace.name}}], scratch)
    namespace.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/node", "--timeout=60s")
    name = namespace.kubectl("get", "pod/node", "--output=jsonpath={.spec.nodeName}")
    namespace.kubectl("delete", "pod/node")
    return name


def apply(objects: list[dict[str, Any]], scratch: Path) -> None:
    """Creates objects."""
    file = scratch / "objects.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}), encoding="utf-8")
    run("kubectl", "apply", "--filename", file)
