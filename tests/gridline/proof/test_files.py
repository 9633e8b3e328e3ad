import re
from collections.abc import Callable

import pytest

from gridline.batches.tables import Batch
from gridline.db.work import unit_of_work
from gridline.files import keeping
from gridline.files.tables import File
from gridline.keeper.figures import measure
from gridline.proof import objects, platform, results
from gridline.telemetry import metrics
from tests.gridline.proof.sound import SoundBench

pytestmark = pytest.mark.thorough

Change = Callable[[list[bytes]], list[bytes]]


def files_of(sound: SoundBench) -> dict[str, File]:
    """The completed batch's files by what they are to it."""
    with unit_of_work() as work:
        batch = work.session.query(Batch).filter_by(status="completed").one()
        ids = {"input": batch.input_file_id, "output": batch.output_file_id, "error": batch.error_file_id}
        return {kind: work.session.get_one(File, file_id) for kind, file_id in ids.items()}


def test_a_sound_platform_proves_with_its_files(sound: SoundBench) -> None:
    """Every object is there, and the one batch with results is charged what its output file comes to."""
    found = platform.prove_with_files()
    assert (found.broken, found.batches) == ([], 1)


def test_the_usage_of_responses_and_messages_is_read(sound: SoundBench) -> None:
    """A charge is computed again from whatever names the endpoint's usage has."""
    sound.completed(names=("input_tokens", "output_tokens"))
    found = platform.prove_with_files()
    assert (found.broken, found.batches) == ([], 2)


@pytest.mark.parametrize("everything", [True, False])
def test_an_object_that_is_gone_or_cut_is_seen(sound: SoundBench, *, everything: bool) -> None:
    """A visible file without its object, or with a shorter one, is named with both sizes."""
    files = files_of(sound)
    sound.store.delete(files["output"].object_key)
    sound.store.replace(files["input"].object_key, b"x")
    broken = objects.prove(everything=everything)
    assert len(broken) == 2
    assert [one for one in broken if files["output"].id in one and one.endswith("is missing")]
    assert [one for one in broken if files["input"].id in one and one.endswith("has 1")]


def test_a_deleted_file_needs_no_object(sound: SoundBench) -> None:
    """What a customer deleted is neither missed nor read again."""
    files = files_of(sound)
    with unit_of_work() as work:
        keeping.delete(work, account_id=sound.account_id, file_id=files["output"].id, actor="token:t")
    sound.store.delete(files["output"].object_key)
    found = platform.prove_with_files()
    assert (found.broken, found.batches) == ([], 0)


def more_tokens(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b'"prompt_tokens": 10', b'"prompt_tokens": 11') for line in lines]


CHANGES: dict[str, tuple[str, Change, str]] = {
    "a dearer line": ("output", more_tokens, "its output file comes to"),
    "lines in another order": ("output", lambda lines: lines[::-1], "has no result for request 1"),
    "a line twice": ("output", lambda lines: [lines[0], *lines], "has no result for request 2"),
    "a line too many": ("error", lambda lines: [*lines, *lines], "has more results than requests"),
    "a lost line": ("output", lambda lines: lines[:1], "has no result for request 2"),
    "what is no JSON": ("output", lambda lines: [b"{", *lines[1:]], "has no result for request 1"),
    "other bytes": (
        "output",
        lambda lines: [line.replace(b"req_", b"rek_") for line in lines],
        "whose bytes",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_results_that_were_changed_are_seen(sound: SoundBench, name: str) -> None:
    """Charge, order, counts and bytes are all taken from the files again, to the last nano-credit."""
    kind, change, told = CHANGES[name]
    file = files_of(sound)[kind]
    lines = sound.store.read(file.object_key).splitlines(keepends=True)
    sound.store.replace(file.object_key, b"".join(change(lines)))
    broken = results.prove().broken
    assert [one for one in broken if told in one]
    assert not [one for one in broken if re.search(r"\bc\d\b", one)], "custom_ids are the customer's"


def test_a_proof_leaves_a_record_that_metrics_show(sound: SoundBench) -> None:
    """How many promises the last proof found broken, and when it was made, reach the keeper's figures."""
    assert platform.prove_and_record() == []
    measure()
    now = sound.clock.now().timestamp()
    assert (metrics.PROOF_BROKEN._value.get(), metrics.PROOF_TIME._value.get()) == (0, now)
    sound.clock.advance(hours=1)
    sound.store.delete(files_of(sound)["output"].object_key)
    assert len(platform.prove_and_record()) == 1
    measure()
    assert (metrics.PROOF_BROKEN._value.get(), metrics.PROOF_TIME._value.get()) == (1, now + 3600)
    with unit_of_work() as work:
        last = platform.last(work)
    assert last is not None
    assert last.sentences[0].endswith("is missing")
