// Attention by cuDNN: a graph of one operation. Its plan, the first proposal of cuDNN's heuristics
// that can be built, is made once for sizes, strides, dtype and settings, and kept. Building a plan
// takes a second, because cuDNN compiles a kernel.
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "cudnn.hpp"
#include "driver.hpp"

namespace pt_cuda {
namespace {

enum { TYPE_FLOAT = 0, TYPE_HALF = 2, TYPE_BFLOAT16 = 9 };
// cudnnBackendDescriptorType_t
enum {
    ENGINECFG = 3,
    ENGINEHEUR = 4,
    EXECUTION_PLAN = 5,
    OPERATIONGRAPH = 15,
    VARIANT_PACK = 16,
    TENSOR = 17,
    DEVICEPROP = 38,
    OPERATION_SDPA_FWD = 41,
    OPERATION_SDPA_BWD = 43,
    OPERATION_DIAGONAL_BAND_MASK = 44,
    ENGINE = 2
};
// cudnnBackendAttributeType_t
enum {
    HANDLE = 0,
    DATA_TYPE = 1,
    BOOLEAN = 2,
    INT64 = 3,
    VOID_PTR = 6,
    HEUR_MODE = 8,
    NUMERICAL_NOTE = 11,
    POINTWISE_MODE = 14,
    BACKEND_DESCRIPTOR = 15,
    CHAR = 24
};
// cudnnBackendAttributeName_t
enum {
    ENGINEHEUR_MODE = 200,
    ENGINEHEUR_OPERATION_GRAPH = 201,
    ENGINEHEUR_RESULTS = 202,
    ENGINEHEUR_DEVICEPROP = 204,
    ENGINECFG_ENGINE = 300,
    EXECUTION_PLAN_HANDLE = 400,
    EXECUTION_PLAN_ENGINE_CONFIG = 401,
    EXECUTION_PLAN_WORKSPACE_SIZE = 402,
    EXECUTION_PLAN_DEVICEPROP = 407,
    OPERATIONGRAPH_HANDLE = 800,
    OPERATIONGRAPH_OPS = 801,
    TENSOR_BYTE_ALIGNMENT = 900,
    TENSOR_DATA_TYPE = 901,
    TENSOR_DIMENSIONS = 902,
    TENSOR_STRIDES = 903,
    TENSOR_UNIQUE_ID = 906,
    TENSOR_IS_VIRTUAL = 907,
    TENSOR_IS_BY_VALUE = 908,
    VARIANT_PACK_UNIQUE_IDS = 1000,
    VARIANT_PACK_DATA_POINTERS = 1001,
    VARIANT_PACK_WORKSPACE = 1003,
    ENGINE_NUMERICAL_NOTE = 1303,
    DEVICEPROP_JSON_REPRESENTATION = 2702,
    OPERATION_SDPA_FWD_QDESC = 2800,
    OPERATION_SDPA_FWD_KDESC = 2801,
    OPERATION_SDPA_FWD_VDESC = 2802,
    OPERATION_SDPA_FWD_ODESC = 2803,
    OPERATION_SDPA_FWD_STATSDESC = 2804,
    OPERATION_SDPA_FWD_SCALEDESC = 2805,
    OPERATION_SDPA_FWD_SUBGRAPH = 2811,
    OPERATION_SDPA_BWD_QDESC = 2851,
    OPERATION_SDPA_BWD_KDESC = 2852,
    OPERATION_SDPA_BWD_VDESC = 2853,
    OPERATION_SDPA_BWD_ODESC = 2854,
    OPERATION_SDPA_BWD_STATSDESC = 2855,
    OPERATION_SDPA_BWD_SCALEDESC = 2856,
    OPERATION_SDPA_BWD_DQDESC = 2859,
    OPERATION_SDPA_BWD_DKDESC = 2860,
    OPERATION_SDPA_BWD_DVDESC = 2861,
    OPERATION_SDPA_BWD_DODDESC = 2862,
    OPERATION_SDPA_BWD_SUBGRAPH = 2867,
    OPERATION_DIAGONAL_BAND_MASK_XDESC = 3000,
    OPERATION_DIAGONAL_BAND_MASK_BDESC = 3005,
    OPERATION_DIAGONAL_BAND_MASK_YDESC = 3006,
    OPERATION_DIAGONAL_BAND_MASK_COMPARISON_MODE = 3007
};
enum {
    HEUR_MODE_FALLBACK = 2,
    HEUR_MODE_A = 3,
    POINTWISE_CMP_GE = 303,
    NUMERICAL_NOTE_NONDETERMINISTIC = 4
};
enum { FIRST_VERSION = 92100 };    // of cuDNN with a subgraph for masks in attention
enum { MOST_PLANS = 512 };

// A descriptor of cuDNN. After a call has failed, no further call is made.
class Descriptor {
public:
    explicit Descriptor(int kind) { status = dnn.descriptor_create(kind, &made); }
    Descriptor(const Descriptor &) = delete;
    Descriptor &operator=(const Descriptor &) = delete;
    ~Descriptor() {
        if (made) dnn.descriptor_destroy(made);
    }
    Descriptor &set(int name, int type, int64_t count, const void *values) {
        if (!status) status = dnn.attribute_set(made, name, type, count, values);
        return *this;
    }
    Descriptor &set(int name, const Descriptor &d) {
        if (!status) status = d.status;
        return set(name, BACKEND_DESCRIPTOR, 1, &d.made);
    }
    Descriptor &number(int name, int64_t value) { return set(name, INT64, 1, &value); }
    Descriptor &word(int name, int type, int value) { return set(name, type, 1, &value); }
    Descriptor &flag(int name) {
        const bool on = true;
        return set(name, BOOLEAN, 1, &on);
    }
    const Descriptor &finished() {
        if (!status) status = dnn.finalize(made);
        return *this;
    }
    void *made = nullptr;
    int status;
};

// The numbers that name tensors in a graph and when it is run.
enum {
    NONE,
    QUERY,
    KEY,
    VALUE,
    RESULT,
    LSE,
    SCALE,
    GRADIENT,
    GRAD_QUERY,
    GRAD_KEY,
    GRAD_VALUE,
    SCORES,
    SEEN,
    UNSEEN,
    NAMES
};

struct Slot {
    int name, forward, backward;        // the operation's attribute, or 0
};
const Slot SLOTS[] = {{QUERY, OPERATION_SDPA_FWD_QDESC, OPERATION_SDPA_BWD_QDESC},
                      {KEY, OPERATION_SDPA_FWD_KDESC, OPERATION_SDPA_BWD_KDESC},
                      {VALUE, OPERATION_SDPA_FWD_VDESC, OPERATION_SDPA_BWD_VDESC},
                      {RESULT, OPERATION_SDPA_FWD_ODESC, OPERATION_SDPA_BWD_ODESC},
                      {LSE, OPERATION_SDPA_FWD_STATSDESC, OPERATION_SDPA_BWD_STATSDESC},
                      {SCALE, OPERATION_SDPA_FWD_SCALEDESC, OPERATION_SDPA_BWD_SCALEDESC},
                      {GRADIENT, 0, OPERATION_SDPA_BWD_DODDESC},
                      {GRAD_QUERY, 0, OPERATION_SDPA_BWD_DQDESC},
                      {GRAD_KEY, 0, OPERATION_SDPA_BWD_DKDESC},
                      {GRAD_VALUE, 0, OPERATION_SDPA_BWD_DVDESC}};

// A plan, with all descriptors that it was made of. It serves the threads of a device, one at a
// time, each with its own handle.
struct Plan {
    std::mutex lock;                    // guards what follows
    std::vector<std::unique_ptr<Descriptor>> parts;
    bool tried = false;
    bool kept = false;                  // a graph has captured its kernel, which must stay
    const Descriptor *plan = nullptr;   // NULL: cuDNN has none
    int64_t room = 0;
    uint64_t used = 0;                  // the number of the last call; guarded by the table's lock

