// Package safelog keeps credentials out of logs: it applies [plain.Safe] to everything that is logged.
package safelog

import (
	"sync"

	"github.com/go-logr/logr"

	"github.com/trimtab-dev/trimtab/internal/plain"
)

// Logger returns a logger that removes credentials from messages, errors, and values that are texts.
func Logger(l logr.Logger) logr.Logger {
	sink := l.GetSink()
	if _, already := sink.(door); already || sink == nil {
		return l
	}
	if s, counts := sink.(logr.CallDepthLogSink); counts { // door adds one frame
		sink = s.WithCallDepth(1)
	}
	return l.WithSink(door{sink})
}

// Error returns an error that wraps err and whose text may be logged, or nil if err is nil.
func Error(err error) error {
	if err == nil {
		return nil
	}
	return safeError{err}
}

type safeError struct{ error }

func (e safeError) Error() string { return plain.Safe(e.error.Error()) }
func (e safeError) Unwrap() error { return e.error }

// door is a sink that removes credentials before it calls the next sink.
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

// Lazy returns the logger that with derives from l, but calls with only when something is logged. Most
// passes log nothing, and a logger with names and values costs as much as the rest of a pass.
func Lazy(l logr.Logger, with func(logr.Logger) logr.Logger) logr.Logger {
	if l.GetSink() == nil {
		return l
	}
	return l.WithSink(&lazy{logger: l, with: with})
}

// lazy is a sink that is created when it is first used.
type lazy struct {
	logger logr.Logger
	with   func(logr.Logger) logr.Logger
	once   sync.Once
	made   logr.LogSink
}

// sink returns the sink, creating it if necessary.
func (z *lazy) sink() logr.LogSink {
	z.once.Do(func() { z.made = z.with(Logger(z.logger)).GetSink() })
	return z.made
}

// deeper returns the sink for calls with one more frame.
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
