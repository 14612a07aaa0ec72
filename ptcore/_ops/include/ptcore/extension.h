/* Tensors and ops for C++17, over ptcore/api.h: no wrapper code, no library to link.
 *
 *     #include <ptcore/extension.h>
 *
 *     pt::Tensor scaled(pt::Tensor x, double a) { return x * a; }
 *
 *     PT_MODULE(mine, m) { m.def("scaled", &scaled, "x times a"); }
 *
 * Arguments and results are tensors, numbers, bools, strings, std::optional, std::vector,
 * std::tuple and pt::object of these; optional arguments at the end may be left out. A C++
 * exception becomes a Python one (std::invalid_argument a ValueError, std::out_of_range an
 * IndexError, pt::type_error a TypeError, std::bad_alloc a MemoryError, others a RuntimeError). A
 * Python exception becomes a pt::error, which is raised in Python again if C++ does not catch it.
 * All functions need the GIL, which pt::no_gil releases for a while.
 */
#ifndef PTCORE_EXTENSION_H
#define PTCORE_EXTENSION_H
#include "api.h"

#include <complex>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace pt {

/* ---- errors ---- */

/* A Python exception, fetched from the interpreter. */
class error : public std::exception {
    struct parts {
        PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
        std::string text;
        ~parts() {
            Py_XDECREF(type);
            Py_XDECREF(value);
            Py_XDECREF(trace);
        }
    };
    std::shared_ptr<parts> held;

public:
    error() : held(std::make_shared<parts>()) {
        PyErr_Fetch(&held->type, &held->value, &held->trace);
        PyErr_NormalizeException(&held->type, &held->value, &held->trace);
        PyObject *text = held->value ? PyObject_Str(held->value) : nullptr;
        const char *chars = text ? PyUnicode_AsUTF8(text) : nullptr;
        held->text = chars ? chars : "a Python error";
        Py_XDECREF(text);
        PyErr_Clear();
    }
    const char *what() const noexcept override { return held->text.c_str(); }
    /* Whether the exception is an instance of a class, such as PyExc_ValueError. */
    bool is(PyObject *type) const {
        return held->type && PyErr_GivenExceptionMatches(held->type, type);
    }
    void restore() const {
        Py_XINCREF(held->type);
        Py_XINCREF(held->value);
        Py_XINCREF(held->trace);
        PyErr_Restore(held->type, held->value, held->trace);
    }
};

class type_error : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/* Returns the new reference that a Python function gave; throws its exception if it gave NULL. */
inline PyObject *checked(PyObject *p) {
    if (!p) throw error();
    return p;
}

/* Sets the Python exception that belongs to the C++ exception being handled. */
inline void set_python_error() noexcept {
    try {
        throw;
    } catch (const error &e) {
        e.restore();
    } catch (const type_error &e) {
        PyErr_SetString(PyExc_TypeError, e.what());
    } catch (const std::bad_alloc &) {
        PyErr_NoMemory();
    } catch (const std::out_of_range &e) {
        PyErr_SetString(PyExc_IndexError, e.what());
    } catch (const std::invalid_argument &e) {
        PyErr_SetString(PyExc_ValueError, e.what());
    } catch (const std::domain_error &e) {
        PyErr_SetString(PyExc_ValueError, e.what());
    } catch (const std::length_error &e) {
        PyErr_SetString(PyExc_ValueError, e.what());
    } catch (const std::overflow_error &e) {
        PyErr_SetString(PyExc_OverflowError, e.what());
    } catch (const std::exception &e) {
        PyErr_SetString(PyExc_RuntimeError, e.what());
    } catch (...) {
        PyErr_SetString(PyExc_RuntimeError, "an exception of C++ that is no std::exception");
    }
}

/* ---- objects ---- */

