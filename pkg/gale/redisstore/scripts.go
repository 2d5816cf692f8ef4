package redisstore

import (
	"context"
	"crypto/sha1"
	_ "embed" // the scripts
	"encoding/hex"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// script is a Lua script and the name that the server gives it.
type script struct {
	source string
	sha    string
}

func newScript(source string) *script {
	sum := sha1.Sum([]byte(source)) // the server's choice of hash
	return &script{source: source, sha: hex.EncodeToString(sum[:])}
}

var (
	//go:embed scripts/count_all.lua
	countAllSource string
	//go:embed scripts/give_back.lua
	giveBackSource string
	//go:embed scripts/lease.lua
	leaseSource string
	//go:embed scripts/announce.lua
	announceSource string
)

// Immutable.
var (
	countAllScript = newScript(countAllSource)
	giveBackScript = newScript(giveBackSource)
	leaseScript    = newScript(leaseSource)
	announceScript = newScript(announceSource)
)

// scriptCall is one call of a script in a pipeline.
type scriptCall struct {
	script *script
	keys   []string
	args   []any
	cmd    *redis.Cmd
}

// pipeline collects the commands of one round trip.
type pipeline struct {
	redis.Pipeliner
	calls []*scriptCall
	waits []*waitCall
}

// waitCall waits for a replica to acknowledge what the pipeline wrote.
type waitCall struct {
	millis int64
	cmd    *redis.Cmd
}

// acknowledged reports whether a replica did.
func (w *waitCall) acknowledged() bool {
	replicas, err := w.cmd.Int()
	return err == nil && replicas >= 1
}

// wait adds a waitCall, for what was added before it.
func (p *pipeline) wait(ctx context.Context, timeout time.Duration) *waitCall {
	w := &waitCall{millis: max(timeout.Milliseconds(), 1)}
	w.cmd = p.Do(ctx, "WAIT", 1, w.millis)
	p.waits = append(p.waits, w)
	return w
}

// call adds a call of a script.
func (p *pipeline) call(ctx context.Context, s *script, keys []string, args ...any) *scriptCall {
	c := &scriptCall{script: s, keys: keys, args: args}
	c.cmd = p.EvalSha(ctx, s.sha, keys, args...)
	p.calls = append(p.calls, c)
	return c
}

// callInOrder is call for a script between other commands. It is sent as
// text, for one that the server did not know would be executed after them.
func (p *pipeline) callInOrder(ctx context.Context, s *script, keys []string, args ...any) *scriptCall {
	return &scriptCall{script: s, keys: keys, args: args, cmd: p.Eval(ctx, s.source, keys, args...)}
}

// exec sends the pipeline and reads the replies into its commands. Scripts
// that the server did not know are sent once more as text: they have not been
// executed. That takes a second round trip, once after the server forgot.
func (p *pipeline) exec(ctx context.Context) {
	p.roundTrip(ctx)
	unknown := false
	for _, c := range p.calls {
		if redis.HasErrorPrefix(c.cmd.Err(), "NOSCRIPT") {
			c.cmd = p.Eval(ctx, c.script.source, c.keys, c.args...)
			unknown = true
		}
	}
	if !unknown {
		return
	}
	for _, w := range p.waits { // the first was about nothing
		w.cmd = p.Do(ctx, "WAIT", 1, w.millis)
	}
	p.roundTrip(ctx)
}

var errNoReply = errors.New("no reply")

// roundTrip sends the commands and reads their replies. A command that was
// not replied to has an error, whatever happened: the driver leaves commands
// as they are when a connection could not be authenticated, and then 0 would
// look like the counter.
func (p *pipeline) roundTrip(ctx context.Context) {
	commands := p.Cmds()
	for _, c := range commands {
		c.SetErr(errNoReply)
	}
	_, err := p.Exec(ctx)
	if err == nil {
		return
	}
	for _, c := range commands {
		if errors.Is(c.Err(), errNoReply) {
			c.SetErr(err)
		}
	}
}

// loadScripts tells the scripts to a new connection's server, so that the
// first request does not pay for it. A server that refuses gets them as text.
func loadScripts(ctx context.Context, c *redis.Conn) error {
	_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, s := range []*script{countAllScript, giveBackScript, leaseScript, announceScript} {
			p.ScriptLoad(ctx, s.source)
		}
		return nil
	})
	var answered redis.Error
	if errors.As(err, &answered) {
		return nil
	}
	return err
}
