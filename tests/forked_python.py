"""The program of :attr:`tests.fork_server.ForkServer.python`: it starts some modules by a server, others by itself.

This process passes on its open files and SIGINT and SIGTERM, waits for the forked one, and ends as that did. The server
kills the forked one when this process ends. To be loaded fast, it imports nothing but built-in modules.
"""

import _signal
import _socket
import _struct
import marshal
import posix
import sys


def main(python: str, stand_in: str, forks: str, *arguments: str) -> None:
    server, module = eval(forks).get(arguments[1], (None, None)) if arguments[:1] == ("-m",) else (None, None)
    if server is None:
        posix.execv(python, [python, *arguments])
    files = [0, 1, 2, *_inherited()]
    asked = _socket.socket(_socket.AF_UNIX)
    asked.connect(server)
    environment = {name.decode(): value.decode() for name, value in posix.environ.items()}
    request = marshal.dumps((module, list(arguments[2:]), environment, posix.getcwd(), 0, stand_in))
    passed = _struct.pack(f"={len(files)}i", *files)
    asked.sendmsg([_struct.pack("=I", len(request))], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, passed)])
    asked.sendall(request)
    for file in (0, 1, *files[3:]):
        posix.close(file)
    (pid,) = _struct.unpack("=i", asked.recv(4))
    for number in (_signal.SIGINT, _signal.SIGTERM):
        _signal.signal(number, lambda number, _: posix.kill(pid, number))
    (code,) = _struct.unpack("=i", asked.recv(4))
    if code < 0:
        if code != -_signal.SIGKILL:
            _signal.signal(-code, _signal.SIG_DFL)
        posix.kill(posix.getpid(), -code)
    posix._exit(code)


def _inherited() -> list[int]:
    """The open files beside the standard streams."""
    inherited = []
    for file in map(int, posix.listdir("/proc/self/fd")):
        try:
            posix.fstat(file)
        except OSError:  # the list itself, which is closed
            continue
        if file > 2:
            inherited.append(file)
    return inherited


main(*sys.argv[1:])
