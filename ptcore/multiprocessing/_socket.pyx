"""The bytes and the descriptors of messages between processes, over a socket. See ``_connection``.

A message begins with its length in eight bytes and the number of its descriptors in four, in network order. Up to
``AT_ONCE`` descriptors come with this header; for more, each extra byte brings up to as many. The bytes follow.
"""
cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.errno cimport EAGAIN, EINTR, EMFILE
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

import os

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef extern from *:
    """
    #include <errno.h>
    #include <string.h>
    enum { PT_AT_ONCE = 250 };          /* descriptors; the kernel takes 253 */
    #ifdef _WIN32
    static Py_ssize_t pt_socket_send(int fd, const char *data, size_t n, const int *fds, int count, int wait) {
        return -ENOSYS;
    }
    static Py_ssize_t pt_socket_receive(int fd, char *to, size_t n, int *fds, int *count) { return -ENOSYS; }
    static void pt_socket_close(int fd) {}
    #else
    #include <fcntl.h>
    #include <sys/socket.h>
    #include <sys/uio.h>
    #include <unistd.h>
    #ifndef MSG_NOSIGNAL
    #define MSG_NOSIGNAL 0
    #endif
    #ifndef MSG_CMSG_CLOEXEC
    #define MSG_CMSG_CLOEXEC 0
    #endif
    union pt_control {
        struct cmsghdr head;
        char buffer[CMSG_SPACE(PT_AT_ONCE * sizeof(int))];
    };
    /* Both: how many bytes, or the negative errno. */
    static Py_ssize_t pt_socket_send(int fd, const char *data, size_t n, const int *fds, int count, int wait) {
        struct iovec part = {(void *)data, n};
        struct msghdr message;
        union pt_control control;
        memset(&message, 0, sizeof message);
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        if (count) {
            message.msg_control = &control;
            message.msg_controllen = CMSG_SPACE(count * sizeof(int));
            memset(&control, 0, message.msg_controllen);
            struct cmsghdr *head = CMSG_FIRSTHDR(&message);
            head->cmsg_level = SOL_SOCKET;
            head->cmsg_type = SCM_RIGHTS;
            head->cmsg_len = CMSG_LEN(count * sizeof(int));
            memcpy(CMSG_DATA(head), fds, count * sizeof(int));
        }
        Py_ssize_t done = sendmsg(fd, &message, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
        return done < 0 ? -errno : done;
    }
    static Py_ssize_t pt_socket_receive(int fd, char *to, size_t n, int *fds, int *count) {
        struct iovec part = {to, n};
        struct msghdr message;
        union pt_control control;
        memset(&message, 0, sizeof message);
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        if (fds) {
            message.msg_control = &control;
            message.msg_controllen = sizeof control;
        }
        Py_ssize_t done = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
        if (done < 0) return -errno;
        *count = 0;
        for (struct cmsghdr *head = fds ? CMSG_FIRSTHDR(&message) : 0; head; head = CMSG_NXTHDR(&message, head))
            if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
                int some = (int)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
                memcpy(fds + *count, CMSG_DATA(head), some * sizeof(int));
                if (!MSG_CMSG_CLOEXEC)
                    for (int i = 0; i < some; i++) fcntl(fds[*count + i], F_SETFD, FD_CLOEXEC);
                *count += some;
            }
        return done;
    }
    static void pt_socket_close(int fd) { close(fd); }
    #endif
    """
    enum:
        PT_AT_ONCE
    Py_ssize_t pt_socket_send(int, const char *, size_t, const int *, int, int) noexcept nogil
    Py_ssize_t pt_socket_receive(int, char *, size_t, int *, int *) noexcept nogil
    void pt_socket_close(int) noexcept nogil

cdef enum:
    HEAD = 12

AT_ONCE = PT_AT_ONCE


