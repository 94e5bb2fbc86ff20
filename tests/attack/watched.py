"""A daemon that says for how long its reactor was held.

    python watched.py FILE COMMAND OF TWISTD …

FILE holds one number: the most processor time in seconds that the process had between two calls of a
timer that is due every 5 milliseconds. A thread that keeps the interpreter counts like work of the
reactor itself; what other processes of the machine do counts nothing.
"""

import mmap
import struct
import sys
import time
from pathlib import Path

EVERY = 0.005


def main():
    file = Path(sys.argv[1])
    with file.open("r+b") as opened:
        shown = mmap.mmap(opened.fileno(), 8)
    sys.argv = ["twistd", *sys.argv[sys.argv.index("--nodaemon") :]]

    from twisted.internet import reactor
    from twisted.scripts.twistd import run

    before = 0.0

    def look():
        nonlocal before
        now = time.process_time()
        longest = max(struct.unpack("d", shown[:8])[0], now - before - EVERY)
        shown[:8] = struct.pack("d", longest)
        before = now
        reactor.callLater(EVERY, look)

    reactor.callWhenRunning(look)
    run()


if __name__ == "__main__":
    main()
