"""What Spark's errors come from: one line out of pages of Java, Python and gRPC."""

from __future__ import annotations

import re
from collections.abc import Iterator

_GRPC = re.compile(r"status = StatusCode\.(\w+)\s+details = \"(.*?)\"\s*(?:debug_error_string|>|$)", re.DOTALL)
_WORKER = re.compile(r"Error from python worker:\s*\n(.*?)(?:\nPYTHONPATH was:|\Z)", re.DOTALL)
_TRACEBACK = "Traceback (most recent call last):"
_RAISED = re.compile(
    r"^[ \t]*((?:[A-Za-z_][\w.]*)(?:Error|Exception|Interrupt|Exit|Warning|Failure)\b.*)$", re.MULTILINE
)
_CAUSED = re.compile(r"^Caused by: (.+)$", re.MULTILINE)
_JAVA_CLASS = re.compile(r"^(?:[a-z_]\w*\.)+([A-Z]\w*)")
_LONGEST = 500


def cause_of(error: BaseException) -> str:
    r"""Returns what an error of Spark or of its client comes from, in a line: the innermost of what is known.

    That is the last line of a Python worker's traceback, the status of an RPC, or the last "Caused by" of Java.

    Example:
        >>> cause_of(RuntimeError("Job aborted\nCaused by: java.io.IOException: No space left on device\n\tat x"))
        'IOException: No space left on device'
    """
    texts = [str(one) for one in chain(error)]
    for find in (_of_worker, _of_rpc, _of_java):
        for text in texts:
            if (found := find(text)) is not None:
                return _short(found)
    lines = str(error).strip().splitlines()
    return _short(f"{type(error).__name__}: {lines[0] if lines else 'no message'}")


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yields an error and those that it was raised from, or in the handling of which it was, innermost last."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or one.__context__


def _of_worker(text: str) -> str | None:
    """Returns what the Python of a worker, or of what starts workers, said last."""
    if (section := _WORKER.search(text)) is not None:
        lines = [line.strip() for line in section[1].splitlines() if line.strip()]
        return _after_program(lines[-1]) if lines else None
    if _TRACEBACK not in text:
        return None
    raised = _RAISED.search(text[text.rindex(_TRACEBACK) :])
    return None if raised is None else raised[1].strip()


def _after_program(line: str) -> str:
    """Returns what an interpreter says without its own path before it."""
    program, _, said = line.partition(": ")
    return said if "/" in program and said else line


def _of_rpc(text: str) -> str | None:
    found = _GRPC.search(text)
    return None if found is None else f"{found[1]}: {found[2].strip()}"


def _of_java(text: str) -> str | None:
    found = _CAUSED.findall(text)
    return _JAVA_CLASS.sub(r"\1", found[-1]) if found else None


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