/* A counted reference to any Python object, or to none. */
class object {
protected:
    PyObject *p = nullptr;

public:
    object() = default;
    object(const object &other) : p(other.p) { Py_XINCREF(p); }
    object(object &&other) noexcept : p(std::exchange(other.p, nullptr)) {}
    object &operator=(object other) noexcept {
        std::swap(p, other.p);
        return *this;
    }
    ~object() { Py_XDECREF(p); }
    static object steal(PyObject *x) {
        object made;
        made.p = x;
        return made;
    }
    static object borrow(PyObject *x) {
        Py_XINCREF(x);
        return steal(x);
    }
    PyObject *get() const { return p; }
    PyObject *release() { return std::exchange(p, nullptr); }
    explicit operator bool() const { return p != nullptr; }
    object attr(const char *name) const { return steal(checked(PyObject_GetAttrString(p, name))); }
};

/* While a no_gil object lives, other Python threads run: do not touch Python objects. */
class no_gil {
    PyThreadState *state = PyEval_SaveThread();

public:
    no_gil() = default;
    no_gil(const no_gil &) = delete;
    ~no_gil() { PyEval_RestoreThread(state); }
};

/* Sizes or strides. */
class ints {
    const int64_t *first;
    int count;

public:
    ints(const int64_t *first, int count) : first(first), count(count) {}
    const int64_t *begin() const { return first; }
    const int64_t *end() const { return first + count; }
    size_t size() const { return size_t(count); }
    int64_t operator[](size_t i) const { return first[i]; }
    std::vector<int64_t> vec() const { return {begin(), end()}; }
    bool operator==(const ints &other) const { return vec() == other.vec(); }
    bool operator!=(const ints &other) const { return !(*this == other); }
};

template<class T> struct code_of;
#define PT_CODE(type, code) \
    template<> struct code_of<type> { static constexpr int value = code; };
PT_CODE(bool, PT_BOOL)
PT_CODE(uint8_t, PT_UINT8)
PT_CODE(int8_t, PT_INT8)
PT_CODE(uint16_t, PT_UINT16)
PT_CODE(int16_t, PT_INT16)
PT_CODE(uint32_t, PT_UINT32)
PT_CODE(int32_t, PT_INT32)
PT_CODE(uint64_t, PT_UINT64)
PT_CODE(int64_t, PT_INT64)
PT_CODE(float, PT_FLOAT32)
PT_CODE(double, PT_FLOAT64)
PT_CODE(std::complex<float>, PT_COMPLEX64)
PT_CODE(std::complex<double>, PT_COMPLEX128)
#undef PT_CODE

inline const char *dtype_name(int code) {
    static const char *const names[] = {
        "bool",  "uint8",   "int8",     "uint16",  "int16",   "uint32",    "int32",     "uint64",
        "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
        "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
        "complex32"};
    return code >= 0 && code < PT_NDTYPES ? names[code] : "a dtype of a later release";
}

/* The elements of a tensor by their indices, unchecked: a[i][j]. */
template<class T, int N> class accessor {
    T *data;
    const int64_t *sizes_, *strides_;

public:
    accessor(T *data, const int64_t *sizes, const int64_t *strides)
        : data(data), sizes_(sizes), strides_(strides) {}
    decltype(auto) operator[](int64_t i) const {
        if constexpr (N == 1) return (data[i * strides_[0]]);
        else return accessor<T, N - 1>(data + i * strides_[0], sizes_ + 1, strides_ + 1);
    }
    int64_t size(int d) const { return sizes_[d]; }
    int64_t stride(int d) const { return strides_[d]; }
    T *ptr() const { return data; }
};

class Tensor;
template<class T> PyObject *to_python(const T &x);
template<class R = Tensor, class... A> R call(const char *name, const A &...args);

/* A counted reference to a tensor, or to none. */
class Tensor : public object {
    int64_t entry(const int64_t *list, int64_t d) const {
        const int64_t n = dim();
        if (d < -n || d >= n)
            throw std::out_of_range("dim must be in [" + std::to_string(-n) + ", " +
                                    std::to_string(n - 1) + "], got " + std::to_string(d));
        return list[d < 0 ? d + n : d];
    }
    template<class T> void expect(const char *what) const {
        using E = std::remove_const_t<T>;
        if (dtype() != code_of<E>::value)
            throw type_error(std::string(what) + ": expected a tensor of " +
                             dtype_name(code_of<E>::value) + ", got " + dtype_name(dtype()));
        if (device() != PT_CPU)
            throw std::invalid_argument(std::string(what) + ": the tensor is not on the CPU");
    }
    void *address(void *(*of)(PyObject *)) const {
        void *found = of(self());
        if (!found && PyErr_Occurred()) throw error();
        return found;
    }

public:
    Tensor() = default;
    static Tensor steal(PyObject *x) {
        Tensor made;
        made.p = x;
        if (!pt_is_tensor(x))
            throw type_error(std::string("expected a Tensor, got ") + Py_TYPE(x)->tp_name);
        return made;
    }
    static Tensor borrow(PyObject *x) {
        Py_INCREF(x);
        return steal(x);
    }
    bool defined() const { return p != nullptr; }
    PyObject *self() const {
        if (!p) throw std::runtime_error("a pt::Tensor that holds no tensor is used");
        return p;
    }

