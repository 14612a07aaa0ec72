// The stand-in cuDNN's graphs: attention and its gradients as one operation each, by their
// definition, in double.
//
// What cuDNN demands is asked for: attributes of their types, set before a descriptor is finalized
// and complete then, tensors of sizes that fit, a plan from what the heuristics proposed, a pointer
// for each tensor that is not virtual.
#include <map>

#include "standin_cudnn.hpp"

using namespace standin_cudnn;

namespace {

enum {
    ENGINE = 2,
    CONFIG = 3,
    HEURISTICS = 4,
    PLAN = 5,
    GRAPH = 15,
    PACK = 16,
    TENSOR = 17,
    FORWARD = 41,
    BACKWARD = 43,
    BAND = 44
};
enum {
    AS_HANDLE = 0,
    AS_TYPE = 1,
    AS_BOOL = 2,
    AS_INT64 = 3,
    AS_POINTER = 6,
    AS_HEURISTIC = 8,
    AS_NOTE = 11,
    AS_COMPARISON = 14,
    AS_DESCRIPTOR = 15
};

struct Attribute {
    int kind, name, type;
    int64_t least;                      // how many at least; 0: may be left out
};
const Attribute ATTRIBUTES[] = {
    {HEURISTICS, 200, AS_HEURISTIC, 1}, {HEURISTICS, 201, AS_DESCRIPTOR, 1},
    {PLAN, 400, AS_HANDLE, 1},          {PLAN, 401, AS_DESCRIPTOR, 1},
    {GRAPH, 800, AS_HANDLE, 0},         {GRAPH, 801, AS_DESCRIPTOR, 1},
    {TENSOR, 900, AS_INT64, 1},         {TENSOR, 901, AS_TYPE, 1},
    {TENSOR, 902, AS_INT64, 4},         {TENSOR, 903, AS_INT64, 4},
    {TENSOR, 906, AS_INT64, 1},         {TENSOR, 907, AS_BOOL, 0},
    {TENSOR, 908, AS_BOOL, 0},          {PACK, 1000, AS_INT64, 1},
    {PACK, 1001, AS_POINTER, 1},        {PACK, 1003, AS_POINTER, 1},
    {FORWARD, 2800, AS_DESCRIPTOR, 1},  {FORWARD, 2801, AS_DESCRIPTOR, 1},
    {FORWARD, 2802, AS_DESCRIPTOR, 1},  {FORWARD, 2803, AS_DESCRIPTOR, 1},
    {FORWARD, 2804, AS_DESCRIPTOR, 0},  {FORWARD, 2805, AS_DESCRIPTOR, 0},
    {FORWARD, 2811, AS_DESCRIPTOR, 0},  {FORWARD, 2812, AS_INT64, 0},
    {FORWARD, 2813, AS_INT64, 0},       {BACKWARD, 2851, AS_DESCRIPTOR, 1},
    {BACKWARD, 2852, AS_DESCRIPTOR, 1}, {BACKWARD, 2853, AS_DESCRIPTOR, 1},
    {BACKWARD, 2854, AS_DESCRIPTOR, 1}, {BACKWARD, 2855, AS_DESCRIPTOR, 1},
    {BACKWARD, 2856, AS_DESCRIPTOR, 0}, {BACKWARD, 2859, AS_DESCRIPTOR, 1},
    {BACKWARD, 2860, AS_DESCRIPTOR, 1}, {BACKWARD, 2861, AS_DESCRIPTOR, 1},
    {BACKWARD, 2862, AS_DESCRIPTOR, 1}, {BACKWARD, 2867, AS_DESCRIPTOR, 0},
    {BACKWARD, 2868, AS_INT64, 0},      {BACKWARD, 2869, AS_INT64, 0},
    {BAND, 3000, AS_DESCRIPTOR, 1},     {BAND, 3005, AS_DESCRIPTOR, 1},
    {BAND, 3006, AS_DESCRIPTOR, 1},     {BAND, 3007, AS_COMPARISON, 1}};

int64_t bytes_of(int type) {
    const bool wide =
        type == AS_INT64 || type == AS_HANDLE || type == AS_POINTER || type == AS_DESCRIPTOR;
    return type == AS_BOOL ? 1 : wide ? 8 : 4;
}

struct Values {
    int64_t count;
    std::vector<char> bytes;
};
struct Descriptor {
    int kind;
    bool final = false;
    int choice = 0;                     // of configs and engines: which of the heuristics' results
    std::map<int, Values> values;
    bool has(int name) const { return values.count(name) != 0; }
    template <class T> T at(int name, int64_t i = 0) const {
        T x;
        std::memcpy(&x, values.at(name).bytes.data() + (size_t)i * sizeof(T), sizeof(T));
        return x;
    }
    const Descriptor &to(int name) const { return *at<const Descriptor *>(name); }
};

struct Tensor {
    int type = -1;
    int64_t sizes[4], strides[4];
    const void *data = nullptr;
    double operator()(int64_t a, int64_t b, int64_t c, int64_t d) const {
        return get(data, a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3], type);
    }
    void set(int64_t a, int64_t b, int64_t c, int64_t d, double x) const {
        put(const_cast<void *>(data),
            a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3], type, x);
    }
};
Tensor tensor_of(const Descriptor &d) {
    Tensor t;
    t.type = d.at<int>(901);
    for (int i = 0; i < 4; i++)
        t.sizes[i] = d.at<int64_t>(902, i), t.strides[i] = d.at<int64_t>(903, i);
    return t;
}
bool has_sizes(const Descriptor &d, int64_t a, int64_t b, int64_t c, int64_t e, int type) {
    const Tensor t = tensor_of(d);
    return t.sizes[0] == a && t.sizes[1] == b && t.sizes[2] == c && t.sizes[3] == e &&
           t.type == type;
}

