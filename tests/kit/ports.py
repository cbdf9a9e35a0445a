"""Ports of this machine on which nothing listens now."""

import socket


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens on now, each another one."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports
