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
	// originSettles is how long NATS may take until it tells whether it can copy from another
	// stream: after a creation, and after a restart. A server that works takes a fifth of a
	// second.
	originSettles = 5 * time.Second
	// originPoll is the time between two looks meanwhile.
	originPoll = 250 * time.Millisecond
	// degradedPoll is the time between two looks at a stream that cannot copy. NATS tries
	// again every ten seconds.
	degradedPoll = 5 * time.Second
)

// settledStream is readStream, except that a stream of a NATS that the operator has just
// connected to is asked for again until that tells whether it can copy: a restart of NATS is
// no reason to call its mirrors broken.
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

// inUse is the observation of a stream that exists: one that copies others can be used once
// they arrive.
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

// age is how long ago NATS created a stream, by its own clock if it tells.
func age(have *LiveStream) time.Duration {
	if have.TimeStamp.IsZero() {
		return time.Since(have.Created)
	}
	return have.TimeStamp.Sub(have.Created)
}

// origins tells from which streams NATS cannot copy, in its own words, and from which nothing
// has come yet. NATS gives them in any order.
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
			silent = append(silent, fmt.Sprintf("nothing has come from stream %q yet; NATS does not say why, see whether the stream is there and may be read", from.Name))
		}
	}
	slices.Sort(failed)
	slices.Sort(silent)
	return slices.Compact(failed), slices.Compact(silent)
}