// The mask's graph: of one operation that begins at the tensor with the one number and ends at that
// with the other.
bool is_mask(const Descriptor &of, int attribute) {
    if (!of.has(attribute)) return true;
    const Descriptor &graph = of.to(attribute);
    if (graph.kind != GRAPH || !graph.final || graph.to(801).kind != BAND) return false;
    if (!of.has(attribute + 1) || !of.has(attribute + 2)) return false;
    const Descriptor &mask = graph.to(801);
    return mask.to(3000).at<int64_t>(906) == of.at<int64_t>(attribute + 1) &&
           mask.to(3000).has(907) && mask.to(3006).has(907) &&
           mask.to(3006).at<int64_t>(906) == of.at<int64_t>(attribute + 2) &&
           mask.to(3005).has(908) && mask.at<int>(3007) == 303;
}

bool fits(const Descriptor &d) {
    for (const auto &v : d.values)      // what is told of is finished
        for (const Attribute &a : ATTRIBUTES)
            if (a.kind == d.kind && a.name == v.first && a.type == AS_DESCRIPTOR &&
                !d.to(a.name).final)
                return false;
    if (d.kind != FORWARD && d.kind != BACKWARD) return true;
    const bool back = d.kind == BACKWARD;
    const int q = back ? 2851 : 2800, scale = back ? 2856 : 2805;
    const Tensor query = tensor_of(d.to(q)), key = tensor_of(d.to(q + 1)),
                 value = tensor_of(d.to(q + 2));
    const int64_t n = query.sizes[0], h = query.sizes[1], l = query.sizes[2], e = query.sizes[3],
                  held = key.sizes[1];
    const int64_t s = key.sizes[2], v = value.sizes[3];
    if ((query.type != HALF && query.type != BFLOAT16) || h % held || e % 8 || v % 8) return false;
    if (!has_sizes(d.to(q + 1), n, held, s, e, query.type) ||
        !has_sizes(d.to(q + 2), n, held, s, v, query.type))
        return false;
    if (!has_sizes(d.to(q + 3), n, h, l, v, query.type)) return false;
    if (d.has(q + 4) && !has_sizes(d.to(q + 4), n, h, l, 1, FLOAT)) return false;
    if (d.has(scale) && (!has_sizes(d.to(scale), 1, 1, 1, 1, FLOAT) || !d.to(scale).has(908)))
        return false;
    if (back && (!has_sizes(d.to(2859), n, h, l, e, query.type) ||
                 !has_sizes(d.to(2860), n, held, s, e, query.type) ||
                 !has_sizes(d.to(2861), n, held, s, v, query.type) ||
                 !has_sizes(d.to(2862), n, h, l, v, query.type)))
        return false;
    return is_mask(d, back ? 2867 : 2811);
}

struct Work {
    Tensor q, k, v, o, lse, g, gq, gk, gv;
    double scale;
    bool causal, back;
    void *room;
};

