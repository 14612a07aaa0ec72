// What test_extension.py calls: every kind of argument and result, memory, errors, ops.
#include <thread>

#include "offset.h"

std::tuple<bool, int64_t, uint8_t, double, std::string> scalars(bool a, int64_t b, uint8_t c,
                                                                double d, std::string e) {
    return {a, b, c, d, e};
}
std::vector<std::optional<double>> optionals(std::optional<double> a, std::optional<std::string> b,
                                             std::optional<pt::Tensor> c) {
    return {a, b ? std::optional<double>(double(b->size())) : std::nullopt,
            c ? std::optional<double>(double(c->numel())) : std::nullopt};
}
std::vector<std::pair<std::string, std::vector<int64_t>>> nested(
    const std::vector<std::tuple<std::string, std::vector<int64_t>>> &x) {
    std::vector<std::pair<std::string, std::vector<int64_t>>> made;
    for (const auto &[name, numbers] : x) made.emplace_back(name, numbers);
    return made;
}
std::complex<double> conjugate(std::complex<double> x) { return std::conj(x); }
pt::object itself(pt::object x) { return x; }
pt::Tensor same(pt::Tensor x) { return x; }
pt::Tensor none() { return {}; }
void nothing(const pt::Tensor &) {}

std::vector<int64_t> described(const pt::Tensor &x) {
    std::vector<int64_t> made = {x.dim(),           x.numel(),         x.dtype(),   x.device(),
                                 x.is_contiguous(), x.requires_grad(), x.itemsize()};
    for (int64_t n : x.sizes()) made.push_back(n);
    for (int64_t n : x.strides()) made.push_back(n);
    return made;
}
double last_size(const pt::Tensor &x, int64_t d) { return double(x.size(d)); }

pt::Tensor row_sums(pt::Tensor x) {
    const auto a = x.accessor<const double, 2>();
    pt::Tensor y = pt::zeros({a.size(0)}, PT_FLOAT64);
    auto b = y.accessor<double, 1>();
    for (int64_t i = 0; i < a.size(0); i++)
        for (int64_t j = 0; j < a.size(1); j++) b[i] += a[i][j];
    return y;
}
void set_first(pt::Tensor x, double value, bool counted) {
    *(counted ? x.mutable_data_ptr<double>() : x.data_ptr<double>()) = value;
}
pt::Tensor doubled(pt::Tensor x) {
    const pt::Tensor in = x.contiguous();
    pt::Tensor out = pt::empty_like(in);
    PT_DISPATCH_FLOATING(x.dtype(), "doubled", [&] {
        const scalar_t *from = in.const_data_ptr<scalar_t>();
        scalar_t *to = out.data_ptr<scalar_t>();
        for (int64_t i = 0; i < in.numel(); i++) to[i] = 2 * from[i];
    });
    return out;
}
pt::Tensor counted() {
    auto *numbers = new double[3]{1, 2, 3};
    return pt::from_blob(numbers, {3}, [](void *p) { delete[] static_cast<double *>(p); });
}

pt::Tensor formula(pt::Tensor x, pt::Tensor y) {
    static const pt::op softmax("softmax");
    pt::Tensor z = softmax(x * 2 - y / 3.0 + 1, -1);
    z = z + y;
    z *= -x;
    return pt::call("where", x > 0.5, z, pt::call("nn.functional.gelu", y))
               .method("sum", std::vector<int64_t>{1}) -
           x[0][1].item<double>() * 0;
}
std::tuple<pt::Tensor, pt::Tensor> largest(pt::Tensor x) {
    return pt::call<std::tuple<pt::Tensor, pt::Tensor>>("max", x, 1);
}

void fail(int64_t kind) {
    switch (kind) {
    case 0: throw std::invalid_argument("invalid");
    case 1: throw std::out_of_range("range");
    case 2: throw std::bad_alloc();
    case 3: throw std::overflow_error("overflow");
    case 4: throw 4;
    case 5: PT_CHECK(kind > 5, "kind is ", kind); break;
    case 6: pt::call("reshape", pt::ones({3}), std::vector<int64_t>{2}); break;
    case 7: pt::call("no_such_op"); break;
    case 8: pt::Tensor().numel(); break;
    }
}
std::string seen() {
    try {
        pt::call("reshape", pt::ones({3}), std::vector<int64_t>{2});
    } catch (const pt::error &e) {
        return std::string(e.is(PyExc_RuntimeError) ? "RuntimeError: " : "") + e.what();
    }
    return "";
}
double called_back(pt::object f, double x) { return pt::invoke<double>(f.get(), x); }
int64_t without_gil() {
    pt::no_gil free;
    int64_t n = 0;
    std::thread other([&] {
        const PyGILState_STATE state = PyGILState_Ensure();
        n = PyLong_AsLong(pt::object::steal(PyLong_FromLong(OFFSET)).get());
        PyGILState_Release(state);
    });
    other.join();
    return n;
}

PT_MODULE(PT_EXTENSION_NAME, m) {
    m.def("scalars", &scalars, "All of them.")
        .def("named", &optionals, "", {"a", "b", "c"})
        .def("optionals", &optionals)
        .def("nested", &nested)
        .def("conjugate", &conjugate);
    m.def("itself", &itself)
        .def("same", &same)
        .def("none", &none)
        .def("nothing", &nothing)
        .def("described", &described);
    m.def("last_size", &last_size)
        .def("row_sums", &row_sums)
        .def("set_first", &set_first)
        .def("doubled", &doubled);
    m.def("counted", &counted)
        .def("formula", &formula)
        .def("largest", &largest)
        .def("fail", &fail)
        .def("seen", &seen);
    m.def("called_back", &called_back).def("without_gil", &without_gil).attr("OFFSET", OFFSET);
}