    int64_t dim() const { return pt_ndim(self()); }
    int64_t ndimension() const { return dim(); }
    int64_t numel() const { return pt_numel(self()); }
    ints sizes() const { return {pt_sizes(self()), pt_ndim(p)}; }
    ints strides() const { return {pt_strides(self()), pt_ndim(p)}; }
    int64_t size(int64_t d) const { return entry(pt_sizes(self()), d); }
    int64_t stride(int64_t d) const { return entry(pt_strides(self()), d); }
    int dtype() const { return pt_dtype_of(self()); }
    int scalar_type() const { return dtype(); }
    int64_t itemsize() const { return pt_itemsize_of(self()); }
    int device() const { return pt_device_of(self()); }
    bool is_cpu() const { return device() == PT_CPU; }
    bool is_cuda() const { return device() == PT_CUDA; }
    bool is_contiguous() const { return pt_is_contiguous(self()); }
    bool requires_grad() const { return pt_requires_grad(self()); }
    bool is_floating_point() const { return pt_is(dtype(), PT_KIND_FLOATING); }

    /* The address of the first element, for reading. */
    template<class T> const T *const_data_ptr() const {
        expect<T>("const_data_ptr");
        return static_cast<const T *>(address(pt_table->data_ptr));
    }
    /* The address for writing, which counts as a write in place. */
    template<class T> T *mutable_data_ptr() const {
        expect<T>("mutable_data_ptr");
        return static_cast<T *>(address(pt_table->mutable_data_ptr));
    }
    /* As in PyTorch: autograd does not see what is written there. Read-only memory is
     * refused unless T is const. */
    template<class T> T *data_ptr() const {
        expect<T>("data_ptr");
        return static_cast<T *>(address(std::is_const_v<T> ? pt_table->data_ptr
                                                           : pt_table->raw_data_ptr));
    }
    template<class T, int N> pt::accessor<T, N> accessor() const {
        static_assert(N > 0, "a tensor of no dims has one element: item");
        if (dim() != N)
            throw type_error("accessor: expected a tensor of " + std::to_string(N) +
                             " dims, got one of " + std::to_string(dim()));
        return {data_ptr<T>(), pt_sizes(p), pt_strides(p)};
    }
    template<class T> T item() const;

    /* Calls any method by its name. */
    template<class R = Tensor, class... A> R method(const char *name, const A &...args) const;
    Tensor contiguous() const { return is_contiguous() ? *this : method("contiguous"); }
    Tensor to(int dtype) const {
        return method("to", object::steal(checked(pt_dtype_object(dtype))));
    }
    Tensor reshape(const std::vector<int64_t> &sizes) const { return method("reshape", sizes); }
    Tensor view(const std::vector<int64_t> &sizes) const { return method("view", sizes); }
    std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0) const;
    std::vector<Tensor> split(int64_t size, int64_t dim = 0) const;
    /* Methods with the same arguments and results as in Python: x.sum(), x.sum(1), x.pow(2). */
