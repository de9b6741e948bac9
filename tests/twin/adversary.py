"""An adversary who has all original names, looks for them and their parts in bytes, and decodes what may hide them."""

import base64
import html
import json
import random
import re
import urllib.parse
import zlib
from collections.abc import Iterable, Iterator

_SHAPES = (
    # Telephone, account and card numbers, dates, versions, addresses
    *("0##-###-##-##", "8##-555-###-1", "41-44-###-##", "+41 ## ### ## ##", "(0##) ###-####", "00############"),
    *("DE####################", "####-####-####-####", "###-##-####", "20##-11-26", "26.11.20##"),
    *("1.2#.###", "v2.##.#-rc#"),
    *("999.888.777.###", "10.2#.3#.4#", "ip-10-2#-3#-4#.~", "10.2#.3#.4#.nip.io", "fe80::##:1##a", "192.168.0#.###"),
    # Ids, and numbers in names
    *("~_300_20_10_5", "~-256-1-1-1-^", "~-12", "AC-20##-7##3#-X", "~#~", "7#", "x#", "~/^:##", "0.0.0.#"),
    # Names of topics, groups, hosts, users, files
    *("~.^.v2", "~_^", "~-^-prod-eu-west-1", "~.^.example.com", "^@~.example", "CN=^,OU=~,O=~ AG", "/srv/~/^.jks"),
    *("https://^:~@~.example/^?q=~", "~ ^", "__~", "~", "User:^", "*.~.^", "~" * 20),
    # Case, scripts, characters with a meaning
    *("~X^", "UPPER", "Title", "größe-^", "顧客_~_注文", "Клиент##~", "हिन्दी-^", "аcme^", "~-Ünï-^", "^\U0001f680~"),
    *("o'~", '"^"', "<b>~</b>", "~\t^", "~%20^", "\\u0041~", "~\n", "xn--~", "=?utf-8?q?~?=", "~\0^"),
)
_SYLLABLES = [each + vowel for each in ("b", "d", "f", "l", "m", "n", "r", "s", "v", "sch", "tr") for vowel in "aeiou"]
_PUBLIC = {"user"}
"""Words of names that are Kafka's, too."""

_CASES = (str, str.lower, str.upper, str.title, str.swapcase)


def names(count: int) -> list[str]:
    """Return different names, of all shapes in turn: `#` is a digit, `~` and `^` are words without a meaning."""
    rng = random.Random(34)
    found: dict[str, None] = {}
    while len(found) < count:
        shape = _SHAPES[len(found) % len(_SHAPES)]
        one, other = ("".join(rng.choices(_SYLLABLES, k=rng.randint(3, 4))) for _ in range(2))
        changed = {"UPPER": one.upper(), "Title": one.title() + other.title()}.get(shape, shape)
        changed = re.sub("#", lambda _: rng.choice("0123456789"), changed).replace("~", one).replace("^", other)
        found.setdefault(changed if changed not in found else changed + str(rng.randrange(10**8)))
    return [*found]


def parts(name: str) -> set[str]:
    """Return what of a name tells something alone: itself, words of four letters, five digits, also divided."""
    words = re.findall(r"[^\W\d_]{4,}", name) + re.findall(r"\d{5,}", name)
    digits = "".join(re.findall(r"\d", name))
    long_enough = {each for each in (name, *words, digits) if len(each) > 4 or (len(each) == 4 and each.isalpha())}
    return {each for each in long_enough if each.lower() not in _PUBLIC}


def forms(word: str) -> Iterator[bytes]:
    """Yield a word in each encoding."""
    data = word.encode()
    entities = "".join(f"&#{ord(each)};" for each in word)
    texts = [
        *(word, word[::-1], data.hex(), data.hex().upper(), data.hex(" "), entities, html.escape(word)),
        *(urllib.parse.quote(word, safe=""), "".join(f"%{byte:02X}" for byte in data), json.dumps(word)[1:-1]),
        *("".join(f"\\u{ord(each):04x}" for each in word), "".join(f"\\x{byte:02x}" for byte in data)),
    ]
    yield from (each.encode() for each in texts)
    yield from (word.encode(codec) for codec in ("utf-16-le", "utf-16-be", "utf-32-be", "utf-7", "punycode"))
    for encode, bits in ((base64.b64encode, 6), (base64.urlsafe_b64encode, 6), (base64.b32encode, 5)):
        for place in range(3 if bits == 6 else 5):
            whole = encode(b"\0" * place + data)
            yield whole[-(-place * 8 // bits) : (place + len(data)) * 8 // bits]


def found_in(data: bytes, words: Iterable[str]) -> set[str]:
    """Return the names that are in the bytes, or a part of which is, in any case and encoding, deflated or not."""
    everything = data + unpacked(data)
    grams = {everything[start : start + 4] for start in range(len(everything) - 3)}

    def is_there(form: bytes) -> bool:
        if len(form) < 4 or any(form[start : start + 4] not in grams for start in range(len(form) - 3)):
            return False
        return form in everything

    known: dict[str, bool] = {}
    for part in {part for word in words for part in parts(word)}:
        variants = {change(part) for change in _CASES}
        known[part] = any(is_there(form) for variant in variants for form in forms(variant))
    return {word for word in words if any(known[part] for part in parts(word))}


def unpacked(data: bytes) -> bytes:
    """Return all that a deflated stream in the bytes holds."""
    found = []
    for start in (match.start() for match in re.finditer(rb"\x1f\x8b\x08|\x78[\x01\x5e\x9c\xda]", data)):
        try:
            found.append(zlib.decompressobj(47).decompress(data[start : start + (1 << 16)], 1 << 20))
        except zlib.error:
            continue
    return b"".join(found)
