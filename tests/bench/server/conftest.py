"""Our server and its peers, each started alike, driven by wrk alike, and their CPU time counted alike."""

import contextlib
import dataclasses
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import urllib.request
from pathlib import Path

import psutil
import pytest

from perfkit import children
from perfkit.clock import NS_PER_S, REAL_CLOCK
from perfkit.measuring.placement import place
from perfkit.measuring.service import launch

PEERS = Path(__file__).parent.parent / "peers"
ROOT = Path(__file__).parents[3]
BODY = (ROOT / "data/numbers/mlp.jsonl").read_text().splitlines()[0]
START_S = 90
CALM_CORES = 0.2  # a machine of which others use no more is calm
MOST_FOREIGN_CORES = 0.3  # a phase on all cores that had to leave others more than this is not fair
TRIES_A_ROUND = 6  # how many rounds are played, at the most, for one that counts
PATIENCE_S = 30  # how long a phase of load waits for a calm machine


@dataclasses.dataclass(frozen=True, kw_only=True)
class Phase:
    """What one server did in one phase of load. CPU is that of its whole process tree."""

    count: int
    wall_s: float
    p50_s: float
    cpu_s: float
    foreign_cores: float
    """Cores of the whole machine that neither the server nor wrk used, but others did."""
    has_own_cores: bool

    @property
    def throughput_rps(self):
        return self.count / self.wall_s

    @property
    def cpu_us(self):
        """CPU per request."""
        return self.cpu_s / self.count * 1e6

    @property
    def cores(self):
        """Cores used by the server."""
        return self.cpu_s / self.wall_s

    @property
    def is_disturbed(self):
        """Whether others took what the server could have used; one with cores of its own runs ahead of them."""
        return not self.has_own_cores and self.foreign_cores > MOST_FOREIGN_CORES


