package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

// leaseGrace is how long, in seconds, a leased counter outlives its window: a
// server's clock that steps back by less finds what was granted.
const leaseGrace = 300

// maxLimit is the largest limit that scripts compare exactly. Larger ones are
// taken for it, which admits less.
const maxLimit = 1<<53 - 1

// job is what an operation does in a pipeline. It owns all that it holds, so
// that a caller that has left does not matter.
type job interface {
	// send adds the commands, and returns how many.
	send(ctx context.Context, p *pipeline) int
	// receive reads their replies.
	receive() error
}

// countJob is gale.Store.Count.
type countJob struct {
	steps []gale.CountStep
	adds  []*redis.IntCmd // by step, nil for refunds
	lives []*redis.BoolCmd
	backs []*scriptCall // by step, nil for adds
}

func newCountJob(steps []gale.CountStep) *countJob {
	return &countJob{steps: slices.Clone(steps)}
}

func (j *countJob) send(ctx context.Context, p *pipeline) int {
	j.adds = make([]*redis.IntCmd, len(j.steps))
	j.lives = make([]*redis.BoolCmd, len(j.steps))
	for i := range j.steps {
		s := &j.steps[i]
		if s.Op == gale.CountRefund {
			if j.backs == nil {
				j.backs = make([]*scriptCall, len(j.steps))
			}
			keys := []string{s.Key}
			if len(j.steps) == 1 {
				j.backs[i] = p.call(ctx, giveBackScript, keys, decimal(s.Hits))
			} else {
				j.backs[i] = p.callInOrder(ctx, giveBackScript, keys, decimal(s.Hits))
			}
			continue
		}
		j.adds[i] = p.IncrBy(ctx, s.Key, int64(min(s.Hits, math.MaxInt64)))
		j.lives[i] = p.Expire(ctx, s.Key, time.Duration(min(max(s.TTL, 1), maxTTL))*time.Second)
	}
	return 2 * len(j.steps)
}

// maxTTL keeps a time to live within time.Duration: 290 years.
const maxTTL = math.MaxInt64 / int64(time.Second)

func (j *countJob) receive() error {
	var overflow error
	for i := range j.steps {
		s := &j.steps[i]
		if j.adds[i] == nil {
			reply, err := j.backs[i].strings(2)
			if err != nil {
				return err
			}
			s.After = reply.counter(0)
			continue
		}
		after, err := j.adds[i].Result()
		if err == nil {
			err = j.lives[i].Err()
		}
		if isOverflow(err) {
			overflow = fmt.Errorf("counter %q: %w", s.Key, gale.ErrOverflow)
			continue
		}
		if err != nil {
			return err
		}
		s.After = uint64(max(after, 0))
	}
	return overflow
}

// isOverflow recognises the reply of INCRBY at the counter's end.
func isOverflow(err error) bool {
	return err != nil && strings.Contains(err.Error(), "would overflow")
}

// allJob is gale.Store.CountAll.
type allJob struct {
	steps []gale.CountStep
	taken bool
	call  *scriptCall
}

func newAllJob(steps []gale.CountStep) *allJob { return &allJob{steps: slices.Clone(steps)} }

func (j *allJob) send(ctx context.Context, p *pipeline) int {
	keys := make([]string, len(j.steps))
	args := make([]any, 0, 4*len(j.steps))
	for i := range j.steps {
		s := &j.steps[i]
		keys[i] = s.Key
		bystander := "0"
		if s.Bystander {
			bystander = "1"
		}
		args = append(args, decimal(s.Hits), decimal(min(s.Limit, maxLimit)), bystander, max(s.TTL, 1))
	}
	j.call = p.call(ctx, countAllScript, keys, args...)
	return 1
}

func (j *allJob) receive() error {
	reply, err := j.call.strings(len(j.steps) + 1)
	if err != nil {
		return err
	}
	if reply[0] == "-1" {
		return gale.ErrOverflow
	}
	j.taken = reply[0] == "1"
	sums := make(map[string]uint64, len(j.steps))
	for i := range j.steps {
		s := &j.steps[i]
		sum, known := sums[s.Key]
		if !known {
			sum = reply.counter(i + 1)
		}
		sum, carry := bits.Add64(sum, s.Hits, 0)
		if carry != 0 || sum > math.MaxInt64 {
			sum = math.MaxInt64
		}
		sums[s.Key], s.After = sum, sum
	}
	return nil
}