#define PT_METHOD(name) \
    template<class... A> Tensor name(const A &...args) const { return method(#name, args...); }
#define PT_METHODS(each)                                                                          \
    each(abs) each(add) each(add_) each(addmm) each(all) each(any) each(argmax) each(argmin)      \
        each(bmm) each(ceil) each(clamp) each(clamp_) each(clone) each(copy_) each(cos)           \
            each(cumsum) each(detach) each(diagonal) each(div) each(div_) each(eq) each(erf)      \
                each(exp) each(expand) each(expand_as) each(fill_) each(flatten) each(floor)      \
                    each(gather) each(ge) each(gt) each(index_select) each(le) each(log)          \
                        each(log_softmax) each(lt) each(masked_fill) each(matmul) each(mean)      \
                            each(mm) each(mul) each(mul_) each(ne) each(neg) each(norm)           \
                                each(permute) each(pow) each(prod) each(reciprocal) each(relu)    \
                                    each(reshape_as) each(round) each(rsqrt) each(select)         \
                                        each(sigmoid) each(sign) each(sin) each(softmax)          \
                                            each(sqrt) each(square) each(squeeze) each(sub)       \
                                                each(sub_) each(sum) each(t) each(tan) each(tanh) \
                                                    each(transpose) each(tril) each(triu)         \
                                                        each(type_as) each(unsqueeze)             \
                                                            each(view_as) each(where) each(zero_)
    PT_METHODS(PT_METHOD)
#undef PT_METHOD
    Tensor operator[](int64_t i) const {
        const object index = object::steal(checked(PyLong_FromLongLong(i)));
        return steal(checked(PyObject_GetItem(self(), index.get())));
    }
    Tensor operator-() const { return steal(checked(PyNumber_Negative(self()))); }
    Tensor operator~() const { return steal(checked(PyNumber_Invert(self()))); }
};

}  /* namespace pt */

#include "python_values.h"

