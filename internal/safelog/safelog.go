// Package safelog keeps credentials out of logs: texts from outside come through [plain.Safe],
// whoever logs them.
package safelog

import (
	"sync"

	"github.com/go-logr/logr"

	"github.com/trimtab-dev/trimtab/internal/plain"
)

// Logger returns a logger that hides credentials in what passes through it: messages, errors,
// and values that are texts.
func Logger(l logr.Logger) logr.Logger {
	sink := l.GetSink()
	if _, already := sink.(door); already || sink == nil {
		return l
	}
	if s, counts := sink.(logr.CallDepthLogSink); counts { // a door is one more frame
		sink = s.WithCallDepth(1)
	}
	return l.WithSink(door{sink})
}

// Error is err with a text that may be logged; nil of nil. What err is stays known to
// [errors.Is] and [errors.As].
func Error(err error) error {
	if err == nil {
		return nil
	}
	return safeError{err}
}

type safeError struct{ error }

func (e safeError) Error() string { return plain.Safe(e.error.Error()) }
func (e safeError) Unwrap() error { return e.error }

// door is a sink behind which texts are safe.
type door struct{ logr.LogSink }

func (d door) Info(level int, msg string, pairs ...any) {
	d.LogSink.Info(level, plain.Safe(msg), safePairs(pairs)...)
}

func (d door) Error(err error, msg string, pairs ...any) {
	d.LogSink.Error(Error(err), plain.Safe(msg), safePairs(pairs)...)
}

func (d door) WithValues(pairs ...any) logr.LogSink {
	return door{d.LogSink.WithValues(safePairs(pairs)...)}
}

func (d door) WithName(name string) logr.LogSink { return door{d.LogSink.WithName(name)} }

// WithCallDepth implements [logr.CallDepthLogSink].
func (d door) WithCallDepth(depth int) logr.LogSink {
	if s, ok := d.LogSink.(logr.CallDepthLogSink); ok {
		return door{s.WithCallDepth(depth)}
	}
	return d
}

func safePairs(pairs []any) []any {
	out := make([]any, len(pairs))
	for i, p := range pairs {
		switch v := p.(type) {
		case string:
			out[i] = plain.Safe(v)
		case error:
			out[i] = Error(v)
		default:
			out[i] = p
		}
	}
	return out
}

// Lazy returns the logger that with makes of l, made when something is logged first: most passes
// log nothing, and a logger with names and values costs as much as the rest of a pass.
func Lazy(l logr.Logger, with func(logr.Logger) logr.Logger) logr.Logger {
	if l.GetSink() == nil {
		return l
	}
	return l.WithSink(&lazy{logger: l, with: with})
}

// lazy is a sink that is made when it is used.
type lazy struct {
	logger logr.Logger
	with   func(logr.Logger) logr.Logger
	once   sync.Once
	made   logr.LogSink
}

// sink returns the sink that was made.
func (z *lazy) sink() logr.LogSink {
	z.once.Do(func() { z.made = z.with(Logger(z.logger)).GetSink() })
	return z.made
}

// deeper returns the sink for calls that come through one more frame.
func (z *lazy) deeper() logr.LogSink {
	if s, counts := z.sink().(logr.CallDepthLogSink); counts {
		return s.WithCallDepth(1)
	}
	return z.sink()
}

// Init implements [logr.LogSink]; the sink below is initialised already.
func (*lazy) Init(logr.RuntimeInfo) {}

func (z *lazy) Enabled(level int) bool { return z.logger.GetSink().Enabled(level) }

func (z *lazy) Info(level int, msg string, pairs ...any) { z.deeper().Info(level, msg, pairs...) }

func (z *lazy) Error(err error, msg string, pairs ...any) { z.deeper().Error(err, msg, pairs...) }

func (z *lazy) WithValues(pairs ...any) logr.LogSink { return z.sink().WithValues(pairs...) }

func (z *lazy) WithName(name string) logr.LogSink { return z.sink().WithName(name) }

// WithCallDepth implements [logr.CallDepthLogSink].
func (z *lazy) WithCallDepth(depth int) logr.LogSink {
	if s, counts := z.sink().(logr.CallDepthLogSink); counts {
		return s.WithCallDepth(depth)
	}
	return z.sink()
}