@dataclasses.dataclass(frozen=True, kw_only=True)
class Contestant:
    """A running server: where it answers and to what, its process, and the cores it may use."""

    url: str
    pid: int
    cpus: tuple[int, ...]
    body: str = BODY

    def cpu_s(self):
        """CPU time so far of every process of the server, ended ones included."""
        total_s = 0.0
        root = psutil.Process(self.pid)
        for process in [root, *root.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                total_s += sum(process.cpu_times()[:4])
        return total_s


@pytest.fixture(scope="session")
def ahead():
    """A block that runs ahead of everything else on the machine; without the right to that it changes nothing.

    Linux weighs sessions against each other first and nice values only inside one, so the sessions of this
    process and of all that it started are raised.
    """

    @contextlib.contextmanager
    def raised():
        _weigh_sessions(-20)
        try:
            yield
        finally:
            _weigh_sessions(0)

    return raised


def _weigh_sessions(nice):
    own = psutil.Process()
    for process in [own, *own.children(recursive=True)]:
        with contextlib.suppress(OSError):
            Path(f"/proc/{process.pid}/autogroup").write_text(str(nice))


@pytest.fixture(scope="session")
def one_thread():
    """Every server's environment: no torch call uses more than one thread."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


@pytest.fixture
def start_perfkit(one_thread):
    """A block with our server at some settings; gives the contestant and the service."""

    @contextlib.contextmanager
    def started(model, **settings):
        with launch(model=model, **settings) as service:
            yield Contestant(url=service.predict_url, pid=service.pid, cpus=_server_cpus(model)), service

    return started


@pytest.fixture
def start_peer(one_thread, tmp_path):
    """A block with a peer, run by the Python that an environment variable names; skips when it names none."""

    @contextlib.contextmanager
    def started(variable, script, network, *words, path="/predict", body=BODY):
        python = os.environ.get(variable) or pytest.skip(f"{script} is not installed: set {variable} to its Python")
        port, cpus = _free_port(), _server_cpus(network)
        command = ["taskset", "-c", ",".join(map(str, cpus)), python, PEERS / f"{script}.py", port, network, *words]
        with (tmp_path / f"{script}.log").open("ab") as log:
            child = children.spawn(
                [str(word) for word in command],
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        try:
            contestant = Contestant(url=f"http://127.0.0.1:{port}{path}", pid=child.pid, cpus=cpus, body=body)
            _await_answer(contestant, child, tmp_path / f"{script}.log")
            yield contestant
        finally:
            _stop_tree(child)

    return started


def _server_cpus(model):
    return place(model).server_cpus or tuple(sorted(os.sched_getaffinity(0)))


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _await_answer(contestant, child, log):
    request = urllib.request.Request(contestant.url, contestant.body.encode(), {"Content-Type": "application/json"})
    until_ns = REAL_CLOCK.now_ns() + START_S * NS_PER_S
    while True:
        try:
            with urllib.request.urlopen(request, timeout=START_S) as reply:
                return reply.read()
        except OSError as error:
            # A peer does not say when it is ready: asking is the only way to know.
            if child.poll() is not None or REAL_CLOCK.now_ns() > until_ns:
                pytest.fail(f"{contestant.url} does not answer: {error}; {log.read_text()}")
            REAL_CLOCK.sleep_until(REAL_CLOCK.now_ns() + NS_PER_S // 5)


def _stop_tree(child):
    """End a peer with its workers, which some leave behind."""
    with contextlib.suppress(psutil.NoSuchProcess):
        workers = psutil.Process(child.pid).children(recursive=True)
        children.stop(child)
        for worker in workers:
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.kill()


@pytest.fixture
def drive(ahead, tmp_path):
    """Load a contestant with wrk: one connection a user, the MLP's payload, the generator's core where it has one."""
    wrk = shutil.which("wrk") or pytest.skip("needs wrk")
    script = tmp_path / "post.lua"

    def driven(contestant, concurrency, seconds, warm_up_s=1):
        lines = ["wrk.method = 'POST'", f"wrk.body = '{contestant.body}'"]
        script.write_text("\n".join([*lines, "wrk.headers['Content-Type'] = 'application/json'\n"]))
        words = [wrk, "-t1", f"-c{concurrency}", "--timeout", "20s", "--latency", "-s", str(script), contestant.url]
        if _generator_cpu(contestant):
            context = ahead()
        else:  # raised threads that wake at once on two cores would queue on one while others hold the next
            context = contextlib.nullcontext()
            _await_calm()
        with context:
            _run_wrk(contestant, [*words, f"-d{warm_up_s}s"])
            return _measure(contestant, [*words, f"-d{seconds}s"])

    return driven


def _await_calm():
    """Wait for others on this machine to pause, but not for ever."""
    until_ns = REAL_CLOCK.now_ns() + PATIENCE_S * NS_PER_S
    is_calm = False
    while not is_calm and REAL_CLOCK.now_ns() < until_ns:
        busy_s, started_ns = _busy_s(), REAL_CLOCK.now_ns()
        REAL_CLOCK.sleep_until(started_ns + NS_PER_S)
        is_calm = (_busy_s() - busy_s) * NS_PER_S / (REAL_CLOCK.now_ns() - started_ns) < CALM_CORES


def _measure(contestant, words):
    cpu_s, busy_s = contestant.cpu_s(), _busy_s()
    started_ns = REAL_CLOCK.now_ns()
    printed, wrk_cpu_s = _run_wrk(contestant, words)
    wall_s = (REAL_CLOCK.now_ns() - started_ns) / NS_PER_S
    cpu_s = contestant.cpu_s() - cpu_s
    return Phase(
        count=int(re.search(r"(\d+) requests in", printed)[1]),
        wall_s=wall_s,
        p50_s=_seconds(re.search(r"50% +(\S+)", printed)[1]),
        cpu_s=cpu_s,
        foreign_cores=max(0.0, _busy_s() - busy_s - cpu_s - wrk_cpu_s) / wall_s,
        has_own_cores=bool(_generator_cpu(contestant)),
    )


def _busy_s():
    """Seconds that all cores together have been busy since the machine started."""
    times = psutil.cpu_times()
    return sum(times) - times.idle - times.iowait - times.guest - times.guest_nice


def _generator_cpu(contestant):
    """The core that the server leaves to the generator, if any."""
    left = set(os.sched_getaffinity(0)) - set(contestant.cpus)
    return str(max(left)) if left else ""


def _run_wrk(contestant, words):
    cpu = _generator_cpu(contestant)
    # Where server and generator share all cores, the generator goes first: it is the measuring device.
    first = ["taskset", "-c", cpu] if cpu else ["nice", "-n", "-10"]
    process = subprocess.Popen([*first, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    printed = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, printed
    assert not re.search(r"Non-2xx|Socket errors", printed), printed
    return printed, used.ru_utime + used.ru_stime


def _seconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 1e-6, "ms": 1e-3, "s": 1}[unit]


@pytest.fixture
def rounds():
    """Play a round, a function that maps names to phases, until enough of them are fair; returns those."""

    def repeated(play, count, unfair=lambda phases: None):
        fair, foreign_cores = [], []
        for number in range(1, TRIES_A_ROUND * count + 1):
            phases = play()
            foreign_cores += [phase.foreign_cores for phase in phases.values()]
            if verdict := _disturbance(phases) or unfair(phases):
                print(f"\n  round {number} does not count: {verdict}", end="")
                continue
            fair.append(phases)
            if len(fair) == count:
                print(f"\n  others on this machine used {statistics.median(foreign_cores):.2f} cores (median)")
                return fair
        return pytest.fail(f"only {len(fair)} of {TRIES_A_ROUND * count} rounds were fair; run it on a quieter machine")

    return repeated


def _disturbance(phases):
    disturbed = [f"{phase.foreign_cores:.2f} beside {name}" for name, phase in phases.items() if phase.is_disturbed]
    return f"others used too many cores ({', '.join(disturbed)})" if disturbed else None


@pytest.fixture
def show():
    """Print a table of rounds, one row a figure: each round's value and the median, which is returned by name."""

    def shown(heading, figures, pattern):
        width = max(map(len, figures))
        load = " ".join(f"{value:.1f}" for value in os.getloadavg())
        print(f"\n{heading} (load average {load}; rounds, then their median)")
        medians = {name: statistics.median(values) for name, values in figures.items()}
        for name, values in figures.items():
            cells = "".join(f"{format(value, pattern):>10}" for value in [*values, medians[name]])
            print(f"  {name:{width}}{cells}")
        return medians

    return shown


@pytest.fixture
def judge():
    """Print a claim with pass or FAIL, and fail the test with it."""

    def judged(claim, value, *, most=None, least=None):
        is_met = value <= most if least is None else value >= least
        goal = f"at most {most}" if least is None else f"at least {least}"
        verdict = f"{claim}: {value:.3g}, goal {goal}: {'pass' if is_met else 'FAIL'}"
        print(f"  {verdict}")
        assert is_met, verdict

    return judged


@pytest.fixture
def run_python(one_thread):
    """Run a Python program and return what it prints."""

    def run(*words):
        return subprocess.run([sys.executable, *words], check=True, capture_output=True, text=True, cwd=ROOT).stdout

    return run
