package nats

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/external"
)

const (
	// originSettles is how long NATS may take, after a creation and after a restart, to report
	// whether it can copy from another stream. A healthy server takes a fifth of a second.
	originSettles = 5 * time.Second
	// originPoll is the delay between two observations until then.
	originPoll = 250 * time.Millisecond
	// degradedPoll is the delay between two observations of a stream that cannot copy. NATS itself
	// tries again every ten seconds.
	degradedPoll = 5 * time.Second
)

// settledStream is like readStream, but just after the operator has connected it reads the stream again
// until NATS reports whether it can copy, so that mirrors are not reported as broken after every restart
// of NATS.
func settledStream(ctx context.Context, c *Client, name string) (*LiveStream, error) {
	for {
		have, err := readStream(ctx, c, name)
		if have == nil || err != nil || time.Since(c.connected()) > originSettles || age(have) < originSettles {
			return have, err
		}
		if _, silent := origins(have); len(silent) == 0 {
			return have, nil
		}
		select {
		case <-time.After(originPoll):
		case <-ctx.Done():
			return have, nil
		}
	}
}

// inUse returns the observation of a stream that exists. A stream that copies others is available once
// NATS can copy from them.
func inUse(have *LiveStream, mark external.Mark) external.Observation[*LiveStream] {
	seen := external.Available(have, mark)
	failed, silent := origins(have)
	switch {
	case len(failed) > 0:
		reason := "SourceFails"
		if have.Mirror != nil {
			reason = "MirrorFails"
		}
		seen.Phase, seen.Reason, seen.Message = external.PhaseDegraded, reason, strings.Join(failed, "; ")
		seen.PollAfter = degradedPoll
	case len(silent) == 0:
	case age(have) < originSettles:
		seen.Phase, seen.PollAfter = external.PhaseCreating, originPoll
	default:
		seen.Phase, seen.Reason, seen.Message = external.PhaseDegraded, "OriginSilent", strings.Join(silent, "; ")
		seen.PollAfter = degradedPoll
	}
	return seen
}

// age returns how long ago NATS created a stream, by the clock of NATS if it is known.
func age(have *LiveStream) time.Duration {
	if have.TimeStamp.IsZero() {
		return time.Since(have.Created)
	}
	return have.TimeStamp.Sub(have.Created)
}

// origins returns the streams from which NATS cannot copy, with the reasons that NATS gives, and those
// from which nothing has arrived yet. NATS lists them in any order.
func origins(have *LiveStream) (failed, silent []string) {
	all := have.Sources
	if have.Mirror != nil {
		all = append(slices.Clone(all), have.Mirror)
	}
	for _, from := range all {
		switch {
		case from.Error != nil:
			failed = append(failed, fmt.Sprintf("NATS cannot copy from stream %q: %s (error %d)", from.Name, from.Error.Description, from.Error.ErrorCode))
		case from.Active < 0:
			silent = append(silent, fmt.Sprintf("nothing has arrived from stream %q yet, and NATS does not say why; check that the stream exists and may be read", from.Name))
		}
	}
	slices.Sort(failed)
	slices.Sort(silent)
	return slices.Compact(failed), slices.Compact(silent)
}