@cython.binding(False)                  # so that methods check their self
cdef class Descriptors:
    """Descriptors that came with a message. Those not taken are closed with this object, by compiled code: a finalizer
    in Python would lose a KeyboardInterrupt."""
    cdef int *fds
    cdef readonly Py_ssize_t count

    def __dealloc__(self):
        for i in range(self.count):
            if self.fds[i] >= 0:
                pt_socket_close(self.fds[i])
        PyMem_Free(self.fds)

    cdef int add(self, const int *fds, int count) except -1:
        cdef int *buffer = <int *>PyMem_Realloc(self.fds, (self.count + count) * sizeof(int))
        if buffer == NULL:
            for i in range(count):
                pt_socket_close(fds[i])
            raise MemoryError()
        self.fds = buffer
        memcpy(buffer + self.count, fds, count * sizeof(int))
        self.count += count
        return 0

    def take(self, Py_ssize_t which):
        """One of the descriptors, which the caller must close; -1 if it does not exist or was taken already."""
        fd = -1
        if 0 <= which < self.count:
            fd, self.fds[which] = self.fds[which], -1
        return fd


class EndedEarly(OSError, EOFError):
    """The other end has closed the socket in the middle of a message."""


cdef object failed(Py_ssize_t result, str op):
    return OSError(-result, f"{op}: {os.strerror(-result)}")


def send(int fd, data, list descriptors not None, bint wait):
    """Sends bytes, with up to ``AT_ONCE`` descriptors.

    Returns
    -------
    int
        The number of bytes sent: all, unless ``wait`` is false and the socket does not accept all of them now.

    Raises
    ------
    OSError
        The system's error; then nothing was sent, unless the other end has closed.
    """
    cdef Py_buffer shown
    cdef int[PT_AT_ONCE] fds
    cdef int count = len(descriptors)
    cdef Py_ssize_t done = 0, some
    if count > PT_AT_ONCE:
        raise ValueError(f"send: at most {PT_AT_ONCE} descriptors go at once, got {count}")
    for i in range(count):
        fds[i] = descriptors[i]
    PyObject_GetBuffer(data, &shown, PyBUF_SIMPLE)
    try:
        while done < shown.len:
            with nogil:
                some = pt_socket_send(fd, <const char *>shown.buf + done, shown.len - done, fds, count, wait)
            if some >= 0:
                done += some
                count = 0
                if wait and done < shown.len:       # a signal ends a call that has sent a part, without an error
                    PyErr_CheckSignals()
            elif some == -EINTR:
                PyErr_CheckSignals()
            elif not wait and some == -EAGAIN:
                break
            else:
                raise failed(some, "send")
        return done
    finally:
        PyBuffer_Release(&shown)


cdef int read(int fd, char *to, Py_ssize_t size, Descriptors descriptors) except -1:
    """Waits for a number of bytes; descriptors that come with them are added to the list."""
    cdef int[PT_AT_ONCE] fds
    cdef int *buffer = fds
    cdef int count = 0
    cdef Py_ssize_t done = 0, some
    if descriptors is None:
        buffer = NULL
    while done < size:
        with nogil:
            some = pt_socket_receive(fd, to + done, size - done, buffer, &count)
        if some == -EINTR:
            PyErr_CheckSignals()
            continue
        if some < 0:
            raise failed(some, "recv")
        if count:
            descriptors.add(fds, count)
        if some == 0:
            raise EndedEarly("got end of file during message") if done else EOFError
        done += some
        if done < size:
            PyErr_CheckSignals()
    return 0


def receive(int fd, Descriptors descriptors not None, maxsize=None):
    """The bytes of the next message; its descriptors are added. None if the message is longer than ``maxsize``.

    Raises
    ------
    EOFError
        If the other end has closed the socket; EndedEarly if it did so in the middle of a message.
    OSError
        If this process may open no more files.
    """
    cdef unsigned char[HEAD] head
    cdef uint64_t size = 0
    cdef Py_ssize_t count = 0
    read(fd, <char *>head, HEAD, descriptors)
    for i in range(8):
        size = size << 8 | head[i]
    for i in range(8, HEAD):
        count = count << 8 | head[i]
    for _ in range((count - 1) // PT_AT_ONCE):
        read(fd, <char *>head, 1, descriptors)
    if maxsize is not None and size > maxsize:
        return None
    if size > <uint64_t>PY_SSIZE_T_MAX:
        raise OSError(f"recv: no message has {size} bytes")
    data = PyBytes_FromStringAndSize(NULL, size)
    read(fd, PyBytes_AS_STRING(data), size, None)
    if descriptors.count < count:
        raise OSError(EMFILE, "recv: the process may open no more files, the message's descriptors are lost")
    return data
