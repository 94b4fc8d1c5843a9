from collections.abc import Callable, Sequence

__version__: str

def call(
    arguments: Sequence[str],
    interpreter: Sequence[str],
    progress: Callable[[str, str], object] | None,
) -> tuple[int, str, list[str], tuple[str, str | None] | None]: ...
def run(arguments: Sequence[str], interpreter: Sequence[str]) -> int: ...

class State:
    reward: float
    terminated: bool
    truncated: bool
    costs: list[int]
    candidate_costs: list[int]
    rules: list[str]
    counts: list[float]
    differences: list[list[float]]
    left_out: int

class Environment:
    types: int
    def __init__(
        self,
        model: str,
        prices: str | None,
        shapes: Sequence[str],
        binds: Sequence[tuple[str, int]],
        horizon: int,
        feedback: int,
        slots: int,
        shaping: str,
        linear_sizes: bool,
    ) -> None: ...
    def reset(self) -> State: ...
    def step(self, action: int) -> State: ...
    def graphs(self) -> list[tuple[bytes, list[tuple[int, int]], list[list[float]]]]: ...
    def best(self) -> tuple[int, list[str]]: ...
    def write(self, path: str) -> None: ...
