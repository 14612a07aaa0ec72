"""Contexts of the upper layers. Their ``__enter__`` and ``__exit__`` are C functions: see ``_state.Mode``.

They change lists and settings of a thread, settings of the process, and values that C functions read and write.
"""
cimport cython
from ptcore._state cimport Mode, Switch, drop, push, stacks


@cython.binding(False)                  # so that methods check their self
cdef class Listed(Mode):
    """While entered, ``item`` is the innermost of this thread's ``stack(name)``; by default the context itself is.

    Parameters
    ----------
    name : str
    item : object, optional
    """

    def __init__(self, str name, item=None):
        self.name, self.item = name, item

    cdef object begin(self):
        item = self if self.item is None else self.item
        push(<list>stacks().named.setdefault(self.name, []), item, 0)
        return item

    cdef int end(self, object before) except -1:
        return drop(<list>stacks().named[self.name], before, 0)


@cython.binding(False)                  # so that methods check their self
cdef class Changed(Switch):
    """While entered, some settings have other values: settings of this thread, or entries of dicts of the process.

    Parameters
    ----------
    *changes : (dict or None, dict) pairs
        Each pair is the dict that holds the settings (None: this thread's settings) and the new values. A context
        changes settings of a thread or settings of the process, but not both.
    told : (module, dict, names), optional
        After each change ``module.told(name, dict[name])`` is called for each name; ``module.told`` is in C or None.
    gives : object, optional
        The object that ``as`` binds.
    """

    def __init__(self, *changes, told=None, gives=None):
        self.changes, self.told, self.gives = changes, told, gives
        self.of_process = all([table is not None for table, _ in changes])

    cdef object given(self):
        return self.gives

    cdef bint is_shared(self):
        return self.of_process

    cdef object begin(self):
        cdef list before = []
        cdef dict table, values
        for where, values in self.changes:
            table = stacks().settings if where is None else <dict>where
            before.append((table, {name: table.get(name, NotImplemented) for name in values}))
        for (table, _), (_, values) in zip(before, self.changes):
            table.update(values)
        self.tell()
        return before

    cdef int end(self, object before) except -1:
        cdef dict table, found
        for table, found in before:
            for name, value in found.items():
                if value is NotImplemented:
                    table.pop(name, None)
                else:
                    table[name] = value
        return self.tell()

    cdef int tell(self) except -1:
        if self.told is not None and self.told[0].told is not None:
            for name in self.told[2]:
                self.told[0].told(name, self.told[1][name])
        return 0


@cython.binding(False)                  # so that methods check their self
cdef class Counted(Mode):
    """While entered, ``table[count]`` is one higher. When it falls to 0, ``table[held]`` becomes a new dict.

    Parameters
    ----------
    table : dict
    count, held : str
    """

    def __init__(self, dict table, str count, str held):
        self.table, self.count, self.held = table, count, held

    cdef bint is_shared(self):
        return True

    cdef object begin(self):
        self.table[self.count] += 1
        return None

    cdef int end(self, object before) except -1:
        self.table[self.count] -= 1
        if self.table[self.count] == 0:
            self.table[self.held] = {}
        return 0


@cython.binding(False)                  # so that methods check their self
cdef class Nested(Mode):
    """While entered, another context is entered as well. ``make`` gives that context at each entry.

    Parameters
    ----------
    make : callable
        Gives a ``Mode``, or raises.
    gives : object
        The object that ``as`` binds.
    """

    def __init__(self, make, gives):
        self.make, self.gives = make, gives

    cdef object given(self):
        return self.gives

    cdef object begin(self):
        cdef Mode inner = self.make()           # may run Python code, so it comes before the change
        inner.__enter__()
        return inner

    cdef int end(self, object before) except -1:
        (<Mode>before).__exit__()
        return 0


@cython.binding(False)                  # so that methods check their self
cdef class Together(Mode):
    """While entered, several other contexts are entered as well.

    Parameters
    ----------
    contexts : list of Mode
    """

    def __init__(self, list contexts):
        self.contexts = contexts

    cdef object begin(self):
        cdef list before = []
        cdef Mode inner
        try:
            for inner in self.contexts:
                inner.__enter__()
                before.append(inner)
        except BaseException:
            self.end(before)
            raise
        return before

    cdef int end(self, object before) except -1:
        cdef Mode inner
        for inner in reversed(<list>before):
            inner.__exit__()
        return 0


@cython.binding(False)                  # so that methods check their self
cdef class Exchanged(Mode):
    """While entered, values that C functions write are replaced by others. The context takes any number of them.

    Parameters
    ----------
    *changes : (read, write, args, value) tuples
        ``read(*args)`` gives the present value, ``write(*args, value)`` sets another. Changes are undone in reverse.
    """

    def __init__(self, *changes):
        self.changes = changes

    cdef bint prepares(self):
        return True

    cdef object begin(self):
        cdef list before = []
        try:
            for read, write, args, value in self.changes:
                found = read(*args)
                write(*args, value)
                before.append((write, args, found))
                self.last = found
        except BaseException:
            self.end(before)
            raise
        return before

    cdef int end(self, object before) except -1:
        for write, args, value in reversed(<list>before):
            write(*args, value)
        return 0


@cython.binding(False)                  # so that methods check their self
cdef class Replaced(Mode):
    """While entered, some entries of dicts and attributes of other objects are replaced, in the whole process.

    Parameters
    ----------
    changes : list of (dict or object, name, value)
        The attribute ``__class__``, attributes that the class sets (properties), and those that are in the object's
        own ``__dict__`` or will be.
    """

    def __init__(self, list changes):
        self.changes = changes

    cdef bint is_shared(self):
        return True

    cdef object begin(self):
        cdef list before = []
        try:
            for place, name, value in self.changes:
                if isinstance(place, dict):
                    found = (<dict>place).get(name, NotImplemented)
                elif name == "__class__":
                    found = type(place)
                elif hasattr(type(getattr(type(place), name, None)), "__set__"):
                    found = getattr(place, name)
                else:
                    found = place.__dict__.get(name, NotImplemented)
                put(place, name, value)
                before.append((place, name, found))
        except BaseException:
            self.end(before)
            raise
        return before

    cdef int end(self, object before) except -1:
        for place, name, value in reversed(<list>before):
            put(place, name, value)
        return 0


cdef int put(object place, object name, object value) except -1:
    """Sets an entry of a dict or an attribute; the value NotImplemented removes it, if it is still there."""
    if isinstance(place, dict):
        if value is NotImplemented:
            (<dict>place).pop(name, None)
        else:
            (<dict>place)[name] = value
    elif value is not NotImplemented:
        setattr(place, name, value)
    elif name in place.__dict__:
        delattr(place, name)
    return 0
