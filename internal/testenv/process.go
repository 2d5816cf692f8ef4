package testenv

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a child process that can be killed, paused and started again.
type process struct {
	name string
	path string
	args []string
	env  []string
	dir  string
	log  logBuffer

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has ended
	err    error         // of cmd; read after exited
}

// start starts the process; it must not be running.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	cmd := exec.Command(p.path, p.args...)
	cmd.Env, cmd.Dir = p.env, p.dir
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	cmd.SysProcAttr = dieWithParent()
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	p.cmd, p.exited, p.err = cmd, exited, nil
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		close(exited)
	}()
	return nil
}

// signal sends s, if the process still runs.
func (p *process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("%s to %s: %v", s, p.name, err)
	}
}

// wait waits for the end, and reports whether it came in time.
func (p *process) wait(within time.Duration) bool {
	p.mu.Lock()
	exited := p.exited
	p.mu.Unlock()
	if exited == nil {
		return true
	}
	select {
	case <-exited:
		return true
	case <-time.After(within):
		return false
	}
}

// running reports whether the process has been started and not ended.
func (p *process) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd != nil && !closed(p.exited)
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// exitCode is that of the ended process, -1 if a signal ended it.
func (p *process) exitCode() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.ProcessState.ExitCode()
}

// kill ends the process at once (SIGKILL works on a stopped one too).
func (p *process) kill(t testing.TB) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	if !p.wait(10 * time.Second) {
		t.Errorf("%s does not die", p.name)
	}
}

func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// endWithTest kills the process when the test ends, and shows what it said
// if the test failed.
func (p *process) endWithTest(t testing.TB) {
	t.Cleanup(func() {
		p.kill(t)
		if t.Failed() {
			t.Logf("the last lines of %s:\n%s", p.name, p.log.tail(60))
		}
	})
}

// logBuffer keeps what a process says, up to a bound.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// maxLog bounds what is kept of one process: a process that logs in a loop
// must not take the test's memory.
const maxLog = 16 << 20

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.b.Len() < maxLog {
		l.b.Write(b)
	}
	return len(b), nil
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBuffer) tail(lines int) string {
	all := strings.Split(strings.TrimRight(l.String(), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
