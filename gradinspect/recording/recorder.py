"""Record during the forward pass which module call and source line made each node.

NOTE [Windows of the sequence number]
torch numbers the nodes of a thread in the order they are made. The counter before and after a module's forward, or a
call of a torch function, defines a window, and a node belongs to the innermost window that contains its number. That
costs two reads per call instead of a traceback per op, adds no node and touches no tensor.

`autograd.Function.apply` is not a torch function, so it has no window: NOTE [Applied Functions] in `torch_api.nodes`.

NOTE [No frame of ours in a traceback]
A program may catch an error and print its traceback. Python adds an entry when an exception enters a frame, but none
when a bare `raise` passes it on, so our entry, the first one at that moment, can be removed.

NOTE [Leaving]
torch takes a mode off the stack while it forwards a function, and puts it back when the function returns, so a mode
cannot be removed from inside, and `Tensor.backward` is such a function. torch holds the keyword arguments for the time
of the call: an object among them that removes the mode in its destructor runs right after the mode was put back. If
something else holds that frame, such as a traceback, the next call tries again. While the session goes on, a mode of a
program that has compiled anything stays and only forwards: what notices compiled code takes it off there. Once that has
ended, too, compiled code would be guarded on a mode that is left, and compiled again; so then it leaves in any case.
"""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from threading import Lock, get_ident
from types import CodeType, FrameType, TracebackType
from typing import Any, Protocol, Self
from weakref import ReferenceType, ref

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils.hooks import RemovableHandle

from gradinspect.graph import THREAD_SPAN
from gradinspect.recording.frames import FrameTable
from gradinspect.recording.hooks import REGISTER_HOOK, TensorHooks
from gradinspect.recording.model_inputs import ModelInputs
from gradinspect.recording.names.kept_names import KeptNames
from gradinspect.recording.names.names import Names
from gradinspect.recording.threads.other_threads import OtherThreads
from gradinspect.recording.threads.scopes import TaskScope
from gradinspect.recording.threads.thread_modes import (
    Crossings,
    applied_functions_followed,
    call_when_returned,
    guarded,
    leave_thread,
    new_threads_followed,
    push_mode_here,
    switch_elsewhere,
)
from gradinspect.recording.threads.threads import NOWHERE, ModuleWindow, ThreadRecord
from gradinspect.recording.transparency.handlers import outside_handlers
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.recording.transparency.transparency import transparent
from gradinspect.torch_api.compiled_regions import noticed_regions, tracing_apart
from gradinspect.torch_api.dynamo import passed_by, uncompiled
from gradinspect.torch_api.engine import is_inside_backward
from gradinspect.torch_api.hooks import apart_from_program, hide_hooks, note_ours, show_hooks
from gradinspect.torch_api.modes import (
    FunctionMode,
    frame_above,
    has_compiled,
    is_on_stack,
    push_function_mode,
    put_function_mode,
    remove_function_mode,
    take_function_mode,
)
from gradinspect.torch_api.modules import compiled_module, is_of_compiler
from gradinspect.torch_api.nodes import next_sequence_nr
from gradinspect.torch_api.patching.attributes import TENSOR_NAMES, CoveredAttributes
from gradinspect.torch_api.patching.forks import lock_of_process, pause_in_children, stop_pausing
from gradinspect.torch_api.patching.patches import patched
from gradinspect.torch_api.patching.replaced import NEVER_REPLACED, standing_for
from gradinspect.torch_api.patching.unlisted import unlisted_modes
from gradinspect.torch_api.saved import PushedHooks