void run(const Work &w) {
    std::memset(w.room, 0xff, WORKSPACE);
    const int64_t heads = w.q.sizes[1], held = w.k.sizes[1], l = w.q.sizes[2], s = w.k.sizes[2];
    const int64_t e = w.q.sizes[3], v = w.v.sizes[3];
    for (int64_t n = 0; n < w.q.sizes[0]; n++)
        for (int64_t of = 0; of < held; of++) {
            std::vector<double> gk((size_t)(s * e), 0.0), gv((size_t)(s * v), 0.0), p((size_t)s),
                gq((size_t)e);
            for (int64_t h = of * (heads / held); h < (of + 1) * (heads / held); h++)
                for (int64_t i = 0; i < l; i++) {
                    const int64_t seen = w.causal && i + 1 < s ? i + 1 : s;
                    double top = -HUGE_VAL, sum = 0, delta = 0;
                    for (int64_t j = 0; j < seen; j++) {
                        p[(size_t)j] = 0;
                        for (int64_t c = 0; c < e; c++)
                            p[(size_t)j] += w.q(n, h, i, c) * w.k(n, of, j, c);
                        p[(size_t)j] *= w.scale;
                        top = std::fmax(top, p[(size_t)j]);
                    }
                    for (int64_t j = 0; j < seen; j++) sum += std::exp(p[(size_t)j] - top);
                    const double lse = w.back ? w.lse(n, h, i, 0) : top + std::log(sum);
                    for (int64_t j = 0; j < seen; j++) p[(size_t)j] = std::exp(p[(size_t)j] - lse);
                    if (!w.back) {
                        if (w.lse.data) w.lse.set(n, h, i, 0, lse);
                        for (int64_t c = 0; c < v; c++) {
                            double x = 0;
                            for (int64_t j = 0; j < seen; j++) x += p[(size_t)j] * w.v(n, of, j, c);
                            w.o.set(n, h, i, c, x);
                        }
                        continue;
                    }
                    for (int64_t c = 0; c < v; c++) delta += w.g(n, h, i, c) * w.o(n, h, i, c);
                    gq.assign((size_t)e, 0.0);
                    for (int64_t j = 0; j < seen; j++) {
                        double slope = -delta;
                        for (int64_t c = 0; c < v; c++) {
                            slope += w.g(n, h, i, c) * w.v(n, of, j, c);
                            gv[(size_t)(j * v + c)] += p[(size_t)j] * w.g(n, h, i, c);
                        }
                        slope *= p[(size_t)j] * w.scale;
                        for (int64_t c = 0; c < e; c++) {
                            gq[(size_t)c] += slope * w.k(n, of, j, c);
                            gk[(size_t)(j * e + c)] += slope * w.q(n, h, i, c);
                        }
                    }
                    for (int64_t c = 0; c < e; c++) w.gq.set(n, h, i, c, gq[(size_t)c]);
                }
            for (int64_t j = 0; w.back && j < s; j++) {
                for (int64_t c = 0; c < e; c++) w.gk.set(n, of, j, c, gk[(size_t)(j * e + c)]);
                for (int64_t c = 0; c < v; c++) w.gv.set(n, of, j, c, gv[(size_t)(j * v + c)]);
            }
        }
}

int plans, last_choice = -1;

}  // namespace

API int standin_cudnn_plans() { return plans; }
API int standin_cudnn_choice() { return last_choice; }