namespace pt {

/* ---- calls ---- */

/* Calls any callable. */
template<class R = object, class... A> R invoke(PyObject *f, const A &...args) {
    const object held[] = {object(), object::steal(checked(to_python<A>(args)))...};
    PyObject *given[sizeof...(A) + 1] = {};
    for (size_t i = 0; i <= sizeof...(A); i++) given[i] = held[i].get();
    return result_of<R>(
        PyObject_Vectorcall(f, given + 1, sizeof...(A) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
}

/* An op that is looked up once:  static const pt::op softmax("softmax");  softmax(x, 1) */
class op {
    int id;

public:
    explicit op(const char *name) : id(pt_op_id(name)) {
        if (id < 0) throw error();
    }
    template<class R = Tensor, class... A> R of(const A &...args) const {
        const object held[] = {object(), object::steal(checked(to_python<A>(args)))...};
        PyObject *given[sizeof...(A) + 1] = {};
        for (size_t i = 0; i <= sizeof...(A); i++) given[i] = held[i].get();
        return result_of<R>(pt_call_op(id, given + 1, sizeof...(A), nullptr));
    }
    template<class... A> Tensor operator()(const A &...args) const { return of<Tensor>(args...); }
};

/* A function of ptcore by its name: the name of an op, or a path like "nn.functional.gelu". */
template<class R, class... A> R call(const char *name, const A &...args) {
    object found = object::steal(checked(PyImport_ImportModule("ptcore")));
    for (const char *at = name; at;) {
        const char *dot = std::strchr(at, '.');
        found = found.attr(dot ? std::string(at, size_t(dot - at)).c_str() : at);
        at = dot ? dot + 1 : nullptr;
    }
    return invoke<R>(found.get(), args...);
}
template<class R, class... A> R Tensor::method(const char *name, const A &...args) const {
    return invoke<R>(object::steal(checked(PyObject_GetAttrString(self(), name))).get(), args...);
}
inline std::vector<Tensor> Tensor::chunk(int64_t chunks, int64_t dim) const {
    return method<std::vector<Tensor>>("chunk", chunks, dim);
}
inline std::vector<Tensor> Tensor::split(int64_t size, int64_t dim) const {
    return method<std::vector<Tensor>>("split", size, dim);
}
template<class T> T Tensor::item() const { return method<T>("item"); }

#define PT_OPERATOR(symbol, function)                                                             \
    inline Tensor operator symbol(const Tensor &a, const Tensor &b) {                             \
        return Tensor::steal(checked(function(a.self(), b.self())));                              \
    }                                                                                             \
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>> Tensor operator symbol( \
        const Tensor &a, T b) {                                                                   \
        return Tensor::steal(checked(function(a.self(),                                           \
                                              object::steal(checked(to_python(b))).get())));      \
    }                                                                                             \
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>> Tensor operator symbol( \
        T a, const Tensor &b) {                                                                   \
        return Tensor::steal(checked(function(object::steal(checked(to_python(a))).get(),         \
                                              b.self())));                                        \
    }
PT_OPERATOR(+, PyNumber_Add)
PT_OPERATOR(-, PyNumber_Subtract)
PT_OPERATOR(*, PyNumber_Multiply)
PT_OPERATOR(/, PyNumber_TrueDivide)
PT_OPERATOR(&, PyNumber_And)
PT_OPERATOR(|, PyNumber_Or)
#define PT_COMPARE(symbol, code)                                \
    inline PyObject *compare_##code(PyObject *a, PyObject *b) { \
        return PyObject_RichCompare(a, b, code);                \
    }                                                           \
    PT_OPERATOR(symbol, compare_##code)
PT_COMPARE(<, Py_LT)
PT_COMPARE(<=, Py_LE)
PT_COMPARE(>, Py_GT)
PT_COMPARE(>=, Py_GE)
PT_COMPARE(==, Py_EQ)
PT_COMPARE(!=, Py_NE)
#undef PT_COMPARE
#undef PT_OPERATOR
#define PT_IN_PLACE(symbol, function)                                                            \
    template <class T> Tensor &operator symbol(Tensor &a, const T &b) {                          \
        return a = Tensor::steal(checked(function(a.self(),                                      \
                                                  object::steal(checked(to_python(b))).get()))); \
    }
PT_IN_PLACE(+=, PyNumber_InPlaceAdd)
PT_IN_PLACE(-=, PyNumber_InPlaceSubtract)
PT_IN_PLACE(*=, PyNumber_InPlaceMultiply)
PT_IN_PLACE(/=, PyNumber_InPlaceTrueDivide)
#undef PT_IN_PLACE

/* ---- new tensors ---- */

/* A tensor with uninitialised memory. */
inline Tensor empty(const std::vector<int64_t> &sizes, int dtype = PT_FLOAT32) {
    return Tensor::steal(checked(pt_new_empty(int(sizes.size()), sizes.data(), dtype)));
}
inline Tensor empty_like(const Tensor &x) {
    return x.is_cpu() ? empty(x.sizes().vec(), x.dtype()) : call("empty_like", x);
}
inline Tensor full(const std::vector<int64_t> &sizes, double value, int dtype = PT_FLOAT32) {
    const Tensor made = empty(sizes, dtype);
    return made.method("fill_", value);
}
inline Tensor zeros(const std::vector<int64_t> &sizes, int dtype = PT_FLOAT32) {
    return full(sizes, 0, dtype);
}
inline Tensor ones(const std::vector<int64_t> &sizes, int dtype = PT_FLOAT32) {
    return full(sizes, 1, dtype);
}
inline Tensor zeros_like(const Tensor &x) { return call("zeros_like", x); }
inline Tensor ones_like(const Tensor &x) { return call("ones_like", x); }
/* A tensor over memory that `release` frees when no tensor uses it any more. */
template <class T> Tensor from_blob(T *data, const std::vector<int64_t> &sizes,
                                    void (*release)(void *) = nullptr) {
    struct owned {
        void *data;
        void (*release)(void *);
    };
    const object owner = object::steal(
        checked(PyCapsule_New(new owned{data, release}, nullptr, [](PyObject *capsule) {
            owned *held = static_cast<owned *>(PyCapsule_GetPointer(capsule, nullptr));
            if (held->release) held->release(held->data);
            delete held;
        })));
    return Tensor::steal(checked(pt_wrap(data, int(sizes.size()), sizes.data(), nullptr,
                                         code_of<T>::value, owner.get(), 0)));
}

/* ---- functions for Python ---- */

namespace detail {

struct exported {
    PyMethodDef definition;
    void (*function)();
    std::string name, doc;
    std::vector<std::string> names;         /* of the parameters, if the author gave them */
};
template<class T> struct is_optional : std::false_type {};
template<class T> struct is_optional<std::optional<T>> : std::true_type {};

/* How many parameters at the end are optional. */
template<class... T> constexpr size_t left_out() {
    const bool each[] = {false, is_optional<T>::value...};
    size_t n = 0;
    while (n < sizeof...(T) && each[sizeof...(T) - n]) n++;
    return n;
}
template<class T> T argument(const char *name, size_t k, PyObject *const *args) {
    if (!args[k]) return convert<T>::from(Py_None);
    try {
        return convert<T>::from(args[k]);
    } catch (const type_error &e) {
        throw type_error(std::string(name) + ": argument " + std::to_string(k + 1) + " " +
                         e.what());
    } catch (const std::overflow_error &e) {
        throw std::overflow_error(std::string(name) + ": argument " + std::to_string(k + 1) + " " +
                                  e.what());
    }
}
template <class R, class... A, size_t... I>
PyObject *called(const exported *f, [[maybe_unused]] PyObject *const *args,
                 std::index_sequence<I...>) {
    std::tuple<std::decay_t<A>...> given{argument<std::decay_t<A>>(f->name.c_str(), I, args)...};
    const auto function = reinterpret_cast<R (*)(A...)>(f->function);
    if constexpr (std::is_void_v<R>) {
        function(static_cast<A>(std::get<I>(given))...);
        return Py_NewRef(Py_None);
    } else {
        return to_python<std::decay_t<R>>(function(static_cast<A>(std::get<I>(given))...));
    }
}
/* Puts keyword arguments into their places; false with an exception set. */
inline bool place_words(const exported *f, PyObject *const *values, PyObject *words,
                        PyObject **given, size_t count, size_t all) {
    for (Py_ssize_t w = 0; w < PyTuple_GET_SIZE(words); w++) {
        PyObject *word = PyTuple_GET_ITEM(words, w);
        size_t k = 0;
        while (k < f->names.size() && PyUnicode_CompareWithASCIIString(word, f->names[k].c_str()))
            k++;
        if (k >= all || k >= f->names.size()) {
            PyErr_Format(PyExc_TypeError,
                         f->names.empty() ? "%s: its parameters have no names, got the keyword %R"
                                          : "%s: there is no parameter %R",
                         f->name.c_str(), word);
            return false;
        }
        if (given[k]) {
            PyErr_Format(PyExc_TypeError, "%s: %R is given twice", f->name.c_str(), word);
            return false;
        }
        given[k] = values[count + size_t(w)];
    }
    return true;
}
template <class R, class... A> PyObject *enter(PyObject *self, PyObject *const *args,
                                               Py_ssize_t count, PyObject *words) {
    const exported *f = static_cast<const exported *>(PyCapsule_GetPointer(self, nullptr));
    constexpr size_t all = sizeof...(A), least = all - left_out<std::decay_t<A>...>();
    PyObject *given[all + 1] = {};
    size_t n = size_t(count);
    for (size_t k = 0; k < n && k < all; k++) given[k] = args[k];
    if (words && n <= all) {
        if (!place_words(f, args, words, given, n, all)) return nullptr;
        n += size_t(PyTuple_GET_SIZE(words));
    }
    bool complete = n <= all;
    for (size_t k = 0; k < least; k++) complete &= given[k] != nullptr;
    if (!complete) {
        PyErr_Format(PyExc_TypeError,
                     least == all ? "%s: expected %zu arguments, got %zu"
                                  : "%s: expected at most %zu arguments, got %zu",
                     f->name.c_str(), all, n);
        return nullptr;
    }
    try {
        return called<R, A...>(f, given, std::index_sequence_for<A...>{});
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

}  /* namespace detail */

/* The module that the body of PT_MODULE fills. */
class module {
    PyObject *self;

    template <class R, class... A> void add(const char *name, R (*f)(A...), const char *doc,
                                            const std::vector<std::string> &names) {
        if (!names.empty() && names.size() != sizeof...(A))
            throw std::invalid_argument(std::string(name) + ": expected " +
                                        std::to_string(sizeof...(A)) + " names, got " +
                                        std::to_string(names.size()));
        auto *made = new detail::exported{{}, reinterpret_cast<void (*)()>(f), name, doc, names};
        made->definition = {
            made->name.c_str(),
            reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&detail::enter<R, A...>)),
            METH_FASTCALL | METH_KEYWORDS, made->doc.c_str()};
        const object capsule = object::steal(
            checked(PyCapsule_New(made, nullptr, nullptr))); /* lives as long as the process */
        const object module_name = object::steal(checked(PyModule_GetNameObject(self)));
        const object function = object::steal(
            checked(PyCFunction_NewEx(&made->definition, capsule.get(), module_name.get())));
        if (PyModule_AddObjectRef(self, name, function.get()) < 0) throw error();
    }

public:
    explicit module(PyObject *self) : self(self) {}
    /* Exports a function. With the names of its parameters it also takes keyword arguments. */
    template <class R, class... A>
    module &def(const char *name, R (*f)(A...), const char *doc = "",
                const std::vector<std::string> &names = {}) {
        add(name, f, doc, names);
        return *this;
    }
    template <class R, class... A>
    module &def(const char *name, R (*f)(A...) noexcept, const char *doc = "",
                const std::vector<std::string> &names = {}) {
        add(name, static_cast<R (*)(A...)>(f), doc, names);
        return *this;
    }
    template<class T> module &attr(const char *name, const T &value) {
        const object made = object::steal(checked(to_python<T>(value)));
        if (PyModule_AddObjectRef(self, name, made.get()) < 0) throw error();
        return *this;
    }
    PyObject *get() const { return self; }
};

inline PyObject *make_module(PyModuleDef *definition, void (*fill)(module &)) {
    if (pt_import() < 0) return nullptr;
    PyObject *self = PyModule_Create(definition);
    if (!self) return nullptr;
    try {
        module m(self);
        fill(m);
    } catch (...) {
        set_python_error();
        Py_DECREF(self);
        return nullptr;
    }
    return self;
}

}  /* namespace pt */

#define PT_TEXT_(x) #x
#define PT_TEXT(x) PT_TEXT_(x)
#define PT_MODULE_(name, variable)                              \
    static void pt_fill_##name(pt::module &variable);           \
    PyMODINIT_FUNC PyInit_##name(void) {                        \
        static PyModuleDef definition = {PyModuleDef_HEAD_INIT, \
                                         PT_TEXT(name),         \
                                         nullptr,               \
                                         -1,                    \
                                         nullptr,               \
                                         nullptr,               \
                                         nullptr,               \
                                         nullptr,               \
                                         nullptr};              \
        return pt::make_module(&definition, &pt_fill_##name);   \
    }                                                           \
    static void pt_fill_##name(pt::module &variable)
/* Defines the module of a shared object; the code behind it adds functions to `variable`. */
#define PT_MODULE(name, variable) PT_MODULE_(name, variable)

/* Throws an error whose message is made of text and numbers, unless a condition holds. */
#define PT_CHECK(condition, ...) \
    do { \
        if (!(condition)) throw std::runtime_error(pt::text_of(__VA_ARGS__)); \
    } while (0)

namespace pt {
inline std::string text_of_one(const std::string &x) { return x; }
inline std::string text_of_one(const char *x) { return x; }
template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>> std::string text_of_one(T x) {
    return std::to_string(x);
}
template<class... A> std::string text_of(const A &...parts) {
    std::string made;
    ((made += text_of_one(parts)), ...);
    return made.empty() ? "a check failed" : made;
}
}

/* Runs a lambda with `scalar_t` as the type of a dtype of floats. */
#define PT_DISPATCH_FLOATING(code, name, ...)                                            \
    [&] {                                                                                \
    switch (code) {                                                                      \
    case PT_FLOAT32: {                                                                   \
        using scalar_t = float;                                                          \
        return __VA_ARGS__();                                                            \
    }                                                                                    \
    case PT_FLOAT64: {                                                                   \
        using scalar_t = double;                                                         \
        return __VA_ARGS__();                                                            \
    }                                                                                    \
    default:                                                                             \
        throw pt::type_error(std::string(name) + ": expected float32 or float64, got " + \
                             pt::dtype_name(code));                                      \
    }                                                                                    \
    }()
#endif
