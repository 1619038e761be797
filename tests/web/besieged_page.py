"""The page under load, with kills and a full disk: ``python besieged_page.py FOLDER SECONDS SEED``.

Visitors ask and upload without a pause, while workers and the server itself are killed at random moments and the disk
fills up and is freed again. The page may answer that it is busy (429), full (507) or gone, and nothing else that is an
error; whatever it said it took is there after the next start, in a state that it knows; and at the end it works.
"""

import collections
import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import httpx
from web_support import Server, wait

STATES = {"queued", "running", "done", "no verdict", "failed", "interrupted"}
FILLER = 1_000_000


def scores(chance):
    """An attack's scores, as the bytes of a CSV file."""
    rows = [(i % 2, chance.gauss(1.5 * (i % 2), 1.0)) for i in range(200)]
    return ("member,score\n" + "".join(f"{inside},{value:.4f}\n" for inside, value in rows)).encode()


class Siege:
    """One folder, one server after the other, and what visitors saw."""

    def __init__(self, folder, seed):
        self.folder, self.chance = folder, random.Random(seed)
        self.seen, self.taken, self.wrong = collections.Counter(), set(), []
        self.ending, self.lock = threading.Event(), threading.Lock()
        self.server = self.start()

    def start(self):
        """Start a server on the folder that the one before it left; a full disk may refuse it, and is then freed."""
        try:
            return Server(self.folder / "data", "--max-minutes", "1")
        except AssertionError as error:
            if not self.fillers() or "Traceback" in str(error):
                raise
            self.seen["refused to start"] += 1
            self.free()
            return Server(self.folder / "data", "--max-minutes", "1")

    def client(self):
        """A visitor of the present server."""
        headers = {"Authorization": f"Bearer {self.server.token}"}
        return httpx.Client(base_url=self.server.base, headers=headers, timeout=60)

    def visit(self, seed):
        """Ask and upload until the end."""
        chance = random.Random(seed)
        while not self.ending.is_set():
            try:
                with self.client() as client:
                    kind = chance.choice(("explain", "history", "upload"))
                    if kind == "explain":
                        answer = client.get("/api/explain", params={"epsilon": chance.uniform(0.1, 10)})
                    elif kind == "history":
                        answer = client.get("/api/audits")
                    else:
                        answer = client.post("/api/audits", files={"scores": ("s.csv", scores(chance))})
            except httpx.HTTPError:
                self.seen["no answer"] += 1
                time.sleep(0.1)
                continue
            with self.lock:
                self.seen[f"{kind} {answer.status_code}"] += 1
                if answer.status_code not in (200, 202, 429, 507) and answer.status_code != 401:
                    self.wrong.append(f"{kind}: {answer.status_code} {answer.text[:300]}")
                if answer.status_code == 202:
                    self.taken.add(answer.json()["id"])
            time.sleep(chance.uniform(0, 0.3))

    def fillers(self):
        """Files that fill the disk."""
        return sorted(self.folder.glob("filler-*"))

    def fill(self):
        """Leave no room on the disk, if it is a small one."""
        if os.statvfs(self.folder).f_blocks * os.statvfs(self.folder).f_frsize > 100 * FILLER:
            return
        try:
            for number in range(100):
                with open(self.folder / f"filler-{number}", "wb") as file:
                    file.write(b"x" * FILLER)
        except OSError:
            self.seen["disk full"] += 1

    def free(self):
        """Make room again."""
        for path in self.fillers():
            path.unlink()

    def strike(self):
        """Do the server some harm."""
        what = self.chance.choice(("worker", "worker", "server", "fill", "free"))
        if what == "worker":
            for pid in self.server.children():
                try:
                    os.kill(pid, signal.SIGKILL)
                    self.seen["worker killed"] += 1
                except ProcessLookupError:
                    pass
        elif what == "server":
            self.server.end(signal.SIGKILL)
            self.seen["server killed"] += 1
            self.server = self.start()
            self.check()
        elif what == "fill":
            self.fill()
        else:
            self.free()

    def check(self):
        """Whatever was taken is there, in a state that is known."""
        with self.lock:
            taken = set(self.taken)
        with self.client() as client:
            answer = client.get("/api/audits")
            if answer.status_code == 507 and self.fillers():
                return
            found = {audit["id"]: audit["state"] for audit in answer.json()["audits"]}
        lost = taken - set(found)
        if lost or not set(found.values()) <= STATES:
            self.wrong.append(f"lost {sorted(lost)}, states {sorted(set(found.values()))}")


def main(folder, seconds, seed):
    """Besiege the page for a while, and see whether it stands."""
    siege = Siege(Path(folder), int(seed))
    visitors = [threading.Thread(target=siege.visit, args=(f"{seed}-{number}",)) for number in range(4)]
    for visitor in visitors:
        visitor.start()
    until = time.monotonic() + float(seconds)
    try:
        while time.monotonic() < until and not siege.wrong:
            time.sleep(siege.chance.uniform(0.2, 3.0))
            siege.strike()
        siege.ending.set()
        for visitor in visitors:
            visitor.join()
        siege.free()
        siege.check()
        with siege.client() as client:
            limit = time.monotonic() + 60
            while (answer := client.post("/api/audits", files={"scores": ("s.csv", scores(siege.chance))})).is_error:
                assert answer.status_code == 429, answer.text
                assert time.monotonic() < limit, "busy for a minute"
                time.sleep(0.5)
            assert wait(client, answer.json()["id"])["state"] in ("done", "no verdict")
    finally:
        siege.ending.set()
        siege.server.end(signal.SIGKILL)
    print(json.dumps({"seen": dict(sorted(siege.seen.items())), "taken": len(siege.taken)}))
    if siege.wrong:
        sys.exit("\n".join(siege.wrong))


if __name__ == "__main__":
    main(*sys.argv[1:])
