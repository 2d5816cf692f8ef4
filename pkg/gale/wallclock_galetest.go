//go:build galetest

package gale

import (
	"os"
	"sync"
	"time"
)

// wallOffset is TEST_WALL_OFFSET, such as "-3h".
var wallOffset = sync.OnceValue(func() time.Duration {
	d, err := time.ParseDuration(os.Getenv("TEST_WALL_OFFSET"))
	if err != nil {
		panic("TEST_WALL_OFFSET: " + err.Error())
	}
	return d
})

// wall is t on a machine whose wall clock is off by TEST_WALL_OFFSET. Its
// monotonic clock, timers and deadlines are right, as they are on such a
// machine.
func wall(t time.Time) time.Time { return t.Add(wallOffset()) }
