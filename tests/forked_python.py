"""The program of :attr:`tests.fork_server.ForkServer.python`: it starts one module by the server, others by itself.

This process passes on its standard streams, waits for the forked one, and ends as that did. The server kills the
forked one when this process ends. To be loaded fast, it imports nothing but built-in modules.
"""

import _signal
import _socket
import _struct
import marshal
import posix
import sys


def main(python: str, its_python: str, server: str, module: str, *arguments: str) -> None:
    if arguments[:2] != ("-m", module):
        posix.execv(python, [python, *arguments])
    asked = _socket.socket(_socket.AF_UNIX)
    asked.connect(server)
    environment = {name.decode(): value.decode() for name, value in posix.environ.items()}
    request = marshal.dumps((list(arguments[2:]), environment, posix.getcwd(), 0, its_python))
    streams = _struct.pack("=3i", 0, 1, 2)
    asked.sendmsg([_struct.pack("=I", len(request))], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    asked.sendall(request)
    for stream in (0, 1):
        posix.close(stream)
    asked.recv(4)  # the number of the process
    (code,) = _struct.unpack("=i", asked.recv(4))
    if code < 0:
        _signal.signal(-code, _signal.SIG_DFL)
        posix.kill(posix.getpid(), -code)
    posix._exit(code)


main(*sys.argv[1:])