// leaseJob is gale.Store.Lease.
type leaseJob struct {
	steps []gale.LeaseStep
	calls []*scriptCall
	wait  *waitCall // of replicated grants, else nil
	// replicaTimeout bounds the wait for a replica.
	replicaTimeout time.Duration
}

func newLeaseJob(steps []gale.LeaseStep, replicaTimeout time.Duration) *leaseJob {
	return &leaseJob{steps: slices.Clone(steps), replicaTimeout: replicaTimeout}
}

// replicated reports whether a replica must acknowledge some step.
func (j *leaseJob) replicated() bool {
	return slices.ContainsFunc(j.steps, func(s gale.LeaseStep) bool { return s.Replicated })
}

func (j *leaseJob) send(ctx context.Context, p *pipeline) int {
	j.calls = make([]*scriptCall, len(j.steps))
	for i := range j.steps {
		s := &j.steps[i]
		keys := []string{s.Key + strconv.FormatInt(s.Window*s.Length, 10)}
		if s.Return > 0 {
			j.calls[i] = p.call(ctx, giveBackScript, keys, decimal(min(s.Return, math.MaxInt64)))
			continue
		}
		j.calls[i] = p.call(ctx, leaseScript, keys, s.Window, max(s.Length, 1), decimal(min(s.Limit, maxLimit)),
			decimal(min(s.Want, maxLimit)), decimal(min(s.Need, maxLimit)), decimal(max(min(s.Taper, maxLimit), 1)), leaseGrace)
	}
	if j.replicated() {
		// On the same connection, after the grants: WAIT is about what this
		// connection wrote.
		j.wait = p.wait(ctx, j.replicaTimeout)
	}
	return len(j.steps)
}

func (j *leaseJob) receive() error {
	acknowledged := j.wait != nil && j.wait.acknowledged()
	for i := range j.steps {
		if err := j.receiveStep(i); err != nil {
			return err
		}
		s := &j.steps[i]
		s.Lost = s.Replicated && s.Grant > 0 && !acknowledged
	}
	return nil
}

func (j *leaseJob) receiveStep(i int) error {
	s := &j.steps[i]
	s.Grant, s.Free, s.Stale = 0, 0, false
	if s.Return > 0 {
		reply, err := j.calls[i].strings(2)
		if err != nil {
			return err
		}
		s.Counter, s.StoreMicros = reply.counter(0), int64(reply.counter(1))
		return nil
	}
	reply, err := j.calls[i].strings(5)
	if err != nil {
		return err
	}
	s.Grant, s.Counter, s.Free = reply.counter(0), reply.counter(1), reply.counter(2)
	s.Stale = reply[3] == "1"
	s.StoreMicros = int64(reply.counter(4))
	return nil
}

// announceJob is gale.Store.Announce.
type announceJob struct {
	key, id string
	ttl     time.Duration
	live    int
	call    *scriptCall
}

func (j *announceJob) send(ctx context.Context, p *pipeline) int {
	j.call = p.call(ctx, announceScript, []string{j.key}, j.id, j.ttl.Milliseconds())
	return 1
}

func (j *announceJob) receive() error {
	live, err := j.call.cmd.Int()
	j.live = live
	return err
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// replies is a script's array of numbers as text.
type replies []string

var errReply = errors.New("reply of another form than the script's")

// strings reads a reply of n numbers.
func (c *scriptCall) strings(n int) (replies, error) {
	values, err := c.cmd.Slice()
	if err != nil {
		return nil, err
	}
	if len(values) != n {
		return nil, errReply
	}
	r := make(replies, n)
	for i, v := range values {
		switch v := v.(type) {
		case string:
			r[i] = v
		case int64:
			r[i] = strconv.FormatInt(v, 10)
		default:
			return nil, errReply
		}
	}
	return r, nil
}

// counter is the i-th number; a counter below 0 is not ours, and counts as 0.
func (r replies) counter(i int) uint64 {
	n, err := strconv.ParseInt(r[i], 10, 64)
	if err != nil {
		return 0
	}
	return uint64(max(n, 0))
}
