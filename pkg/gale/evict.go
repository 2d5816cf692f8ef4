package gale

// Which queue an entry is in.
const (
	inNone uint8 = iota
	inSmall
	inMain
)

// maxFreq caps an entry's use count: two bits, as in the paper.
const maxFreq = 3

// queues choose which key to forget, by S3-FIFO (Yang et al., SOSP 2023): a
// new key waits in a small queue, a tenth of the whole, and moves to the main
// queue only if it was used again; a key that comes back soon after it was
// forgotten enters the main queue at once. A flood of one-off keys passes
// through the small queue and does not move the others. The zero value holds
// nothing.
type queues struct {
	small, main list
	// ghost remembers the hashes of keys that left the small queue, direct
	// mapped; made on the first eviction.
	ghost []uint32
}

// list is a FIFO of entries, linked through them.
type list struct {
	head, tail *entry // push at head, pop at tail
	n          int
}

func (l *list) push(e *entry) {
	e.prev, e.next = nil, l.head
	if l.head != nil {
		l.head.prev = e
	} else {
		l.tail = e
	}
	l.head = e
	l.n++
}

func (l *list) remove(e *entry) {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		l.head = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		l.tail = e.prev
	}
	e.prev, e.next = nil, nil
	l.n--
}

// add enters a new entry.
func (q *queues) add(hash uint64, e *entry) {
	if q.ghost != nil && q.ghost[ghostSlot(hash, len(q.ghost))] == ghostPrint(hash) {
		e.in = inMain
		q.main.push(e)
		return
	}
	e.in = inSmall
	q.small.push(e)
}

// remove takes an entry out without remembering it.
func (q *queues) remove(e *entry) {
	switch e.in {
	case inSmall:
		q.small.remove(e)
	case inMain:
		q.main.remove(e)
	}
	e.in = inNone
}

// victim takes out the entry to forget, for a shard of so many keys. An entry
// with a lease in flight is passed over (its answer must find it); nil when
// all have one.
func (q *queues) victim(capacity int, hash func(string) uint64) *entry {
	for tries := q.small.n + (maxFreq+1)*q.main.n; tries > 0; tries-- {
		if q.small.n > 0 && (q.small.n >= capacity/10 || q.main.n == 0) {
			e := q.small.tail
			q.small.remove(e)
			switch {
			case e.freq > 1 || e.holder.Pending():
				e.in, e.freq = inMain, 0
				q.main.push(e)
			default:
				e.in = inNone
				q.remember(hash(e.key), capacity)
				return e
			}
			continue
		}
		e := q.main.tail
		q.main.remove(e)
		if e.freq > 0 || e.holder.Pending() {
			if e.freq > 0 {
				e.freq--
			}
			q.main.push(e)
			continue
		}
		e.in = inNone
		return e
	}
	return nil
}

func (q *queues) remember(hash uint64, capacity int) {
	if q.ghost == nil {
		n := 1
		for n < capacity {
			n *= 2
		}
		q.ghost = make([]uint32, n)
	}
	q.ghost[ghostSlot(hash, len(q.ghost))] = ghostPrint(hash)
}

func ghostSlot(hash uint64, n int) uint64 { return (hash >> 20) & uint64(n-1) }

// ghostPrint is never 0, which marks a free slot.
func ghostPrint(hash uint64) uint32 { return uint32(hash>>32) | 1 }
