package main

import (
	"io"
	"log/slog"
	"time"

	"github.com/gale-rls/gale-rls/internal/settings"
)

// newLogger logs as envoyproxy/ratelimit does: time, level and msg, or in JSON
// @timestamp, level and @message; level names in lower case.
func newLogger(s settings.Log, w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: logLevel(s.Level), ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) > 0 {
			return a
		}
		switch a.Key {
		case slog.TimeKey:
			if s.JSON {
				a.Key = "@timestamp"
			}
			a.Value = slog.StringValue(a.Value.Time().Format(time.RFC3339Nano))
		case slog.LevelKey:
			a.Value = slog.StringValue(levelName(a.Value.Any().(slog.Level)))
		case slog.MessageKey:
			if s.JSON {
				a.Key = "@message"
			}
		}
		return a
	}}
	if s.JSON {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

func logLevel(name string) slog.Level {
	switch name {
	case "panic", "fatal", "error":
		return slog.LevelError
	case "info":
		return slog.LevelInfo
	case "debug", "trace":
		return slog.LevelDebug
	default:
		return slog.LevelWarn
	}
}

func levelName(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "error"
	case l >= slog.LevelWarn:
		return "warning"
	case l >= slog.LevelInfo:
		return "info"
	default:
		return "debug"
	}
}
