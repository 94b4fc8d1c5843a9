from collections.abc import Callable, Sequence

__version__: str

def call(
    arguments: Sequence[str],
    interpreter: Sequence[str],
    progress: Callable[[str, str], object] | None,
) -> tuple[int, str, list[str], tuple[str, str | None] | None]: ...
def run(arguments: Sequence[str], interpreter: Sequence[str]) -> int: ...