API int cudnnBackendCreateDescriptor(int kind, void **d) {
    Descriptor *const made = new Descriptor;
    made->kind = kind;
    return *d = made, SUCCESS;
}
API int cudnnBackendDestroyDescriptor(void *d) { return delete (Descriptor *)d, SUCCESS; }
API int cudnnBackendSetAttribute(void *p, int name, int type, int64_t count, const void *values) {
    Descriptor *const d = (Descriptor *)p;
    for (const Attribute &a : ATTRIBUTES)
        if (a.kind == d->kind && a.name == name && a.type == type && count >= a.least &&
            count > 0 && values && !d->final) {
            const char *const bytes = (const char *)values;
            d->values[name] = {count, std::vector<char>(bytes, bytes + count * bytes_of(type))};
            return SUCCESS;
        }
    return BAD_PARAM;
}
API int cudnnBackendFinalize(void *p) {
    Descriptor *const d = (Descriptor *)p;
    for (const Attribute &a : ATTRIBUTES)
        if (a.kind == d->kind && a.least && !d->has(a.name)) return BAD_PARAM;
    if (d->final || !fits(*d)) return BAD_PARAM;
    if (d->kind == HEURISTICS) {
        choices++;
        if (declines) return NOT_SUPPORTED;
    }
    if (d->kind == PLAN) {
        if (d->to(401).choice == 1)
            return NOT_SUPPORTED;    // the first that is proposed cannot be built
        plans++;
    }
    d->final = true;
    return SUCCESS;
}
API int cudnnBackendGetAttribute(const void *p, int name, int type, int64_t wanted, int64_t *count,
                                 void *values) {
    const Descriptor *const d = (const Descriptor *)p;
    if (!d->final && d->kind != CONFIG && d->kind != ENGINE) return BAD_PARAM;
    void **const others = (void **)values;
    if (d->kind == HEURISTICS && name == 202 && type == AS_DESCRIPTOR) {
        *count = wanted < 3 ? wanted : 3;
        for (int64_t i = 0; i < *count; i++) {
            Descriptor *const config = (Descriptor *)others[i];
            if (config->kind != CONFIG) return BAD_PARAM;
            config->choice = (int)i + 1, config->final = true;
            config->values[201] = d->values.at(201);
        }
    } else if (d->kind == CONFIG && name == 300 && type == AS_DESCRIPTOR && wanted == 1) {
        ((Descriptor *)others[0])->choice = d->choice, *count = 1;
    } else if (d->kind == ENGINE && name == 1303 && type == AS_NOTE) {
        *count = 2;
        ((int *)values)[0] = 0,
              ((int *)values)[1] = d->choice == 2 ? 4 : 2;    // the second does not repeat itself
    } else if (d->kind == PLAN && name == 402 && type == AS_INT64 && wanted == 1) {
        *(int64_t *)values = WORKSPACE, *count = 1;
    } else {
        return BAD_PARAM;
    }
    return SUCCESS;
}
API int cudnnBackendExecute(void *handle, void *plan_, void *pack_) {
    Handle *const h = (Handle *)handle;
    const Descriptor &plan = *(const Descriptor *)plan_, &pack = *(const Descriptor *)pack_;
    if (!h || !h->set || plan.kind != PLAN || !plan.final || pack.kind != PACK || !pack.final)
        return BAD_PARAM;
    if (pack.values.at(1000).count != pack.values.at(1001).count)
        return BAD_PARAM;
    std::map<int64_t, const void *> data;
    for (int64_t i = 0; i < pack.values.at(1000).count; i++)
        data[pack.at<int64_t>(1000, i)] = pack.at<const void *>(1001, i);
    const Descriptor &op = plan.to(401).to(201).to(801);
    const bool back = op.kind == BACKWARD;
    const int q = back ? 2851 : 2800;
    size_t used = 0;
    const auto given = [&](int name) {
        if (!op.has(name)) return Tensor();
        Tensor t = tensor_of(op.to(name));
        const auto at = data.find(op.to(name).at<int64_t>(906));
        t.data = at == data.end() ? nullptr : at->second;
        used += t.data != nullptr;
        return t;
    };
    Work w = {given(q),
              given(q + 1),
              given(q + 2),
              given(q + 3),
              given(q + 4),
              {},
              {},
              {},
              {},
              1,
              op.has(back ? 2867 : 2811),
              back,
              nullptr};
    if (back) w.g = given(2862), w.gq = given(2859), w.gk = given(2860), w.gv = given(2861);
    const Tensor scale = given(back ? 2856 : 2805);
    if (scale.data) w.scale = *(const float *)scale.data;
    if (w.causal) {
        const auto at = data.find(op.to(back ? 2867 : 2811).to(801).to(3005).at<int64_t>(906));
        if (at == data.end() || *(const float *)at->second != -HUGE_VALF) return BAD_PARAM;
        used++;
    }
    w.room = pack.at<void *>(1003);
    if (used != (back ? 10u : 6u) + w.causal || data.size() != used || !w.room) return BAD_PARAM;
    for (const Tensor *t : {&w.q, &w.k, &w.v, &w.o, &w.g, &w.gq, &w.gk, &w.gv})
        if ((uintptr_t)t->data % 16) return BAD_PARAM;
    launched++;
    last_choice = plan.to(401).choice;
    return queued<Work, run>(*h, w);
}
