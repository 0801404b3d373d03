import atexit
import signal
import sys
import threading

import fingerprint
import torch

torch.manual_seed(46)
w = torch.randn(3, requires_grad=True)


def say_goodbye():
    w.square().sum().backward()
    fingerprint.show(w)
    print("goodbye", file=sys.stderr)


atexit.register(say_goodbye)
threading.excepthook = lambda arguments: print("thread failed:", arguments.exc_value, file=sys.stderr)
for _ in range(3):
    w.exp().sum().backward()
thread = threading.Thread(target=lambda: w.matmul(torch.ones(4)))
thread.start()
thread.join()
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, sys.excepthook is sys.__excepthook__)
print(len(threading.enumerate()), sys.argv[1:], sys.getrecursionlimit(), __name__, __spec__)