    Descriptor &part(int kind) {
        parts.emplace_back(new Descriptor(kind));
        return *parts.back();
    }
};
typedef std::shared_ptr<Plan> Shared;
std::mutex lock;    // guards `plans` and `calls`; never destroyed, as threads may outlive main
std::unordered_map<std::string, Shared> &plans = *new std::unordered_map<std::string, Shared>;
uint64_t calls;

void pack_strides(const int64_t (&sizes)[4], int64_t (&strides)[4]) {
    int64_t step = 1;
    for (int d = 3; d >= 0; d--) strides[d] = step, step *= sizes[d];
}

// VIRTUAL: the tensor has no memory; BY_VALUE: the host gives its value when the graph is run.
enum Kind { IN_MEMORY, VIRTUAL, BY_VALUE };
const Descriptor &tensor(Plan &p, int name, int type, const int64_t (&sizes)[4],
                         const int64_t (&strides)[4], Kind kind) {
    Descriptor &d = p.part(TENSOR);
    d.word(TENSOR_DATA_TYPE, DATA_TYPE, type)
        .set(TENSOR_DIMENSIONS, INT64, 4, sizes)
        .set(TENSOR_STRIDES, INT64, 4, strides);
    d.number(TENSOR_UNIQUE_ID, name).number(TENSOR_BYTE_ALIGNMENT, 16);
    if (kind != IN_MEMORY) d.flag(kind == VIRTUAL ? TENSOR_IS_VIRTUAL : TENSOR_IS_BY_VALUE);
    return d.finished();
}
const Descriptor &packed_tensor(Plan &p, int name, int type, const int64_t (&sizes)[4], Kind kind) {
    int64_t strides[4];
    pack_strides(sizes, strides);
    return tensor(p, name, type, sizes, strides, kind);
}
const int64_t ONE[4] = {1, 1, 1, 1};

// Adds a subgraph that masks the scores before their softmax: query i sees the keys up to i.
void look_back(Plan &p, const DnnAttention &k, Descriptor &operation, int attribute) {
    const int64_t sizes[4] = {k.n, k.heads, k.l, k.s};
    Descriptor &mask = p.part(OPERATION_DIAGONAL_BAND_MASK), &graph = p.part(OPERATIONGRAPH);
    mask.set(OPERATION_DIAGONAL_BAND_MASK_XDESC,
             packed_tensor(p, SCORES, TYPE_FLOAT, sizes, VIRTUAL));
    mask.set(OPERATION_DIAGONAL_BAND_MASK_BDESC,
             packed_tensor(p, UNSEEN, TYPE_FLOAT, ONE, BY_VALUE));
    mask.set(OPERATION_DIAGONAL_BAND_MASK_YDESC,
             packed_tensor(p, SEEN, TYPE_FLOAT, sizes, VIRTUAL));
    mask.word(OPERATION_DIAGONAL_BAND_MASK_COMPARISON_MODE, POINTWISE_MODE, POINTWISE_CMP_GE);
    graph.set(OPERATIONGRAPH_OPS, mask.finished());
    operation.set(attribute, graph.finished())
        .number(attribute + 1, SCORES)
        .number(attribute + 2, SEEN);
}

const Descriptor &graph_of(Plan &p, const DnnAttention &k, void *handle) {
    Descriptor &operation = p.part(k.backward ? OPERATION_SDPA_BWD : OPERATION_SDPA_FWD),
               &graph = p.part(OPERATIONGRAPH);
    const int64_t q[4] = {k.n, k.heads, k.l, k.e}, key[4] = {k.n, k.held, k.s, k.e},
                  value[4] = {k.n, k.held, k.s, k.v};
    const int64_t out[4] = {k.n, k.heads, k.l, k.v}, lse[4] = {k.n, k.heads, k.l, 1};
    for (const Slot &slot : SLOTS) {
        const int attribute = k.backward ? slot.backward : slot.forward;
        if (!attribute) continue;
        const Descriptor *d = nullptr;
        switch (slot.name) {
        case QUERY: d = &tensor(p, slot.name, k.type, q, k.query_strides, IN_MEMORY); break;
        case KEY: d = &tensor(p, slot.name, k.type, key, k.key_strides, IN_MEMORY); break;
        case VALUE: d = &tensor(p, slot.name, k.type, value, k.value_strides, IN_MEMORY); break;
        case GRADIENT: d = &tensor(p, slot.name, k.type, out, k.gradient_strides, IN_MEMORY); break;
        case RESULT: d = &packed_tensor(p, slot.name, k.type, out, IN_MEMORY); break;
        case LSE: d = &packed_tensor(p, slot.name, TYPE_FLOAT, lse, IN_MEMORY); break;
        case SCALE: d = &packed_tensor(p, slot.name, TYPE_FLOAT, ONE, BY_VALUE); break;
        case GRAD_QUERY: d = &packed_tensor(p, slot.name, k.type, q, IN_MEMORY); break;
        case GRAD_KEY: d = &packed_tensor(p, slot.name, k.type, key, IN_MEMORY); break;
        default: d = &packed_tensor(p, slot.name, k.type, value, IN_MEMORY);
        }
        operation.set(attribute, *d);
    }
    if (k.causal)
        look_back(p, k, operation,
                  k.backward ? OPERATION_SDPA_BWD_SUBGRAPH : OPERATION_SDPA_FWD_SUBGRAPH);
    if (handle) graph.set(OPERATIONGRAPH_HANDLE, HANDLE, 1, &handle);
    return graph.set(OPERATIONGRAPH_OPS, operation.finished()).finished();
}

bool repeats_itself(const Descriptor &config) {
    enum { MOST = 16 };
    Descriptor engine(ENGINE);
    int64_t count = 0;
    int notes[MOST];
    if (engine.status ||
        dnn.attribute_get(config.made, ENGINECFG_ENGINE, BACKEND_DESCRIPTOR, 1, &count,
                          &engine.made) ||
        dnn.attribute_get(engine.made, ENGINE_NUMERICAL_NOTE, NUMERICAL_NOTE, MOST, &count, notes))
        return false;
    for (int i = 0; i < count && i < MOST; i++)
        if (notes[i] == NUMERICAL_NOTE_NONDETERMINISTIC) return false;
    return count <= MOST;
}

// Makes a plan for the device of `handle`, or for the one that the descriptor `device` describes.
void make(Plan *p, const DnnAttention &k, void *handle, const Descriptor *device) {
    enum { CHOICES = 16 };
    const Descriptor &graph = graph_of(*p, k, handle);
    for (int mode : {HEUR_MODE_A, HEUR_MODE_FALLBACK}) {
        Descriptor &choice = p->part(ENGINEHEUR);
        choice.set(ENGINEHEUR_OPERATION_GRAPH, graph).word(ENGINEHEUR_MODE, HEUR_MODE, mode);
        if (device) choice.set(ENGINEHEUR_DEVICEPROP, *device);
        if (choice.finished().status) continue;
        void *configs[CHOICES];
        const size_t first = p->parts.size();
        for (void *&config : configs) config = p->part(ENGINECFG).made;
        int64_t count = 0;
        if (dnn.attribute_get(choice.made, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, CHOICES, &count,
                              configs))
            continue;
        for (int64_t i = 0; i < count && i < CHOICES; i++) {
            const Descriptor &config = *p->parts[first + (size_t)i];
            if (k.deterministic && !repeats_itself(config)) continue;
            Descriptor &plan = p->part(EXECUTION_PLAN);
            plan.set(EXECUTION_PLAN_ENGINE_CONFIG, config);
            if (handle) plan.set(EXECUTION_PLAN_HANDLE, HANDLE, 1, &handle);
            if (device) plan.set(EXECUTION_PLAN_DEVICEPROP, *device);
            int64_t found = 0;
            if (plan.finished().status ||
                dnn.attribute_get(plan.made, EXECUTION_PLAN_WORKSPACE_SIZE, INT64, 1, &found,
                                  &p->room))
                continue;
            p->plan = &plan;
            return;
        }
    }
}

// Drops the plan whose last call is the oldest, except plans that a call or a graph has. Its kernel
// may still be running, so the device is waited for. A capture forbids that: nothing is dropped.
void drop_oldest() {
    for (const Device &d : driver.devices)
        if (d.capture_pool) return;
    auto oldest = plans.end();
    for (auto i = plans.begin(); i != plans.end(); ++i)
        if (i->second.use_count() == 1 && !i->second->kept &&
            (oldest == plans.end() || i->second->used < oldest->second->used))
            oldest = i;
    if (oldest == plans.end()) return;
    DnnAttention k;
    std::memcpy(&k, oldest->first.data(), sizeof(k));
    driver.synchronize_device((int)k.device);
    plans.erase(oldest);
}

// The plan for a call, which may not be made yet; NULL if there is none under a capture. Making a
// plan takes a second, so it is left to the caller, who holds the plan's lock alone.
Shared plan_for(const DnnAttention &k, bool capturing) {
    const std::string bytes(reinterpret_cast<const char *>(&k), sizeof(k));
    std::lock_guard<std::mutex> guard(lock);
    const auto at = plans.find(bytes);
    Shared p = at == plans.end() ? nullptr : at->second;
    if (!p) {
        if (capturing) return nullptr;
        if (plans.size() >= MOST_PLANS) drop_oldest();
        p = plans.emplace(bytes, std::make_shared<Plan>()).first->second;
    }
    p->kept |= capturing, p->used = ++calls;
    return p;
}

bool read_strides(const pt_view &v, int64_t (&strides)[4]) {
    if (v.sizes[3] > 1 && v.strides[3] != 1) return false;
    if ((uintptr_t)v.data % 16) return false;
    int64_t packed = v.sizes[3];
    for (int d = 2; d >= 0; d--) {      // the stride of a dim of one element means nothing
        strides[d] = v.sizes[d] > 1 ? v.strides[d] : packed;
        if (strides[d] % 8 || strides[d] < 0) return false;
        packed = strides[d] * v.sizes[d];
    }
    strides[3] = 1;
    return true;
}

}  // namespace

int attend_by_cudnn(pt_call *c, int first, float scale, bool causal) {
    const bool backward = first > 0;
    const pt_view *in = c->in + first;
    const pt_view &q = in[0], &k = in[1], &v = in[2];
    const int dtype = c->out[0].dtype, capability = driver.devices[device_of(c)].capability;
    if (!dnn_settings.enabled || !dnn_settings.attention) return DNN_DECLINES;
    if (dtype != PT_FLOAT16 && dtype != PT_BFLOAT16) return DNN_DECLINES;
    if (capability / 10 != 9 && capability / 10 != 10)
        return DNN_DECLINES;    // on others, our kernels use the same instructions
    DnnAttention a = {};
    a.backward = backward, a.causal = causal, a.deterministic = dnn_settings.repeats();
    a.type = dtype == PT_FLOAT16 ? TYPE_HALF : TYPE_BFLOAT16;
    a.n = q.sizes[0], a.heads = q.sizes[1], a.held = k.sizes[1], a.l = q.sizes[2], a.s = k.sizes[2];
    a.e = q.sizes[3], a.v = v.sizes[3];
    if (!q.numel || !k.numel || !v.numel || a.e % 8 || a.v % 8) return DNN_DECLINES;
    if (!read_strides(q, a.query_strides) || !read_strides(k, a.key_strides) ||
        !read_strides(v, a.value_strides))
        return DNN_DECLINES;
    if (backward) {
        const pt_view &result = in[6], &lse = in[7];
        if (result.dtype != dtype || !result.contiguous || lse.dtype != PT_FLOAT32 ||
            !lse.contiguous)
            return DNN_DECLINES;
        if (c->out[3].numel || !read_strides(c->in[0], a.gradient_strides)) return DNN_DECLINES;
    }
    DnnHandle *const h = dnn_handle(c);
    if (!h || dnn.version() < FIRST_VERSION) return DNN_DECLINES;
    a.device = device_of(c);
    const Shared p = plan_for(a, captures(c));
    if (!p) return DNN_DECLINES;
    std::lock_guard<std::mutex> guard(p->lock);
    if (!p->tried) {
        if (captures(c)) return DNN_DECLINES;   // making a plan loads a module
        make(p.get(), a, h->handle, nullptr);
        p->tried = true;
    }
    if (!p->plan) return DNN_DECLINES;
    const Scratch room(c, p->room);
    if (p->room && !room.data) return DNN_DECLINES;

    const float unseen = -HUGE_VALF;
    const void *data[NAMES] = {};
    data[QUERY] = q.data, data[KEY] = k.data, data[VALUE] = v.data, data[SCALE] = &scale;
    data[RESULT] = backward ? in[6].data : c->out[0].data,
    data[LSE] = backward ? in[7].data : c->out[1].data;
    if (causal) data[UNSEEN] = &unseen;
    if (backward) {
        data[GRADIENT] = c->in[0].data;
        data[GRAD_QUERY] = c->out[0].data, data[GRAD_KEY] = c->out[1].data,
        data[GRAD_VALUE] = c->out[2].data;
    }
    int64_t names[NAMES], count = 0;
    for (int name = 0; name < NAMES; name++)
        if (data[name]) names[count] = name, data[count++] = data[name];
    Descriptor pack(VARIANT_PACK);
    pack.set(VARIANT_PACK_UNIQUE_IDS, INT64, count, names)
        .set(VARIANT_PACK_DATA_POINTERS, VOID_PTR, count, data);
    pack.set(VARIANT_PACK_WORKSPACE, VOID_PTR, 1, &room.data);
    if (pack.finished().status) return DNN_DECLINES;
    return dnn.execute(h->handle, p->plan->made, pack.made) ? (int)DNN_DECLINES
                                                            : wait_if_blocking(c, "attention");
}

int64_t attention_room(const DnnAttention &k, const char *device) {
    Descriptor of(DEVICEPROP);
    of.set(DEVICEPROP_JSON_REPRESENTATION, CHAR, (int64_t)std::strlen(device) + 1, device);
    if (of.finished().status) return -of.status;
    DnnAttention packed = k;
    const int64_t q[4] = {k.n, k.heads, k.l, k.e}, key[4] = {k.n, k.held, k.s, k.e},
                  value[4] = {k.n, k.held, k.s, k.v};
    const int64_t out[4] = {k.n, k.heads, k.l, k.v};
    pack_strides(q, packed.query_strides), pack_strides(key, packed.key_strides);
    pack_strides(value, packed.value_strides), pack_strides(out, packed.gradient_strides);
    Plan p;
    make(&p, packed, nullptr, &of);
    return p.plan ? p.room : -1;
}

}  // namespace pt_cuda
