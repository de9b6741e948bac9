"""Send the same random requests to two controllers, and show the fewest that they answer differently.

Ids, epochs and offsets differ between two controllers, so steps contain symbols for them (`steps`), and each side
translates symbols and its own values (`names`, `side`). `model` is the world that the metadata log describes;
`generator` draws requests that make sense in it, and `mutations` makes some of them slightly invalid. `pair` sends a
step to both controllers and compares responses and records; `run` looks for a difference and shrinks its steps to a
small sequence that still shows it; `known` leaves out requests with a known difference.
"""

import argparse
import json
from pathlib import Path

from mockraft.conformance.target import CannotConnectError

from .pair import pair_of
from .run import fuzz, replay
from .steps import FuzzStep


def main() -> None:
    """Run the command; the exit code is 1 for a difference and 2 for controllers that cannot be compared."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.differential", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--bootstrap", required=True, help="host:port of a new controller")
    parser.add_argument("--against", required=True, help="host:port of another, as a rule Kafka's")
    parser.add_argument("--seed", type=int, default=1, help="of the first 250 requests; the next have the next one")
    parser.add_argument("--steps", type=int, default=1000, help="how many requests (default: 1000)")
    parser.add_argument("--save", type=Path, help="write the steps that show a difference to this file")
    parser.add_argument("--replay", type=Path, help="take the steps of this file instead")
    args = parser.parse_args()
    try:
        with pair_of(args.bootstrap, args.against) as pair:
            if args.replay is None:
                found = fuzz(pair, args.seed, args.steps)
            else:
                lines = args.replay.read_text().splitlines()
                found = replay(pair, args.seed, [FuzzStep.from_json(json.loads(line)) for line in lines])
    except (CannotConnectError, ValueError) as error:
        parser.error(str(error))
    if found is None:
        print("no difference")
        return
    print(found)
    if args.save is not None:
        args.save.write_text("".join(f"{step}\n" for step in found.steps))
    raise SystemExit(1)


if __name__ == "__main__":
    main()
