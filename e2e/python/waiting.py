"""What other processes show is looked at again and again until they show what is waited for."""

import re
import time
import urllib.request

# Far beyond what anything takes: who waits so long hangs.
LIMIT_SECONDS = 90


def until(what, look):
    """Returns once `look` is true. Raises after a long time, saying what was waited for."""
    end = time.monotonic() + LIMIT_SECONDS
    while not look():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.02)


class Metrics:
    """The metrics endpoint of a process."""

    def __init__(self, address):
        self.url = f"http://{address}/metrics"

    def sum(self, name):
        """Of all series of that name; 0 if there are none."""
        text = urllib.request.urlopen(self.url).read().decode()
        return sum(float(n) for n in re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", text, re.MULTILINE))
