"""A slow model of the caching allocator: plain lists, every statistic counted anew from the state after each change.

It is written from PyTorch's documented rules and knows nothing of the library's data structures: a segment is a list of
blocks, and the best fit is a minimum over all of them.
"""
MIB = 1 << 20
FREE, ALLOCATED, PENDING = 0, 1, 2
NATURES = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes",
           "inactive_split_bytes", "requested_bytes")


class Block:
    def __init__(self, segment, address, size):
        self.segment, self.address, self.size = segment, address, size
        self.state, self.requested = FREE, 0
        self.uses, self.waits = [], 0


class Segment:
    def __init__(self, address, size, stream, large, room=0):
        self.address, self.size, self.stream, self.large = address, size, stream, large
        self.room = room                            # addresses of an expandable segment
        self.blocks = [Block(self, address, size)]


class Model:
    def __init__(self, device=0, limit=1 << 40, max_split=None, divisions=None, expandable=False):
        self.device, self.limit, self.cap, self.expandable = device, limit, None, expandable
        self.max_split, self.divisions = max_split, divisions or [0] * 16
        self.segments, self.lines = [], {}          # lines: stream -> [(ticket, block)] in order
        self.recorded, self.done = {}, {}
        self.next = 0
        self.counters = {}
        self.values = dict.fromkeys(("num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc",
                                     "num_device_free"), 0)
        self.values["max_split_size"] = max_split if max_split else -1
        self.note()

    # statistics

    def count(self):
        now = {f"{nature}.{pool}": 0 for nature in NATURES for pool in ("all", "large_pool", "small_pool")}
        now["oversize_allocations"] = now["oversize_segments"] = 0
        bound = self.max_split or 1 << 62
        for s in self.segments:
            own = {"segment": 1, "reserved_bytes": s.size}
            parts = [own]
            for b in s.blocks:
                part = {}
                if b.state == ALLOCATED:
                    part |= {"allocation": 1, "allocated_bytes": b.size}
                    now["oversize_allocations"] += b.size >= bound
                if b.state != FREE:
                    part |= {"active": 1, "active_bytes": b.size, "requested_bytes": b.requested}
                elif len(s.blocks) > 1:
                    part |= {"inactive_split": 1, "inactive_split_bytes": b.size}
                parts.append(part)
            now["oversize_segments"] += s.size >= bound
            for part in parts:
                for nature, n in part.items():
                    now[nature + ".all"] += n
                    now[nature + (".large_pool" if s.large else ".small_pool")] += n
        return now

    def note(self):
        for key, value in self.count().items():
            c = self.counters.setdefault(key, {"current": 0, "peak": 0, "allocated": 0, "freed": 0})
            change = value - c["current"]
            c["current"] = value
            c["peak"] = max(c["peak"], value)
            c["allocated" if change > 0 else "freed"] += abs(change)

    def stats(self):
        return {f"{key}.{name}": n for key, c in self.counters.items() for name, n in c.items()} | self.values

    def reset_peak(self):
        for c in self.counters.values():
            c["peak"] = c["current"]

    def reset_accumulated(self):
        for c in self.counters.values():
            c["allocated"] = c["freed"] = 0
        self.values["num_alloc_retries"] = self.values["num_ooms"] = 0

    # the rules

    def rounded(self, n):
        if n < 512:
            return 512
        d = self.divisions[min(max(n.bit_length() - 21, 0), 15)]
        unit = 512 if d <= 1 or n <= 512 * d else (1 << (n.bit_length() - 1)) // d
        return -(-n // unit) * unit

    @staticmethod
    def segment_size(size):
        if size <= MIB:
            return 2 * MIB
        return 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB

    def whole_free(self):
        return [s for s in self.segments if len(s.blocks) == 1 and s.blocks[0].state == FREE]

    def drop(self, segment):
        self.segments.remove(segment)
        self.values["num_device_free"] += segment.size // self.piece(segment.large) if segment.room else 1
        self.note()

    # Expandable segments: one for each stream and kind, which grows at its end.

    @staticmethod
    def piece(large):
        return 20 * MIB if large else 2 * MIB

    def expand(self, size, stream, large):
        piece = self.piece(large)
        mine = [s for s in self.segments if s.stream == stream and s.large == large]
        end = mine[0].blocks[-1] if mine else None
        n = -(-(size - (end.size if end and end.state == FREE else 0)) // piece) * piece
        reserved = sum(s.size for s in self.segments)
        if (self.cap is not None and reserved + n > self.cap) or reserved + n > self.limit:
            return None
        self.values["num_device_alloc"] += n // piece
        if not mine:
            room = -(-(self.limit + self.limit // 8) // piece) * piece
            address = self.device + 9 << 52
            for s in sorted(self.segments, key=lambda s: s.address):
                if s.address < address + room and address < s.address + s.room:
                    address = s.address + s.room
            mine = [Segment(address, n, stream, large, room)]
            self.segments += mine
        elif end.state == FREE:
            end.size += n
            mine[0].size += n
        else:
            mine[0].blocks.append(Block(mine[0], mine[0].address + mine[0].size, n))
            mine[0].size += n
        self.note()
        return mine[0].blocks[-1]

    def trim(self, segment):
        end, piece = segment.blocks[-1], self.piece(segment.large)
        n = end.size // piece
        if end.state != FREE or not n:
            return
        end.size -= n * piece
        segment.size -= n * piece
        if not end.size:
            segment.blocks.pop()
        self.values["num_device_free"] += n
        self.note()

    def grow(self, size, stream, large):
        if self.expandable:
            return self.expand(size, stream, large)
        n = self.segment_size(size)
        reserved = sum(s.size for s in self.segments)
        if (self.cap is not None and reserved + n > self.cap) or reserved + n > self.limit:
            return None
        segment = Segment(((self.device + 1) << 44) + self.next, n, stream, large)
        self.next += -(-n // (2 * MIB)) * 2 * MIB + 2 * MIB
        self.segments.append(segment)
        self.values["num_device_alloc"] += 1
        self.note()
        return segment.blocks[0]

    def search(self, size, stream, large):
        fits = [b for s in self.segments if s.large == large and s.stream == stream for b in s.blocks
                if b.state == FREE and b.size >= size]
        if not fits:
            return None
        b = min(fits, key=lambda b: (b.size, b.address))
        if self.max_split:
            if size < self.max_split <= b.size:
                return None
            if size >= self.max_split and b.size >= size + 20 * MIB:
                return None
        return b

    def release_oversize(self, size, stream):
        if not self.max_split:
            return False
        need = max(size, self.max_split)
        mine = sorted((b.size, b.address, b) for s in self.segments if s.large and s.stream == stream
                      for b in s.blocks if b.state == FREE and b.size >= self.max_split)
        enough = [b for n, _, b in mine if n >= need]
        if enough:
            if len(enough[0].segment.blocks) > 1:
                return False
            self.drop(enough[0].segment)
            return True
        total = 0
        for n, _, b in reversed(mine):
            if total >= need:
                break
            if len(b.segment.blocks) == 1:
                total += n
                self.drop(b.segment)
        return total >= need

    def poll(self):
        for stream, line in self.lines.items():
            while line and line[0][0] <= self.done.get(stream, 0):
                self.pop(line)

    def pop(self, line):
        block = line.pop(0)[1]
        block.waits -= 1
        if block.waits == 0:
            self.become_free(block)

    def release_all(self):
        self.values["num_sync_all_streams"] += 1
        for stream, line in self.lines.items():
            if line:
                self.done[stream] = max(self.done.get(stream, 0), line[-1][0])
            while line:
                self.pop(line)
        for s in self.whole_free():
            self.drop(s)
        for s in self.segments:
            if s.room:
                self.trim(s)

    def become_free(self, block):
        block.state, block.requested = FREE, 0
        parts = block.segment.blocks
        i = parts.index(block)
        if i + 1 < len(parts) and parts[i + 1].state == FREE:
            block.size += parts.pop(i + 1).size
        if i > 0 and parts[i - 1].state == FREE:
            parts[i - 1].size += parts.pop(i).size
        self.note()

    # calls

    def allocate(self, n, stream):
        self.poll()
        size = self.rounded(n)
        large = size > MIB
        block = self.search(size, stream, large) or self.grow(size, stream, large)
        if not block and self.release_oversize(size, stream):
            block = self.grow(size, stream, large)
        if not block:
            self.release_all()
            self.values["num_alloc_retries"] += 1
            block = self.search(size, stream, large) or self.grow(size, stream, large)
        if not block:
            self.values["num_ooms"] += 1
            return 0
        rest = block.size - size
        small = not large or block.segment.room
        if rest >= 512 if small else rest > MIB and (not self.max_split or size < self.max_split):
            parts = block.segment.blocks
            parts.insert(parts.index(block) + 1, Block(block.segment, block.address + size, rest))
            block.size = size
        block.state, block.requested = ALLOCATED, n
        self.note()
        return block.address

    def find(self, address):
        return next(b for s in self.segments for b in s.blocks if b.address == address and b.state == ALLOCATED)

    def record(self, address, stream):
        b = self.find(address)
        if stream != b.segment.stream and stream not in b.uses:
            b.uses.append(stream)

    def release(self, address):
        b = self.find(address)
        b.state = PENDING
        self.note()
        for stream in b.uses:
            self.recorded[stream] = self.recorded.get(stream, 0) + 1
            self.lines.setdefault(stream, []).append((self.recorded[stream], b))
            b.waits += 1
        b.uses = []
        if not b.waits:
            self.become_free(b)

    def complete(self, stream, tickets):
        self.done[stream] = min(self.done.get(stream, 0) + tickets, self.recorded.get(stream, 0))

    def empty_cache(self):
        self.release_all()

    def snapshot(self):
        return [(s.address, s.size, b.address, b.size, b.requested if b.state else None, s.stream, 0, int(s.large),
                 b.state, int(s.room > 0)) for s in sorted(self.segments, key=lambda s: s.address) for b in s.blocks]
