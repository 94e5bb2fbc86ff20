"""The check command of object files, asked of the process of the tests: no program need be started.

Arguments: its socket, and those of ``python -m monrest.demo``.
"""

import socket
import sys

with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1])
    connection.sendall("\0".join(sys.argv[2:]).encode())
    connection.shutdown(socket.SHUT_WR)
    answer = b"".join(iter(lambda: connection.recv(65536), b""))
status, _, text = answer.partition(b"\n")
sys.stdout.buffer.write(text)
sys.exit(int(status))
