"""The inputs that fuzzing has found break no reader; new ones are found with `make fuzz`."""

from tools.fuzzing.corpus import file_of, read_corpus
from tools.fuzzing.targets import TARGETS

from ...rows import each_row

CORPUS_BYTES_MAX = 150_000


@each_row("target", sorted(TARGETS))
def test_committed_inputs_break_no_reader(target: str) -> None:
    inputs = read_corpus(target)
    assert inputs
    for data in inputs:
        try:
            TARGETS[target](data)
        except Exception as error:
            raise AssertionError(f"{target} breaks on {data.hex()}") from error


def test_the_corpus_stays_small() -> None:
    assert sum(file_of(target).stat().st_size for target in TARGETS) < CORPUS_BYTES_MAX
