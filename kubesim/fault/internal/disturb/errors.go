package disturb

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
)

// What disturbed calls fail with; package fault says what each means.
var (
	ErrNoAnswer    error = timeout("fault: no answer came in time")
	ErrThrottled         = errors.New("fault: too many requests, try again later")
	ErrUnavailable       = errors.New("fault: internal error of the external API")
	ErrDead              = errors.New("fault: this process was killed")
)

type timeout string

func (t timeout) Error() string { return string(t) }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

// outcome is what becomes of a call that is disturbed, and of its caller.
type outcome struct {
	vain    bool  // it has no effect, at least not now
	departs bool  // it is still on its way when its caller gets an answer or dies, and has its effect later
	kills   bool  // the process is dead afterwards
	err     error // what the caller gets in place of the answer
}

//arch:state a table that never changes
var outcomes = map[string]outcome{
	schedule.CrashBefore: {vain: true, kills: true, err: ErrDead},
	schedule.CrashAfter:  {kills: true, err: ErrDead},
	schedule.OldCache:    {kills: true, err: ErrDead},
	schedule.LateWrite:   {vain: true, departs: true, kills: true, err: ErrDead},
	schedule.LostAnswer:  {err: ErrNoAnswer},
	schedule.NoAnswer:    {vain: true, err: ErrNoAnswer},
	schedule.LateEffect:  {vain: true, departs: true, err: ErrNoAnswer},
	schedule.Throttled:   {vain: true, err: ErrThrottled},
	schedule.Failed:      {vain: true, err: ErrUnavailable},
	schedule.FailedAfter: {err: ErrUnavailable},
	schedule.Refused:     {vain: true, err: fmt.Errorf("fault: dial tcp: %w", syscall.ECONNREFUSED)},
}

// Answers lists the disturbances that are seen in the answer to one call, or in its lack.
func Answers() []string { return slices.Collect(maps.Keys(outcomes)) }

// HasEffect reports whether a call with this disturbance takes effect.
func HasEffect(kind string) bool { return !outcomes[kind].vain }

// Departs reports whether a call with this disturbance is still on its way when its caller gets an answer or dies, and
// takes effect later.
func Departs(kind string) bool { return outcomes[kind].departs }

// Kills reports whether the process is dead after a call with this disturbance.
func Kills(kind string) bool { return outcomes[kind].kills }

// Answer is what a caller of Kubernetes gets in place of the real answer; neither for "" and for
// disturbances that leave the answer as it is.
func Answer(kind string, r *http.Request) (*http.Response, error) {
	switch kind {
	case schedule.Throttled:
		return Throttle(r, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonTooManyRequests, Message: "fault: too many requests"}), nil
	case schedule.Failed:
		return apiserver.Answer(r, metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "fault: internal error"}), nil
	}
	return nil, outcomes[kind].err
}

// Throttle is an answer that asks for a pause of a second.
func Throttle(r *http.Request, status metav1.Status) *http.Response {
	status.Code = http.StatusTooManyRequests
	a := apiserver.Answer(r, status)
	a.Header.Set("Retry-After", "1")
	return a
}

// Failure is what a caller of the external API gets in place of the real answer; nil for "" and for
// disturbances that leave the answer as it is.
func Failure(kind string) error { return outcomes[kind].err }
