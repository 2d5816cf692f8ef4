package testenv

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// containerRedis starts Redis as a container, for machines that have Docker
// and no redis-server.
func containerRedis(t testing.TB, args []string) *RedisServer {
	t.Helper()
	if err := dockerHealth(); err != nil {
		Missing(t, "Redis", "install redis-server (scripts/setup.sh does on Debian and Ubuntu), "+
			"start Docker, or set GALE_TEST_REDIS=host:port ("+err.Error()+")")
	}
	port := FreePort(t)
	c := &redisContainer{addr: addr(port), port: port, image: pinned(t, "REDIS_IMAGE")}
	c.args = append([]string{"redis-server", "--save", "", "--appendonly", "no"}, args...)
	if err := c.start(); err != nil {
		t.Fatalf("Redis as a container (%s): %v", c.image, err)
	}
	t.Cleanup(func() { c.kill(t) })
	return &RedisServer{Addr: c.addr, own: c}
}

// dockerHealth says whether containers can be started. The library panics
// where it finds no Docker at all.
func dockerHealth() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("no Docker: %v", r)
		}
	}()
	p, err := testcontainers.ProviderDocker.GetProvider()
	if err != nil {
		return fmt.Errorf("no Docker: %w", err)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return p.Health(ctx)
}

// redisContainer is a Redis that runs in a container. Each start is a new
// container on the same port of the host.
type redisContainer struct {
	addr  string
	port  int
	image string
	args  []string
	c     testcontainers.Container
}

func (r *redisContainer) start() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	inside := network.MustParsePort("6379/tcp")
	c, err := testcontainers.Run(ctx, r.image,
		testcontainers.WithCmd(r.args...),
		testcontainers.WithExposedPorts("6379/tcp"),
		testcontainers.WithHostConfigModifier(func(h *container.HostConfig) {
			h.PortBindings = network.PortMap{inside: {{HostPort: fmt.Sprint(r.port)}}}
		}))
	if err != nil {
		return err
	}
	r.c = c
	if !poll(20*time.Second, func() bool { return answersPing(r.addr) }) {
		return errors.New("does not answer PING")
	}
	return nil
}

func (r *redisContainer) kill(t testing.TB) {
	t.Helper()
	if r.c == nil {
		return
	}
	if err := testcontainers.TerminateContainer(r.c, testcontainers.StopTimeout(0)); err != nil {
		t.Errorf("end of the Redis container: %v", err)
	}
	r.c = nil
}

func (r *redisContainer) pause(t testing.TB) {
	t.Helper()
	r.docker(t, func(ctx context.Context, d *testcontainers.DockerClient) error {
		_, err := d.ContainerPause(ctx, r.c.GetContainerID(), client.ContainerPauseOptions{})
		return err
	})
}

func (r *redisContainer) resume(t testing.TB) {
	t.Helper()
	r.docker(t, func(ctx context.Context, d *testcontainers.DockerClient) error {
		_, err := d.ContainerUnpause(ctx, r.c.GetContainerID(), client.ContainerUnpauseOptions{})
		return err
	})
}

// docker asks Docker for what the library itself has no call for.
func (r *redisContainer) docker(t testing.TB, do func(context.Context, *testcontainers.DockerClient) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	d, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		t.Fatalf("Docker: %v", err)
	}
	defer func() { _ = d.Close() }()
	if err := do(ctx, d); err != nil {
		t.Fatalf("Docker: %v", err)
	}
}