class CallListener(Protocol):
    """Listens to calls of torch functions."""

    def before(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Observe a call that is about to start; return None to ignore it."""

    def after(self, begun: Any, result: Any, start: int, end: int, number: int | None, frame: FrameType | None) -> None:
        """Observe a call that has returned.

        Args:
            begun: The result of `before`.
            result: Its return value.
            start: The sequence number before it.
            end: The sequence number after it.
            number: The number of the user's frame, if already known.
            frame: The caller's frame.
        """


class Recorder:
    """Records windows while it is active. Use it as a context manager, around the forward pass."""

    def __init__(self, *, all_threads: bool = True) -> None:
        """Start empty.

        Args:
            all_threads: Whether the modules that other threads call are part of what is recorded.
        """
        self._all_threads = all_threads
        self.is_active = False
        self._has_ended = False  # and notices no compiled code any more
        self.frames = FrameTable()
        self.modules: list[ReferenceType[nn.Module]] = []
        self._class_names: list[str] = []
        self.own = ThreadRecord()  # of the recorded thread
        self.others = OtherThreads(self.own, self._follow_crossings)
        self.listeners: list[CallListener] = []  # observe each call of a torch function
        self.on_module: list[Callable[[], None]] = []  # called when another module runs, on its thread
        self.on_compiled: list[Callable[[bool, FrameType | None], None]] = []  # called around compiled code
        self.kept_names = KeptNames()
        self.inputs = ModelInputs()
        self.errors = OwnErrors()  # of those who listen
        self._noted: set[int] = set()  # numbers of modules whose names are kept
        self._module_numbers: dict[int, int] = {}
        self._wrapped: dict[int, int] = {}  # number of a wrapper of torch.compile -> that of the module in it
        self._lock = Lock()  # of what all threads share
        self.turn = lock_of_process()  # held by those who note what all threads do, so that they do one after the other
        self._thread = get_ident()
        self._mode = _CallMode(self)
        self.scope = TaskScope()
        self._is_leaving = False
        self._num_above: int | None = None  # modes above ours, if it was taken off for compiled code
        self.has_run_compiled = False  # whether code under torch.compile has begun to run
        self.is_in_compiled = False  # whether such code runs on the recorded thread
        self._compiled_from = 0  # the number before the compiled function that runs
        self._handles: list[Any] = []
        self.saved_hooks = PushedHooks(THREAD_SPAN)
        self.tensor_hooks = TensorHooks()
        self.attributes = CoveredAttributes()
        self._transparency = ExitStack()

    def __enter__(self) -> Self:
        """Start recording the current thread."""
        self.scope.begin()
        if self.scope.is_limited:
            self._mode.is_here = self.scope.is_here
        self.is_active = True
        self._thread = get_ident()
        self.own.first = self.own.latest = next_sequence_nr()
        self.others.start()
        self._handles += [  # to those of listeners that came before
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
        ]
        note_ours(self._handles)
        self._transparency.enter_context(transparent(self._hook_ids))
        self._transparency.enter_context(self.saved_hooks)
        followed = new_threads_followed(self), applied_functions_followed(self)
        self._transparency.enter_context(patched(*unlisted_modes(), *followed))
        self._transparency.enter_context(noticed_regions(self._switched, self._hook_ids))
        self._transparency.enter_context(patched(*tracing_apart(self._stand_aside)))
        push_function_mode(self._mode)
        pause_in_children(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop recording."""
        self.is_active = False
        self.scope.end()
        stop_pausing(self)
        self._has_ended = True
        self._is_leaving = not remove_function_mode(self._mode)  # as on another thread
        self._remove_hooks()
        self.attributes.close()  # not before: an optimizer's step is read when the recorder has stopped

    def before_modules(
        self, hook: Callable[[nn.Module, Any], None], note: Callable[[Exception], object]
    ) -> RemovableHandle:
        """Call a hook before each module runs, after it was noted here, at most as long as something is recorded.

        Args:
            hook: What to call, but not in code that torch.compile traces.
            note: Called with an error of the hook; the program goes on.
        """
        return self._noted_handle(register_module_forward_pre_hook(apart_from_program(hook, note)))

    def after_modules(
        self, hook: Callable[[nn.Module, Any, Any], None], note: Callable[[Exception], object]
    ) -> RemovableHandle:
        """Do the same after each module has run, also if it fails."""
        return self._noted_handle(register_module_forward_hook(apart_from_program(hook, note), always_call=True))

    def _noted_handle(self, handle: RemovableHandle) -> RemovableHandle:
        note_ours([handle])
        self._handles.append(handle)  # so a compiled module does not warn about it
        return handle

    def pause(self) -> None:
        """Stop recording permanently, from anywhere, and keep what was recorded. NOTE [Leaving]."""
        self.is_active = False
        self._is_leaving = self.may_leave
        if self._is_leaving:
            self._leave()

    def drop_tensors(self) -> None:
        """Refer to no tensor that the program may still swap, once nothing hides our references from torch."""
        self.kept_names.drop_tensors()
        self.inputs.drop_tensors()
        self.others.drop_tensors()

    @uncompiled
    def _switched(self, is_compiled: bool, caller: FrameType | None) -> None:
        """Get out of the way of compiled code, and come back. NOTE [Compiled regions]."""
        self.has_run_compiled = True
        self._stand_aside(is_compiled, caller)
        if get_ident() != self._thread:
            return
        self.is_in_compiled = is_compiled
        for listener in self.on_compiled if self.is_active else ():
            listener(is_compiled, caller)

    @uncompiled
    def _stand_aside(self, is_aside: bool, caller: FrameType | None) -> None:
        """Take our mode and our hooks off this thread, and put them back. NOTE [Traced regions]."""
        if get_ident() != self._thread:
            switch_elsewhere(self, is_compiled=is_aside, caller=caller)
        elif is_aside:
            self._compiled_from = next_sequence_nr()
            num_above = take_function_mode(self._mode)
            self._num_above = self._num_above if num_above is None else num_above  # None: it is off already
            hide_hooks()
        else:
            show_hooks()
            if self._num_above is not None:
                put_function_mode(self._mode, self._num_above)
                self._num_above = None
                self._note_compiled(caller)

    def _note_compiled(self, caller: FrameType | None) -> None:
        """Note the window of a compiled function: no mode of ours has seen what it called."""
        end = next_sequence_nr()
        if end != self._compiled_from:
            self.own.add_call(self._compiled_from, end, self.frames.number_of(caller))
            self.own.latest = end

    def dismiss(self, listener: CallListener) -> None:
        """Stop reporting calls to a listener."""
        if listener in self.listeners:
            self.listeners.remove(listener)

    def leave_after(self, func: Any, keywords: dict[str, Any] | None) -> None:
        """Leave as soon as the running torch function has returned. NOTE [Leaving].

        Args:
            func: The function.
            keywords: The keyword arguments that torch holds for the time of the call.
        """
        if self._is_leaving:
            call_when_returned(func, keywords, self._leave)

    @property
    def may_leave(self) -> bool:
        """Whether our modes need not stay for compiled code. NOTE [Leaving]."""
        return self._has_ended or not (self.is_active or has_compiled())

    def note_hook(self, args: tuple[Any, ...]) -> None:
        """Note the tensor, the first of the arguments, on which a hook was registered on this thread."""
        guarded(self.others, lambda: self.tensor_hooks.note(args[0], self.others.maker_of))

    def next_number(self) -> int:
        """Return the number of the next node of the recorded thread, as far as this thread can know."""
        return next_sequence_nr() if get_ident() == self._thread else self.own.latest

    def follows_here(self) -> bool:
        """Return whether the functions that another thread calls are recorded."""
        return self.is_active and self.scope.is_here()

    def followed_record(self) -> ThreadRecord | None:
        """Return the record of this thread, if the functions that it calls are recorded."""
        if get_ident() == self._thread:
            return self.own
        record = self.others.found_here()
        return None if record is None or record.mode is None else record

    @property
    def is_here(self) -> bool:
        """Whether this is the recorded thread."""
        return get_ident() == self._thread

    def records_here(self) -> bool:
        """Return whether what this thread does is part of what is recorded, however we find out about it."""
        return (self._all_threads or get_ident() == self._thread) and self.scope.is_here()

    @property
    def is_hidden(self) -> bool:
        """Whether calls on the recorded thread are hidden, because the mode is forwarding one."""
        return self.is_active and get_ident() == self._thread and not is_on_stack(self._mode)

    def _leave(self) -> None:
        if get_ident() == self._thread and remove_function_mode(self._mode):
            self._is_leaving = False
            self._remove_hooks()

    def _hook_ids(self) -> set[int]:
        return {handle.id for handle in self._handles}

    def _remove_hooks(self) -> None:
        self._transparency.close()
        show_hooks()  # the end of compiled code will not be reported
        for handle in self._handles:
            handle.remove()
        self._handles = []

    @uncompiled
    def _enter_module(self, module: nn.Module, args: object) -> None:
        if torch.compiler.is_compiling() or not self.scope.is_here():
            return
        if is_of_compiler(module):
            self._moved_on()
            return
        is_own = get_ident() == self._thread
        if not self.is_active:
            if is_own and self._is_leaving:
                self._leave()
            return
        record = self.own if is_own else self._entering_elsewhere()
        if is_own and not record.open_windows:
            self.attributes.look()
            self.inputs.note(args, sys._getframe(1))
        record.enter(self._number_of(module))
        self._moved_on()

    @uncompiled
    def _leave_module(self, module: nn.Module, _args: object, output: object) -> None:
        if torch.compiler.is_compiling() or not self.is_active or not self.scope.is_here():
            return
        if is_of_compiler(module):
            return
        number = self._number_of(module)
        is_own = get_ident() == self._thread
        record = self.own if is_own else self.others.record_here()
        record.leave(number)
        if not is_own and not record.open_windows:
            self._left_elsewhere(record, output)
        if not record.open_windows and number not in self._noted:
            with self._lock:
                self._noted.add(number)
                self.kept_names.note(module, self._module_numbers)
        self._moved_on()

    def _moved_on(self) -> None:
        for moved_on in self.on_module if self.is_active else ():
            moved_on()

    def _entering_elsewhere(self) -> ThreadRecord:
        """Return the record of another thread, such as one of a device, which is inside backward."""
        record = self.others.record_here()
        if record.mode is None and not record.open_windows and not is_inside_backward():
            push_mode_here(self)
        return record

    def _left_elsewhere(self, record: ThreadRecord, output: object) -> None:
        guarded(self.others, lambda: self.others.left(self.others.index_here(), output))
        if record.is_visited and record.mode is not None:
            leave_thread(record)

    def _follow_crossings(self) -> None:
        if not any(isinstance(listener, Crossings) for listener in self.listeners):
            self.listeners.append(Crossings(self.others))

    def _number_of(self, module: nn.Module) -> int:
        number = self._module_numbers.get(id(module))
        if number is None or self.modules[number]() is not module:
            inner = compiled_module(module)
            wrapped = None if inner is None else self._number_of(inner)
            with self._lock:
                number = len(self.modules)
                self._class_names.append(type(module).__name__)
                self.modules.append(ref(module))
                self._module_numbers[id(module)] = number
                self.kept_names.note_own(module, number)
                if wrapped is not None:
                    self._wrapped[number] = wrapped
        return number

    def without_wrapper(self, number: int) -> int:
        """Return the number of the module that a wrapper of torch.compile was made for; the same for another module."""
        return self._wrapped.get(number, number)

    @property
    def module_windows(self) -> list[ModuleWindow]:
        """Calls of modules on the recorded thread."""
        return self.own.module_windows

    def called_modules(self) -> list[nn.Module]:
        """List the outermost modules that were called, on any thread that counts, and are still alive."""
        records = self.others.records(all_threads=self._all_threads)
        outermost = dict.fromkeys(number for record in records for number in list(record.outermost))
        modules = (self.modules[number]() for number in outermost)
        return [module for module in modules if module is not None]

    def module_path(self, number: int, names: Names) -> str | None:
        """Return the path of a called module, even if it is gone; None for one that is part of no model."""
        number = self.without_wrapper(number)
        module = self.modules[number]()
        if module is not None:
            return names.module_paths.get(id(module))
        return names.gone_paths.get(number, self.kept_names.path_of(number))

    def keep_paths(self, names: Names) -> None:
        """Keep the paths that names have of called modules, for when these are gone."""
        for number, reference in enumerate(list(self.modules)):
            module = reference()
            if module is not None and id(module) in names.module_paths:
                names.gone_paths.setdefault(number, names.module_paths[id(module)])

    def class_name(self, number: int) -> str:
        """Return the class of a called module, even if it is gone; a wrapper of torch.compile has no own."""
        return self._class_names[self.without_wrapper(number)]

    @property
    def running_module(self) -> int | None:
        """The number of the innermost module that is running on the current thread, such as one of a device."""
        record = self.own if get_ident() == self._thread else self.others.found_here()
        return None if record is None else record.running_module

    @property
    def running_call(self) -> int | None:
        """The place of the innermost call of a module that is running on the current thread.

        That is the number of the thread, times THREAD_SPAN, and of the window in it.
        """
        if get_ident() == self._thread:
            return self.own.open_windows[-1] if self.own.open_windows else None
        record = self.others.found_here()
        if record is None or not record.open_windows:
            return None
        return self.others.number_here() * THREAD_SPAN + record.open_windows[-1]

    def call_of(self, identity: int) -> int | None:
        """Find the place of the innermost call of a module that made a node: see `running_call`.

        Args:
            identity: The node's thread and sequence number. NOTE [Numbers of a node] in `threads`.
        """
        place = self.others.place_of(identity)
        return None if place is None else place.thread * THREAD_SPAN + place.window

    def module_of(self, identity: int) -> int | None:
        """Find the innermost module that made a node, by the node's identity as in `call_of`."""
        call = self.call_of(identity)
        return None if call is None else self.called(call)

    def called(self, call: int) -> int:
        """Return the number of the module that was called at a place: see `running_call`."""
        thread, window = divmod(call, THREAD_SPAN)
        return self.others.record_of(thread).module_windows[window].module

    def frame_of(self, identity: int) -> int | None:
        """Find the line that made a node, by its thread and number; one of the recorded thread has only a number."""
        return (self.own if identity < THREAD_SPAN else self.others).frame_of(identity)


class _CallMode(FunctionMode):
    """Observes every call of a torch function on this thread, and the counter before and after it."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder
        self._record = recorder.own
        self.is_here: Callable[[], bool] | None = None  # whether a task's calls are recorded; None: those of all

    @passed_by
    def __torch_function__(  # noqa: C901, PLR0912, PLR0915  # it runs for each call, where one more costs more than all branches
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if torch.compiler.is_compiling():  # must come first: anything before it would be traced and guarded
            return func(*args, **(kwargs or {}))
        recorder, record = self._recorder, self._record
        is_active = recorder.is_active and (self.is_here is None or self.is_here())
        start = next_sequence_nr()
        if is_active:
            record.latest = start
            if len(TENSOR_NAMES) != recorder.attributes.num_seen:
                recorder.attributes.look()
        called = func
        if id(type(func)) not in NEVER_REPLACED:  # NOTE [Replaced functions]
            asking = standing_for(func, args, kwargs, frame_above())
            if asking is not None:
                called, func = asking
        begun = []
        for listener in recorder.listeners if is_active else ():  # in place: a function more would cost each operator
            noted = listener.before(func, args, kwargs or {})
            if noted is not None:
                begun.append((listener, noted))
        try:
            result = called(*args, **kwargs) if kwargs else called(*args)
        except BaseException as error:  # NOTE [No frame of ours in a traceback]
            recorder.leave_after(called, kwargs)
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise
        if not recorder.is_active:
            recorder.leave_after(called, kwargs)
        if not is_active:
            return result
        if func is REGISTER_HOOK:
            recorder.note_hook(args)
        end = next_sequence_nr()
        if end != start or begun:
            try:
                frame: FrameType | None = sys._getframe(1)
            except ValueError:  # C++ called, as on a thread of a device; in place, as above
                frame = sys._getframe()
            number = recorder.frames.number_of(frame) if end != start else None
            if recorder.frames.has_handlers:  # NOTE [Handlers that hand on]
                frame = outside_handlers(frame, func)
                number = None if number is None else recorder.frames.number_of(frame)
            if end != start:
                record.call_starts.append(start)
                record.call_ends.append(end)
                record.call_frames.append(NOWHERE if number is None else number)
            for listener, noted in begun:
                listener.after(noted, result, start, end, number, frame)
        record.latest = end
        return result


CALL_MODE: CodeType = _CallMode.__torch_function__.__code__
