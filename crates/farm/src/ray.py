"""Works on tasks of a farm in a Ray cluster.

    ray.py BASE FARM ADDRESS PROGRAMS SEND

Reads one task as JSON from each line of standard input, {"id", "cores", "files"}, and writes a line
{"id", "error", "again"} to standard output when it has ended. Ends when its input does; what is at
work then is given up. Paths are relative to BASE, the folder of the jobs. Machines that see the
folder FARM there work in it; once one does not, files are sent, and results back. SEND is 1 to do
that from the beginning. PROGRAMS are the commands to try for `regraft`, as JSON.
"""

import json
import os
import queue
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import ray

RETRIES = 10
"""How often Ray begins a task again whose worker or machine is lost."""


PATIENCE = 10.0
"""Seconds to wait for somebody who listens at the address of the cluster."""


def run(base, farm, task, programs):
    """Runs the task's command, and returns its error and whether trying again may help."""
    program = next((p for p in programs if shutil.which(p[0])), None)
    if program is None:
        return f"no program {programs[0][0]} on {socket.gethostname()}: install regraft there", False
    command = [*program, "task", str(Path(base) / farm / "tasks" / f"{task}.json"), "--attached"]
    # The command ends when its input does: with this worker, however that ends.
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = child.stderr.read().decode(errors="replace").strip().splitlines()
    code = child.wait()
    if code == 0:
        return None, False
    last = said[-1].removeprefix("regraft: error: ") if said else "it said nothing"
    return f"{last} (exit code {code} on {socket.gethostname()})", code != 2


def work(task, base, farm, mark, programs, environment, files):
    """One task, on some machine of the cluster: {"error", "again"}, and {"results"} if files were
    sent; {"unseen"} if they have to be.
    """
    for name, value in environment.items():
        if Path(value).exists():
            os.environ.setdefault(name, value)
    if files is None:
        seen = Path(base) / farm / "farm"
        if not seen.is_file() or seen.read_text() != mark:
            return {"unseen": True}
        error, again = run(base, farm, task, programs)
        return {"error": error, "again": again}
    with tempfile.TemporaryDirectory(prefix="regraft-farm-") as top:
        # As deep as paths lead up.
        up = max([Path(path).parts.count("..") for path in files] + [0])
        there = Path(top).joinpath(*["d"] * (up + 1))
        for path, content in files.items():
            place = there / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(ray.get(content))
        for name in ("locks", "results"):
            (there / farm / name).mkdir(parents=True, exist_ok=True)
        error, again = run(there, farm, task, programs)
        folder = there / farm / "results" / task
        results = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        return {"error": error, "again": again, "results": results}


def keep(base, farm, task, results):
    """Puts the files of a result where they belong; the outcome last."""
    folder = Path(base) / farm / "results" / task
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(results, key=lambda name: name == "outcome.json"):
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_name(place.name + ".part")
        draft.write_bytes(results[name])
        draft.replace(place)


def smallest():
    """Processors of the smallest machine of the cluster: what asks for all that there are fits on
    any."""
    machines = [node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]]
    return min((int(processors) for processors in machines if processors >= 1), default=1)


class Cluster:
    """Tasks at work in a cluster."""

    def __init__(self, base, farm, mark, programs, environment):
        self.base, self.farm, self.mark, self.programs, self.environment = base, farm, mark, programs, environment
        self.at_work = {}
        self.sent = {}
        self.sends = False

    def begin(self, task):
        """Gives a task to Ray."""
        options = {"num_cpus": task["cores"] or smallest(), "max_retries": RETRIES, "name": task["id"]}
        files = {path: self.content(path) for path in task["files"]} if self.sends else None
        arguments = [task["id"], self.base, self.farm, self.mark, self.programs, self.environment, files]
        self.at_work[ray.remote(**options)(work).remote(*arguments)] = task

    def content(self, path):
        """A file, sent to the cluster once."""
        if path not in self.sent:
            self.sent[path] = ray.put((Path(self.base) / path).read_bytes())
        return self.sent[path]

    def ended(self, seconds):
        """The end of a task, if there is one within so many seconds."""
        ready, _ = ray.wait(list(self.at_work), num_returns=1, timeout=seconds)
        for reference in ready:
            task = self.at_work.pop(reference)
            try:
                done = ray.get(reference)
            except Exception as error:  # whatever Ray calls it: the task has no outcome
                last = [line for line in str(error).splitlines() if line.strip()]
                return {"id": task["id"], "error": last[-1] if last else type(error).__name__, "again": True}
            if done.get("unseen"):
                self.sends = True
                self.begin(task)
                continue
            if "results" in done:
                keep(self.base, self.farm, task["id"], done["results"])
            return {"id": task["id"], "error": done["error"], "again": done["again"]}
        return None


def reach(address):
    """Fails soon where nobody listens; Ray would try for a minute."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()


def main():
    """Reads tasks until there are no more."""
    # Ray writes to standard output what it likes; the other end reads answers only.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    base, farm, address, programs = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
    mark = (Path(base) / farm / "farm").read_text()
    environment = {name: os.environ[name] for name in ("REGRAFT_ONNXRUNTIME",) if name in os.environ}
    reach(address)
    ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    cluster = Cluster(base, farm, mark, programs, environment)
    cluster.sends = sys.argv[5] == "1"
    lines = queue.SimpleQueue()

    def read():
        for line in sys.stdin:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    print(json.dumps({"ready": len(ray.nodes())}), file=answers)
    while True:
        try:
            line = lines.get(timeout=0.01 if cluster.at_work else 0.2)
        except queue.Empty:
            line = ""
        if line is None:
            break
        if line:
            cluster.begin(json.loads(line))
            continue
        ended = cluster.ended(0.2) if cluster.at_work else None
        if ended is not None:
            print(json.dumps(ended), file=answers)


main()
