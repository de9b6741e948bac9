"""Class files whose constants name other classes afterwards, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest
from mockraft.kafka import moved_classes
from mockraft.kafka.moved_classes import adapt, renamed

pytestmark = pytest.mark.real_kafka

OLD, NEW, USER = "org/apache/kafka/old", "org/apache/kafka/there", "org/apache/kafka/user"
SOURCES = {
    f"{OLD}/Moved": "public class Moved { public static class Inner { public int at; } public static long of(int n) "
    "{ return n * 4294967296L; } }",
    f"{OLD}/MovedNot": "public class MovedNot { }",
    f"{USER}/Uses": f"""
        import {OLD.replace("/", ".")}.*;
        public class Uses {{
            static <T extends Moved.Inner> long sum(int n, T inner, Moved[] all, boolean b, MovedNot stays) {{
                return Moved.of(n) + 1099511627776L + (long) 2.5;
            }}
            public static void main(String[] given) {{
                Moved.Inner inner = new Moved.Inner();
                System.out.println(sum(3, inner, new Moved[0], true, new MovedNot()) + " é" + inner.getClass());
            }}
        }}""",
}


def compiled(folder: Path, sources: dict[str, str]) -> Path:
    """Compile classes by name, each in its package; return the jar."""
    paths = []
    for name, source in sources.items():
        path = folder / f"{name}.java"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"package {name.rpartition('/')[0].replace('/', '.')};\n{source}")
        paths.append(path)
    subprocess.run(["javac", "-encoding", "UTF-8", "-d", str(folder), *map(str, paths)], check=True)
    jar = folder.with_suffix(".jar")
    with ZipFile(jar, "w") as archive:
        for path in sorted(folder.rglob("*.class")):
            archive.write(path, path.relative_to(folder))
    return jar


def only(jar: Path, target: Path, package: str) -> Path:
    """Copy the classes of one package."""
    with ZipFile(jar) as source, ZipFile(target, "w") as archive:
        for name in source.namelist():
            if name.startswith(package):
                archive.writestr(name, source.read(name))
    return target


def test_classes_link_with_a_release_that_moved_others(tmp_path: Path) -> None:
    everything = compiled(tmp_path / "older", SOURCES)
    older, tests = only(everything, tmp_path / "old.jar", OLD), only(everything, tmp_path / "test.jar", USER)
    newer = compiled(tmp_path / "newer", {f"{NEW}/Moved": SOURCES[f"{OLD}/Moved"]})
    rest = tmp_path / "rest.jar"
    expected = {f"{OLD}/{name}": f"{NEW}/{name}" for name in ("Moved", "Moved$Inner")}
    assert adapt([tests], [older], [newer], rest) == expected
    with ZipFile(rest) as archive:
        assert archive.namelist() == [f"{OLD}/MovedNot.class"]
    java = shutil.which("java")
    assert java is not None
    class_path = ":".join(map(str, (tests, newer, rest)))
    command = [java, "-Dfile.encoding=UTF-8", "-cp", class_path, f"{USER}/Uses".replace("/", ".")]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"class {NEW}/Moved$Inner".replace("/", ".") in ended.stdout
    assert str(3 * 4294967296 + 1099511627776 + 2) in ended.stdout


def test_calls_of_a_method_with_another_type_go_to_a_static_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, instead = f"{OLD}/Owner", f"{NEW}/Instead"
    monkeypatch.setattr(
        moved_classes,
        "CHANGED",
        {(owner, "configs", "()Ljava/util/Properties;"): instead, ("a/B", "configs", "()V"): ""},
    )
    calls = f"""
        import {OLD.replace("/", ".")}.Owner;
        public class Calls {{
            public static void main(String[] given) {{
                Class<?>[] kinds = {{Owner.class}};
                var owner = (Owner) java.lang.reflect.Proxy.newProxyInstance(
                    Calls.class.getClassLoader(), kinds, (proxy, method, args) -> java.util.Map.of("at", "there"));
                System.out.println(1099511627776L + owner.configs().getProperty("at") + owner.configs().getClass());
            }}
        }}"""
    body = f"""public static java.util.Properties configs({owner.replace("/", ".")} owner) {{
        var configs = new java.util.Properties();
        configs.putAll(owner.configs());
        return configs;
    }}"""
    older = {owner: "public interface Owner { java.util.Properties configs(); }", f"{USER}/Calls": calls}
    newer = {
        owner: "public interface Owner { java.util.Map<String, String> configs(); }",
        instead: f"public class Instead {{ {body} }}",
    }
    everything = compiled(tmp_path / "older", older)
    tests = only(everything, tmp_path / "test.jar", USER)
    jar = compiled(tmp_path / "newer", newer)
    assert adapt([tests], [only(everything, tmp_path / "old.jar", OLD)], [jar], tmp_path / "rest.jar") == {}
    command = ["java", "-cp", f"{tests}:{jar}", f"{USER}/Calls".replace("/", ".")]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout == "1099511627776thereclass java.util.Properties\n"


def test_class_file_without_such_names_stays_as_it_is() -> None:
    class_file = b"\xca\xfe\xba\xbe\0\0\0\x34\0\x03\x01\0\x05org/a\x07\0\x01rest"
    assert renamed(class_file, {}) == class_file
    assert renamed(class_file, {"org": "gone"}) == class_file
    assert renamed(class_file, {"org/a": "there/b"}) == class_file.replace(b"\0\x05org/a", b"\0\x07there/b")
