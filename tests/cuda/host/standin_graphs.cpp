// Graphs: work that streams are given while they capture is kept, and queued anew at each launch, a
// line for each stream that took part, with the waits between them alone. So a wait that was
// missing in the capture shows in a launch.
#include <cstdio>
#include <thread>

#include "standin.hpp"

namespace standin {

struct Node {
    int line;
    Work work;
    int waits = -1;             // for which record
    void *record = nullptr, *wait = nullptr;        // events outside of the graph
};

struct Capture {
    StreamRef origin;
    int mode;    // 0: unsafe calls of every thread are refused, 1: of this one, 2: of none
    std::thread::id thread;
    bool invalid = false;
    std::vector<StreamRef> lines;
    std::vector<bool> open;     // no other line waits for the last work yet
    std::vector<Node> nodes;
};

namespace {

struct Graph {
    Context *context;
    size_t lines;
    std::vector<Node> nodes;
};
typedef std::shared_ptr<Graph> GraphRef;

auto &captures = *new std::vector<std::shared_ptr<Capture>>;
auto &graphs = *new std::map<void *, GraphRef>;
auto &programs = *new std::map<void *, GraphRef>;
thread_local int mode_of_thread;

int line_of(const std::shared_ptr<Capture> &c, const StreamRef &stream) {
    for (size_t i = 0; i < c->lines.size(); i++)
        if (c->lines[i] == stream) return (int)i;
    c->lines.push_back(stream);
    c->open.push_back(false);
    stream->capture = c;
    return (int)c->lines.size() - 1;
}

void leave(const std::shared_ptr<Capture> &c) {
    for (auto &s : c->lines) s->capture = nullptr;
    for (size_t i = 0; i < captures.size(); i++)
        if (captures[i] == c) captures.erase(captures.begin() + (long)i--);
}

}  // namespace

void keep(const StreamRef &stream, Work &&work) {
    const std::shared_ptr<Capture> c = stream->capture;
    const int line = line_of(c, stream);
    if (!work.context) work.context = stream->context;
    if (work.marker) work.marker->capture = c, work.marker->number = c->nodes.size();
    else c->open[(size_t)line] = true;
    c->nodes.push_back(Node{line, std::move(work)});
}

// A wait for an event that was recorded in a capture: the stream takes part from now on.
int keep_wait(const StreamRef &stream, const MarkerRef &marker) {
    const std::shared_ptr<Capture> c = marker->capture.lock();
    if (!c || (stream->capture && stream->capture != c)) return CAPTURE_ISOLATION;
    const int line = line_of(c, stream), from = c->nodes[marker->number].line;
    bool last = true;
    for (size_t i = marker->number + 1; i < c->nodes.size(); i++)
        last = last && c->nodes[i].line != from;
    if (last && line != from) c->open[(size_t)from] = false;
    if (line) c->open[(size_t)line] = true;
    Node node{line, Work()};
    node.work.context = stream->context;
    node.waits = (int)marker->number;
    c->nodes.push_back(std::move(node));
    return OK;
}

void keep_external(const StreamRef &stream, void *event, bool waits) {
    const std::shared_ptr<Capture> c = stream->capture;
    Node node{line_of(c, stream), Work()};
    node.work.context = stream->context;
    (waits ? node.wait : node.record) = event;
    c->open[(size_t)node.line] = true;
    c->nodes.push_back(std::move(node));
}

int refused(const StreamRef &stream) {
    if (stream && stream->capture) {
        stream->capture->invalid = true;
        return CAPTURE_UNSUPPORTED;
    }
    for (auto &c : captures)
        if (mode_of_thread != 2 && c->mode != 2 &&
            (c->mode == 0 || c->thread == std::this_thread::get_id())) {
            c->invalid = true;
            return CAPTURE_UNSUPPORTED;
        }
    return OK;
}

// Whether a library's call that allocates memory (1) or also waits (2) may not be made now; the
// capture that it meets is invalid then. A library's calls that wait know no relaxed mode.
STANDIN_API int standin_refused(int kind) {
    STANDIN_CALL("standin_refused", CONTEXT);
    if (kind == 2 && !captures.empty()) {
        for (auto &c : captures) c->invalid = true;
        return CAPTURE_UNSUPPORTED;
    }
    return refused();
}

#define STREAM(handle) \
    StreamRef stream = stream_of(handle, call.context); \
    if (!stream) return INVALID_HANDLE

STANDIN_API int cuStreamBeginCapture_v2(void *handle, int mode) {
    STANDIN_CALL("cuStreamBeginCapture", CONTEXT);
    STREAM(handle);
    if (mode < 0 || mode > 2) return INVALID_VALUE;
    if (stream->legacy) return CAPTURE_UNSUPPORTED;
    if (stream->capture) return ILLEGAL_STATE;
    std::shared_ptr<Capture> c = std::make_shared<Capture>();
    c->origin = stream, c->mode = mode, c->thread = std::this_thread::get_id();
    captures.push_back(c);
    line_of(c, stream);
    return OK;
}

STANDIN_API int cuStreamEndCapture(void *handle, void **graph) {
    STANDIN_CALL("cuStreamEndCapture", CONTEXT);
    STREAM(handle);
    const std::shared_ptr<Capture> c = stream->capture;
    *graph = nullptr;
    if (!c || c->origin != stream) return ILLEGAL_STATE;
    if (c->mode != 2 && c->thread != std::this_thread::get_id()) return CAPTURE_WRONG_THREAD;
    leave(c);
    if (c->invalid) return CAPTURE_INVALIDATED;
    for (size_t i = 1; i < c->open.size(); i++)
        if (c->open[i]) return CAPTURE_UNJOINED;
    GraphRef g(new Graph{stream->context, c->lines.size(), std::move(c->nodes)});
    *graph = g.get();
    graphs[g.get()] = g;
    return OK;
}

STANDIN_API int cuStreamIsCapturing(void *handle, int *status) {
    STANDIN_CALL("cuStreamIsCapturing", CONTEXT);
    STREAM(handle);
    *status = !stream->capture ? 0 : stream->capture->invalid ? 2 : 1;
    return OK;
}

STANDIN_API int cuThreadExchangeStreamCaptureMode(int *mode) {
    if (*mode < 0 || *mode > 2) return INVALID_VALUE;
    std::swap(*mode, mode_of_thread);
    return OK;
}

STANDIN_API int cuGraphInstantiateWithFlags(void **program, void *graph, uint64_t) {
    STANDIN_CALL("cuGraphInstantiate", CONTEXT);
    if (!graphs.count(graph)) return INVALID_HANDLE;
    GraphRef copy(new Graph(*graphs[graph]));
    *program = copy.get();
    programs[copy.get()] = copy;
    return OK;
}
STANDIN_API int cuGraphDestroy(void *graph) {
    STANDIN_CALL("cuGraphDestroy", INITIALISED);
    return graphs.erase(graph) ? OK : INVALID_HANDLE;
}
STANDIN_API int cuGraphExecDestroy(void *program) {
    STANDIN_CALL("cuGraphExecDestroy", INITIALISED);
    return programs.erase(program) ? OK : INVALID_HANDLE;
}
STANDIN_API int cuGraphGetNodes(void *graph, void **, size_t *n) {
    STANDIN_CALL("cuGraphGetNodes", INITIALISED);
    if (!graphs.count(graph)) return INVALID_HANDLE;
    *n = 0;
    for (const Node &node : graphs[graph]->nodes) *n += node.work.run || node.record || node.wait;
    return OK;
}
STANDIN_API int cuGraphDebugDotPrint(void *graph, const char *path, unsigned) {
    STANDIN_CALL("cuGraphDebugDotPrint", INITIALISED);
    if (!graphs.count(graph)) return INVALID_HANDLE;
    FILE *f = fopen(path, "w");
    if (!f) return INVALID_VALUE;
    fprintf(f, "digraph {\n");
    for (size_t i = 0; i < graphs[graph]->nodes.size(); i++) fprintf(f, "  %zu\n", i);
    fprintf(f, "}\n");
    fclose(f);
    return OK;
}

STANDIN_API int cuGraphLaunch(void *program, void *handle) {
    STANDIN_CALL("cuGraphLaunch", CONTEXT);
    STREAM(handle);
    if (!programs.count(program)) return INVALID_HANDLE;
    if (stream->capture) return CAPTURE_UNSUPPORTED;
    const GraphRef g = programs[program];
    for (const Node &node : g->nodes)    // an event that is gone is undefined; here it is an error
        if (void *event = node.record ? node.record : node.wait; event && !newest_record(event))
            return INVALID_HANDLE;
    std::vector<StreamRef> lines;
    std::map<size_t, MarkerRef> records;
    const auto mark = [](const StreamRef &s) {
        Work work;
        const MarkerRef marker = work.marker = std::make_shared<Marker>();
        enqueue(s, std::move(work));
        return marker;
    };
    const auto wait = [](const StreamRef &s, std::vector<MarkerRef> events) {
        Work work;
        work.events = std::move(events);
        enqueue(s, std::move(work));
    };
    const MarkerRef begin = mark(stream);
    for (size_t i = 0; i < g->lines; i++) {
        lines.push_back(line_stream(g->context));
        wait(lines.back(), {begin});
    }
    for (size_t i = 0; i < g->nodes.size(); i++) {
        const Node &node = g->nodes[i];
        const StreamRef &line = lines[(size_t)node.line];
        if (node.work.marker) {
            records[i] = mark(line);
        } else if (node.waits >= 0) {
            wait(line, {records[(size_t)node.waits]});
        } else if (node.record) {
            *newest_record(node.record) = mark(line);
        } else if (node.wait) {
            if (const MarkerRef newest = *newest_record(node.wait); newest && !newest->done)
                wait(line, {newest});
        } else {
            Work work = node.work;
            enqueue(line, std::move(work));
        }
    }
    std::vector<MarkerRef> ends;
    for (auto &line : lines) ends.push_back(mark(line));
    wait(stream, ends);
    state->counters.graphs++;
    after_enqueue(call.lock);
    return OK;
}

}  // namespace standin
