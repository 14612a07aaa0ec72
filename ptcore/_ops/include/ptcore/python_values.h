/* Values between C++ and Python, for ptcore/extension.h, which includes it. */
#ifndef PTCORE_PYTHON_VALUES_H
#define PTCORE_PYTHON_VALUES_H
#ifndef PTCORE_EXTENSION_H
#error "include ptcore/extension.h"
#endif

namespace pt {

/* What is wrong with an argument; the caller prepends the function's name and the position. */
class wrong_value : public type_error {
public:
    wrong_value(const std::string &expected, PyObject *got)
        : type_error("must be " + expected + ", got " + Py_TYPE(got)->tp_name) {}
};

template<class T, class = void> struct convert;

template<> struct convert<object> {
    static std::string name() { return "an object"; }
    static object from(PyObject *x) { return object::borrow(x); }
    static PyObject *to(const object &x) { return Py_NewRef(x.get() ? x.get() : Py_None); }
};
template<> struct convert<Tensor> {
    static std::string name() { return "a Tensor"; }
    static Tensor from(PyObject *x) {
        if (!pt_is_tensor(x)) throw wrong_value(name(), x);
        return Tensor::borrow(x);
    }
    static PyObject *to(const Tensor &x) { return Py_NewRef(x.get() ? x.get() : Py_None); }
};
template<> struct convert<bool> {
    static std::string name() { return "a bool"; }
    static bool from(PyObject *x) {
        if (!PyBool_Check(x)) throw wrong_value(name(), x);
        return x == Py_True;
    }
    static PyObject *to(bool x) { return PyBool_FromLong(x); }
};
template<class T> struct convert<T, std::enable_if_t<std::is_integral_v<T>>> {
    static std::string name() { return "an int"; }
    static T from(PyObject *x) {
        if (!PyIndex_Check(x) || pt_is_tensor(x)) throw wrong_value(name(), x);
        const object index = object::steal(checked(PyNumber_Index(x)));
        int over = 0;
        const long long n = PyLong_AsLongLongAndOverflow(index.get(), &over);
        if constexpr (std::is_same_v<T, uint64_t> || std::is_same_v<T, unsigned long> ||
                      std::is_same_v<T, unsigned long long>) {
            if (over > 0) {
                const unsigned long long wide = PyLong_AsUnsignedLongLong(index.get());
                if (!PyErr_Occurred()) return T(wide);
                throw error();
            }
        }
        if (over || T(n) != n || (n < 0) != (T(n) < T(0)))
            throw std::overflow_error("does not fit into " + std::to_string(8 * sizeof(T)) +
                                      " bits" + (std::is_signed_v<T> ? "" : " without a sign"));
        return T(n);
    }
    static PyObject *to(T x) {
        if constexpr (std::is_signed_v<T>) return PyLong_FromLongLong(x);
        else return PyLong_FromUnsignedLongLong(x);
    }
};
template<class T> struct convert<T, std::enable_if_t<std::is_floating_point_v<T>>> {
    static std::string name() { return "a float"; }
    static T from(PyObject *x) {
        if (PyFloat_CheckExact(x)) return T(PyFloat_AS_DOUBLE(x));
        const double n = pt_is_tensor(x) || PyUnicode_Check(x) ? -1.0 : PyFloat_AsDouble(x);
        if (n == -1.0 && (PyErr_Occurred() || pt_is_tensor(x) || PyUnicode_Check(x))) {
            if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError)) throw error();
            PyErr_Clear();
            throw wrong_value(name(), x);
        }
        return T(n);
    }
    static PyObject *to(T x) { return PyFloat_FromDouble(double(x)); }
};
template<class T> struct convert<std::complex<T>> {
    static std::string name() { return "a complex"; }
    static std::complex<T> from(PyObject *x) {
        if (!PyComplex_Check(x) && !PyFloat_Check(x) && !PyLong_Check(x))
            throw wrong_value(name(), x);
        const Py_complex n = PyComplex_AsCComplex(x);
        if (PyErr_Occurred()) throw error();
        return {T(n.real), T(n.imag)};
    }
    static PyObject *to(const std::complex<T> &x) {
        return PyComplex_FromDoubles(double(x.real()), double(x.imag()));
    }
};
template<> struct convert<std::string> {
    static std::string name() { return "a str"; }
    static std::string from(PyObject *x) {
        if (!PyUnicode_Check(x)) throw wrong_value(name(), x);
        Py_ssize_t n = 0;
        const char *chars = PyUnicode_AsUTF8AndSize(x, &n);
        if (!chars) throw error();
        return std::string(chars, size_t(n));
    }
    static PyObject *to(const std::string &x) {
        return PyUnicode_DecodeUTF8(x.data(), Py_ssize_t(x.size()), nullptr);
    }
};
template<> struct convert<const char *> {
    static PyObject *to(const char *x) { return x ? PyUnicode_FromString(x) : Py_NewRef(Py_None); }
};
template<size_t N> struct convert<char[N]> : convert<const char *> {};
template<> struct convert<std::nullopt_t> {
    static PyObject *to(std::nullopt_t) { return Py_NewRef(Py_None); }
};
template<class T> struct convert<std::optional<T>> {
    static std::string name() { return convert<T>::name() + " or None"; }
    static std::optional<T> from(PyObject *x) {
        if (x == Py_None) return std::nullopt;
        try {
            return convert<T>::from(x);
        } catch (const wrong_value &) {
            throw wrong_value(name(), x);
        }
    }
    static PyObject *to(const std::optional<T> &x) {
        return x ? to_python(*x) : Py_NewRef(Py_None);
    }
};
template<class T> struct convert<std::vector<T>> {
    static std::string name() { return "a list of which each is " + convert<T>::name(); }
    static std::vector<T> from(PyObject *x) {
        if (!PyList_Check(x) && !PyTuple_Check(x)) throw wrong_value("a list or a tuple", x);
        const object items =
            object::steal(checked(PySequence_Tuple(x))); /* conversions may change a list */
        const Py_ssize_t n = PyTuple_GET_SIZE(items.get());
        std::vector<T> made;
        made.reserve(size_t(n));
        for (Py_ssize_t i = 0; i < n; i++) {
            try {
                made.push_back(convert<T>::from(PyTuple_GET_ITEM(items.get(), i)));
            } catch (const wrong_value &e) {
                throw wrong_value(name() + " (" + std::to_string(i) + " is not)",
                                  PyTuple_GET_ITEM(items.get(), i));
            }
        }
        return made;
    }
    static PyObject *to(const std::vector<T> &x) {
        object made = object::steal(checked(PyList_New(Py_ssize_t(x.size()))));
        for (size_t i = 0; i < x.size(); i++)
            PyList_SET_ITEM(made.get(), Py_ssize_t(i), checked(to_python<T>(x[i])));
        return made.release();
    }
};
template<> struct convert<ints> {
    static PyObject *to(const ints &x) { return to_python(x.vec()); }
};
template<class... T> struct convert<std::tuple<T...>> {
    static std::string name() { return "a tuple of " + std::to_string(sizeof...(T)); }
    template<size_t... I> static std::tuple<T...> parts(PyObject *x, std::index_sequence<I...>) {
        return std::tuple<T...>{convert<T>::from(PyTuple_GET_ITEM(x, Py_ssize_t(I)))...};
    }
    static std::tuple<T...> from(PyObject *x) {
        if (!PyList_Check(x) && !PyTuple_Check(x)) throw wrong_value(name(), x);
        const object items = object::steal(checked(PySequence_Tuple(x)));
        if (PyTuple_GET_SIZE(items.get()) != Py_ssize_t(sizeof...(T)))
            throw wrong_value(name() + ", not of " + std::to_string(PyTuple_GET_SIZE(items.get())),
                              x);
        return parts(items.get(), std::index_sequence_for<T...>{});
    }
    static PyObject *to(const std::tuple<T...> &x) {
        object made = object::steal(checked(PyTuple_New(Py_ssize_t(sizeof...(T)))));
        Py_ssize_t k = 0;
        std::apply(
            [&](const T &...each) {
                (PyTuple_SET_ITEM(made.get(), k++, checked(to_python(each))), ...);
            },
            x);
        return made.release();
    }
};
template<class A, class B> struct convert<std::pair<A, B>> {
    using tuple = convert<std::tuple<A, B>>;
    static std::string name() { return tuple::name(); }
    static std::pair<A, B> from(PyObject *x) {
        auto t = tuple::from(x);
        return {std::move(std::get<0>(t)), std::move(std::get<1>(t))};
    }
    static PyObject *to(const std::pair<A, B> &x) { return tuple::to({x.first, x.second}); }
};

/* A new reference, or NULL with a Python exception. */
template<class T> PyObject *to_python(const T &x) { return convert<T>::to(x); }
template<class T> T from_python(PyObject *x) { return convert<T>::from(x); }

/* Converts the result of a Python call to R. */
template<class R> R result_of(PyObject *found) {
    const object held = object::steal(checked(found));
    if constexpr (!std::is_void_v<R>) return convert<R>::from(held.get());
}

}  /* namespace pt */
#endif
