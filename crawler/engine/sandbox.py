"""Confines a process that reads the bytes of strangers: it reads files that programs consist of, and does nothing else.

A parser process gets no variable of the environment that it does not need (:func:`environment`), and confines itself
before its first document (:func:`confine`), by what the kernel has:

* ``no_new_privs``: no program that it starts could get further rights (``prctl(2)``).
* Landlock (``landlock(7)``): it reads the files of Python and of the libraries, and no others. It writes, makes and
  executes none. From version 4 on it opens no TCP connection, from version 6 on it sends signals only to itself.
* A seccomp filter (``seccomp(2)``): it opens no socket and no file for writing, starts no program, and looks into no
  other process.

On other systems than Linux nothing confines it but the limits of time and memory.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

#: The variables of the environment that a parser process needs. The name of each secret is another one.
_NEEDED = frozenset({
    *("HOME", "LANG", "LANGUAGE", "PATH", "SYSTEMROOT", "TZ"),
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
    *("PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONOPTIMIZE", "PYTHONPATH"),
    *("PYTHONPYCACHEPREFIX", "PYTHONSAFEPATH", "PYTHONUSERBASE", "PYTHONUTF8", "PYTHONWARNINGS"),
})  # fmt: skip
_NEEDED_PREFIX = "LC_"
# glibc then returns the memory of a large tree to the system, but keeps enough for the tree of an ordinary page, which
# saves nine in ten page faults. Other C libraries ignore these.
_MALLOC = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(4 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(8 << 20),
    "MALLOC_TOP_PAD_": str(1 << 20),
}

# prctl(2)
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _PR_GET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 21, 2

# landlock(7). The numbers of these system calls are the same on all architectures but Alpha.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
#: All rights to files that a version of Landlock can take away, by version. Later versions have none to add.
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_TCP_RIGHTS, _TCP_SINCE = 0b11, 4  # bind, connect
_SCOPES, _SCOPES_SINCE = 0b11, 6  # sockets with abstract names, signals

#: The folders of shared libraries, and files that the C library looks at.
_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/dev/urandom")


class Confinement(NamedTuple):
    """The mechanisms that confine a process. ``landlock`` is the version of Landlock, and 0 if the kernel has none."""

    no_new_privs: bool = False
    landlock: int = 0
    seccomp: bool = False

    def missing(self) -> list[str]:
        """The mechanisms that the machine lacks to confine a process to its files and to the calls that it needs."""
        return [name for name, has in (("Landlock", self.landlock), ("seccomp", self.seccomp)) if not has]

    def __str__(self) -> str:
        named = ("no new privileges" if self.no_new_privs else "", f"Landlock {self.landlock}" if self.landlock else "")
        return ", ".join(filter(None, (*named, "seccomp" if self.seccomp else ""))) or "nothing"


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """The environment of a parser process: what it needs of the variables ``given``, and how it allocates memory."""
    needed = {name: value for name, value in given.items() if name in _NEEDED or name.startswith(_NEEDED_PREFIX)}
    return needed | _MALLOC


def available() -> Confinement:
    """The mechanisms by which this machine can confine a process."""
    if sys.platform != "linux":
        return Confinement()
    libc = _Libc()
    has_seccomp = os.uname().machine in _ARCHITECTURES and libc.prctl(_PR_GET_SECCOMP) >= 0
    return Confinement(True, max(0, libc.syscall(_CREATE_RULESET, None, 0, _VERSION)), has_seccomp)


def confine() -> Confinement:
    """Confine this process for good, by all that the kernel has. Files that are open stay open."""
    found = available()
    if not found.no_new_privs:
        return found
    libc = _Libc()
    is_bound = libc.prctl(_PR_SET_NO_NEW_PRIVS, 1) == 0
    return Confinement(
        is_bound,
        found.landlock if found.landlock and _restrict_files(libc, found.landlock) else 0,
        found.seccomp and _filter_calls(libc),
    )


def _readable() -> Iterator[str]:
    """The files and folders of Python, its libraries, and this program. The working folder is none of them."""
    yield from _SYSTEM
    yield str(Path(__file__).parents[1])
    yield from {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    here = os.path.realpath(os.curdir)
    yield from (path for path in sys.path if path and os.path.realpath(path) != here)


class _Libc:
    """The two functions of the C library that this module calls."""

    def __init__(self) -> None:
        import ctypes

        self._ctypes: Any = ctypes
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.syscall.restype = ctypes.c_long

    def prctl(self, option: int, first: Any = 0, second: Any = None) -> int:
        return int(self._libc.prctl(option, *map(self._argument, (first, second, 0, 0))))

    def syscall(self, number: int, *arguments: Any) -> int:
        return int(self._libc.syscall(self._ctypes.c_long(number), *map(self._argument, arguments)))

    def buffer(self, data: bytes) -> Any:
        return self._ctypes.create_string_buffer(data, len(data))

    def address_of(self, buffer: Any) -> int:
        return int(self._ctypes.addressof(buffer))

    def _argument(self, value: Any) -> Any:
        return self._ctypes.c_long(value) if isinstance(value, int) else value


# --- Landlock -------------------------------------------------------------------------------------


def _restrict_files(libc: _Libc, version: int) -> bool:
    rights = [_FILE_RIGHTS[min(version, max(_FILE_RIGHTS))]]
    if version >= _TCP_SINCE:
        rights.append(_TCP_RIGHTS)
    if version >= _SCOPES_SINCE:
        rights.append(_SCOPES)
    handled = libc.buffer(struct.pack(f"={len(rights)}Q", *rights))
    rules = libc.syscall(_CREATE_RULESET, handled, 8 * len(rights), 0)
    if rules < 0:
        return False
    try:
        for path in dict.fromkeys(map(os.path.realpath, _readable())):
            _permit(libc, rules, path)
        return libc.syscall(_RESTRICT_SELF, rules, 0) == 0
    finally:
        os.close(rules)


def _permit(libc: _Libc, rules: int, path: str) -> None:
    """Permit that ``path`` and all below it are read, if it is there."""
    with suppress(OSError):
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            rights = _READ_FILE | _READ_DIR if os.path.isdir(path) else _READ_FILE
            libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, libc.buffer(struct.pack("=Qi", rights, opened)), 0)
        finally:
            os.close(opened)


# --- seccomp --------------------------------------------------------------------------------------


class _Architecture(NamedTuple):
    audit: int  # as linux/audit.h names it
    #: The calls that reach other processes and the network, and those that change a folder or file by its path.
    refused: tuple[int, ...]
    opening: dict[int, int]  # open and openat, with the number of the argument that has the flags


# socket, execve, execveat, ptrace, process_vm_readv, process_vm_writev, pidfd_getfd, io_uring_setup, openat2; creat
_X86_64 = (41, 59, 322, 101, 310, 311, 438, 425, 437, 85)
_AARCH64 = (198, 221, 281, 117, 270, 271, 438, 425, 437)
# truncate, rename, mkdir, rmdir, link, unlink, symlink, chmod, mknod, and their forms that begin at a folder
_CHANGING_X86_64 = (76, 82, 83, 84, 86, 87, 88, 90, 133, 258, 259, 263, 264, 265, 266, 268, 316)
_CHANGING_AARCH64 = (33, 34, 35, 36, 37, 38, 45, 53, 276)
_ARCHITECTURES = {
    "x86_64": _Architecture(0xC000003E, (*_X86_64, *_CHANGING_X86_64), {2: 1, 257: 2}),
    "aarch64": _Architecture(0xC00000B7, (*_AARCH64, *_CHANGING_AARCH64), {56: 2}),
}
_X32_CALLS = 1 << 30  # the calls of x32 on x86_64 have numbers from this one on

# Instructions of the filter (linux/bpf_common.h), and the offsets of what they load (linux/seccomp.h).
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_CALL, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_FOR_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def _filter_calls(libc: _Libc) -> bool:
    program = _program(_ARCHITECTURES[os.uname().machine])
    code = libc.buffer(b"".join(struct.pack("=HBBI", *each) for each in program))
    filter_ = libc.buffer(struct.pack("=H6xQ", len(program), libc.address_of(code)))
    return libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, filter_) == 0


def _program(architecture: _Architecture) -> list[tuple[int, int, int, int]]:
    """The filter: instructions with how many to skip if true and if false, and a value."""
    tests = [(_IF_AT_LEAST, _X32_CALLS), *((_IF_EQUAL, call) for call in architecture.refused)]
    rest = []
    for call, argument in architecture.opening.items():
        rest += [(_IF_EQUAL, 0, 3, call), (_LOAD, 0, 0, _ARGUMENTS + 8 * argument)]
        rest += [(_IF_ANY_BIT, 0, 1, _FOR_WRITING), (_RETURN, 0, 0, _REFUSE)]
    rest += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]
    last = len(tests) + len(rest) - 1
    return [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_IF_EQUAL, 1, 0, architecture.audit),
        (_RETURN, 0, 0, _REFUSE),
        (_LOAD, 0, 0, _CALL),
        *((test, last - 1 - number, 0, value) for number, (test, value) in enumerate(tests)),
        *rest,
    ]
