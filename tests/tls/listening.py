"""Listens to a network of Docker, as anybody in it could: what is said, and what of it can be read. Needs root."""

import json
import re
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

WORDS: Final = re.compile(
    rb"HTTP/1\.|PRI \* HTTP/2|(?:GET|POST|PUT|HEAD|DELETE) /|# TYPE |org\.apache\.spark\.|java\.lang\.|spark\.app\.name"
    rb'|service\.name|"trace_id"|"Event":|daily_sales|transaction_id|customer_id|/leader_election|/master_status'
)
"""What requests, messages of Spark and ZooKeeper, telemetry and rows have. No names of hosts: TLS itself shows them."""
CLIENT_HELLO: Final = b"\x16\x03"
ALL_PROTOCOLS, TCP, IPV4 = 3, 6, 0x0800
PACKET_ADD_MEMBERSHIP, PACKET_MR_PROMISC = 1, 1
KEPT: Final = 120

Connection = tuple[str, int, str, int]
"""Address and port of who began it, and of who was asked."""


@dataclass
class Heard:
    """What was heard.

    Attributes:
        readable: A connection, and the beginning of what could be read of it.
        first: The first bytes that the one who began a connection has said.
        sizes: Bytes by the port that was asked.
    """

    readable: dict[Connection, bytes] = field(default_factory=dict)
    first: dict[Connection, bytes] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    _begun: set[Connection] = field(default_factory=set)

    def frame(self, frame: bytes) -> None:
        """Takes an Ethernet frame; only TCP over IPv4 says anything here."""
        if len(frame) < 54 or struct.unpack_from("!H", frame, 12)[0] != IPV4 or frame[23] != TCP:
            return
        start = 14 + (frame[14] & 15) * 4
        size = struct.unpack_from("!H", frame, 16)[0]
        source, target = struct.unpack_from("!HH", frame, start)
        there = (socket.inet_ntoa(frame[26:30]), source, socket.inet_ntoa(frame[30:34]), target)
        flags, payload = frame[start + 13], frame[start + (frame[start + 12] >> 4) * 4 : 14 + size]
        if flags & 0x12 == 0x02:  # SYN without ACK: who begins
            self._begun.add(there)
        if payload:
            self._payload(there, payload)

    def _payload(self, there: Connection, payload: bytes) -> None:
        back = (*there[2:], *there[:2])
        asked = there if there in self._begun else back
        self.sizes[asked[3]] = self.sizes.get(asked[3], 0) + len(payload)
        if there in self._begun:
            self.first.setdefault(there, payload[:KEPT])
        if found := WORDS.search(payload):
            self.readable.setdefault(asked, payload[max(0, found.start() - 20) :][:KEPT])


@contextmanager
def listening(network: str) -> Iterator[Heard]:
    """Hears every frame that containers of a network exchange, and what comes through published ports."""
    heard, ending = Heard(), threading.Event()
    interface = bridge(network)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as ear:  # deaf until it is bound to the interface
        ear.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**26)
        ear.bind((interface, ALL_PROTOCOLS))
        all_frames = struct.pack("IHH8s", socket.if_nametoindex(interface), PACKET_MR_PROMISC, 0, b"")
        ear.setsockopt(263, PACKET_ADD_MEMBERSHIP, all_frames)  # SOL_PACKET
        ear.settimeout(0.5)
        thread = threading.Thread(target=_hear, args=(ear, heard, ending), daemon=True)
        thread.start()
        try:
            yield heard
        finally:
            ending.set()
            thread.join()


def _hear(ear: socket.socket, heard: Heard, ending: threading.Event) -> None:
    while not ending.is_set():
        try:
            heard.frame(ear.recv(2**17))
        except TimeoutError:
            continue


def bridge(network: str) -> str:
    """The interface of this machine through which the containers of a network talk."""
    found = subprocess.run(["docker", "network", "inspect", network], capture_output=True, text=True, check=True)
    [described] = json.loads(found.stdout)
    return str(described["Options"].get("com.docker.network.bridge.name") or f"br-{described['Id'][:12]}")
